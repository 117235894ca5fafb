// The little of a shell that import reads: which simple commands a script has, and what its
// variables hold. It runs nothing and guesses nothing: what it does not know stays as it is
// written. Pure; called by find-calls.ts.

/** The text of every variable whose value is known. */
export type Variables = ReadonlyMap<string, string>;

/** A script as simple commands, in order, and the variables that it sets by itself. */
export interface Script {
  readonly commands: readonly string[];
  readonly variables: Variables;
}

const quoted = `'[^']*'|"(?:\\\\.|[^"\\\\])*"`;
/** Between simple commands: ; | & && || and the end of a line, outside of quotes. */
const parts = new RegExp(`(?:[<>]&|&>|${quoted}|\\\\.|[^;|&\\n'"\\\\]|['"\\\\])+`, "g");
const nested = new RegExp(`\\b(?:ba|da|z|k)?sh\\s+-\\w*c\\s+(${quoted})`, "g");
const loop = /\bfor\s+(\w+)\s+in\s+([^;\n]+?)\s*[;\n]\s*do\b([\s\S]*?)\bdone\b/g;
const assignment = new RegExp(`^(?:export\\s+)?([A-Za-z_]\\w*)=(${quoted}|[^\\s'"]*)$`);
const loopRoundsMax = 1_000;

/** Reads a script. `given`: what its surroundings set. */
export function readScript(text: string, given: Variables): Script {
  const flat = unrollLoops(
    text
      .replaceAll(/\\\r?\n/g, " ")
      .replaceAll(/^\s*#.*$/gm, "")
      .replaceAll(nested, (_, inner: string) => `\n${withoutQuotes(inner)}\n`),
  );
  const variables = new Map(given);
  const commands: string[] = [];
  for (const [part] of flat.matchAll(parts)) {
    const command = part.trim();
    const [, name, value = ""] = assignment.exec(command) ?? [];
    if (name === undefined) commands.push(command);
    else variables.set(name, fillIn(withoutQuotes(value), variables));
  }
  return { commands: commands.filter((command) => command !== ""), variables };
}

/** Puts in the variables that are known: `$NAME`, `${NAME}`, `${NAME:-other}`, `$(NAME)`. */
export function fillIn(text: string, variables: Variables): string {
  return text.replaceAll(
    /\$(?:\{(\w+)(?::?-([^}]*))?\}|\((\w+)\)|(\w+))/g,
    (whole, braced?: string, other?: string, inPod?: string, bare?: string) =>
      variables.get(braced ?? inPod ?? bare ?? "") ?? other ?? whole,
  );
}

/** The words of a command, without their quotes. */
export function wordsOf(command: string): string[] {
  const word = new RegExp(`(?:${quoted}|\\\\.|[^\\s'"\\\\])+`, "g");
  return [...command.matchAll(word)].map(([text]) => withoutQuotes(text));
}

function withoutQuotes(text: string): string {
  return text.replaceAll(
    new RegExp(`(${quoted})|\\\\(.)`, "g"),
    (_, inQuotes: string | undefined, escaped: string | undefined) => {
      if (inQuotes === undefined) return escaped ?? "";
      const inner = inQuotes.slice(1, -1);
      return inQuotes.startsWith('"') ? inner.replaceAll(/\\(["\\$`])/g, "$1") : inner;
    },
  );
}

function unrollLoops(text: string): string {
  return text.replaceAll(loop, (_, name: string, items: string, body: string) =>
    items
      .split(/\s+/)
      .slice(0, loopRoundsMax)
      .map((item) => body.replaceAll(new RegExp(`\\$(?:\\{${name}\\}|${name}\\b)`, "g"), () => withoutQuotes(item)))
      .join("\n"),
  );
}
