// Reads what /metrics shows, strictly: a line that is none of the text format's is an error.

/** One series. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const line = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\.)*)"(?:,|$)/y;

/**
 * Parses the text format of Prometheus; every metric must have been given a type and a help before.
 */
export function parseMetrics(text: string): Sample[] {
  if (!text.endsWith("\n")) throw new Error("the text does not end with a line break");
  const [types, helps] = [new Set<string>(), new Set<string>()];
  const samples: Sample[] = [];
  for (const one of text.split("\n")) {
    if (one === "") continue;
    const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(one);
    if (comment !== null) {
      (comment[1] === "TYPE" ? types : helps).add(comment[2] ?? "");
      continue;
    }
    const [, name = "", labels = "", value = ""] = line.exec(one) ?? [];
    if (name === "") throw new Error(`no line of the text format: ${one}`);
    const family = types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, "");
    if (!types.has(family) || !helps.has(family)) throw new Error(`${name} has no type or no help`);
    samples.push({
      name,
      labels: parseLabels(labels, one),
      value: value === "+Inf" ? Number.POSITIVE_INFINITY : Number(value),
    });
  }
  return samples;
}

function parseLabels(text: string, where: string): Record<string, string> {
  const labels: Record<string, string> = {};
  label.lastIndex = 0;
  for (let at = 0; at < text.length; at = label.lastIndex) {
    label.lastIndex = at;
    const found = label.exec(text);
    if (found === null) throw new Error(`no labels: ${where}`);
    labels[found[1] ?? ""] = found[2] ?? "";
  }
  return labels;
}

/** The sum of all series of a name with these labels; undefined when there is none. */
export function sumOf(
  samples: readonly Sample[],
  name: string,
  labels: Record<string, string> = {},
): number | undefined {
  const fitting = samples.filter(
    (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  );
  return fitting.length === 0 ? undefined : fitting.reduce((sum, { value }) => sum + value, 0);
}
