// Makes the chart's README from the comments of its values.yaml: `npm run docs:chart`. Its
// staleness is tested in test/chart. A comment `# -- text` above a key documents it and everything
// under it, `# == text` a group whose keys get one row; never writes any other file.
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { isMap, isScalar, parseDocument, type YAMLMap } from "yaml";

const chart = resolve(import.meta.dirname, "../helm/syncline");
/** Longer defaults stand in values.yaml only; of empty ones the text says what they mean. */
const shownMax = 30;
const begin = "<!-- values: made by `npm run docs:chart` -->";

/** One documented value. */
interface Row {
  readonly key: string;
  /** The default in Markdown; empty for a group. */
  readonly fallback: string;
  readonly text: string;
}

/**
 * The README with a new table of values.
 * @throws Error that names the keys of values.yaml that have no `# --` comment.
 */
export function renderChartReadme(readme: string, values: string): string {
  const { contents } = parseDocument(values);
  const undocumented: string[] = [];
  const rows = isMap(contents) ? rowsOf(contents, "", undocumented) : [];
  if (undocumented.length > 0)
    throw new Error(`values.yaml says nothing about ${undocumented.join(", ")}: write "# -- …" above`);
  const lines = [...Map.groupBy(rows, ({ fallback, text }) => `${fallback} ${text}`).values()].map(toLine);
  const table = ["| value | default | what it is |", "|---|---|---|", ...lines].join("\n");
  const head = readme.split(begin)[0] ?? "";
  return `${head}${begin}\n\n${table}\n`;
}

/** What is there and what should be there. */
export function readChartReadme(): { readonly path: string; readonly present: string; readonly wanted: string } {
  const path = join(chart, "README.md");
  const present = readFileSync(path, "utf8");
  return { path, present, wanted: renderChartReadme(present, readFileSync(join(chart, "values.yaml"), "utf8")) };
}

function rowsOf(map: YAMLMap, path: string, undocumented: string[]): Row[] {
  return map.items.flatMap(({ key, value }, index) => {
    if (!isScalar(key)) return [];
    const name = path === "" ? String(key.value) : `${path}.${key.value}`;
    // The comment above the first key of a map belongs to the map, as the parser sees it.
    const comment = key.commentBefore ?? (index === 0 ? map.commentBefore : undefined) ?? "";
    const [, mark, text] = /^ ?(--|==) (.*)$/m.exec(comment.split("\n").at(-1) ?? "") ?? [];
    if (mark === "--" && text !== undefined) return [{ key: name, fallback: toText(value), text }];
    if (isMap(value) && value.items.length > 0) {
      const below = rowsOf(value, name, undocumented);
      return text === undefined ? below : [{ key: name, fallback: "", text }];
    }
    undocumented.push(name);
    return [];
  });
}

function toText(value: unknown): string {
  const plain: unknown = JSON.parse(JSON.stringify(value));
  const text = JSON.stringify(plain);
  if (['""', "[]", "{}"].includes(text)) return "";
  return text.length > shownMax ? "…" : `\`${text}\``;
}

/** One line for all values with the same default and text. */
function toLine(same: readonly Row[]): string {
  const cells = [same.map(({ key }) => `\`${key}\``).join(", "), same[0]?.fallback ?? "", same[0]?.text ?? ""];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

if (import.meta.main) {
  const { path, wanted } = readChartReadme();
  writeFileSync(path, wanted);
}
