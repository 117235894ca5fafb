// The link that a notice leads to: a URL with places to fill in. The schema checks it, and
// notify/context.ts fills it in.

/** What may stand in braces in `notifications.link`. */
const places = ["policy", "service", "kind", "atMs"] as const;
const inBraces = /\{([^{}]*)\}/g;

/** What is wrong with a link, in one line; undefined when notices can have it. */
export function problemOfLink(template: string): string | undefined {
  const names = [...template.matchAll(inBraces)].map(([, name = ""]) => name);
  const wrong = names.find((name) => !places.some((known) => known === name));
  if (wrong !== undefined) return `{${wrong}} is no place of a link: there are ${places.map(inPlace).join(", ")}`;
  const filled = template.replaceAll(inBraces, "x");
  if (/[{}\s]/.test(filled)) return "a link has its places in pairs of braces, and no blanks";
  const isWeb = /^https?:\/\//i.test(filled) && URL.canParse(filled);
  return isWeb ? undefined : "a link is a URL that begins with https:// or http://";
}

/** The link of one notice; undefined when it names what the notice has not: a policy or service. */
export function fillLink(
  template: string,
  { policy, service, kind, at }: Readonly<Record<"kind" | "at", string> & Record<"policy" | "service", string | null>>,
): string | undefined {
  const values = { policy, service, kind, atMs: String(Date.parse(at)) };
  if (places.some((place) => values[place] === null && template.includes(inPlace(place)))) return undefined;
  return places.reduce(
    (link, place) => link.replaceAll(inPlace(place), () => encodeURIComponent(values[place] ?? "")),
    template,
  );
}

function inPlace(name: string): string {
  return `{${name}}`;
}
