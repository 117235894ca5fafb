// Renders docs/policies.md, the reference of the policy format, from the schema's descriptions.
import { isJsonObject, type JsonObject } from "../core/json.ts";
import { policyJsonSchema } from "./json-schema.ts";
import { policyLimits } from "./rules/policy-limits.ts";

/** The page as Markdown, with a line end. */
export function policyReference(): string {
  const sections: Section[] = [];
  addSections(policyJsonSchema(), [], { sections, rows: new Map() });
  return `${[introduction, ...sections.map(toMarkdown)].join("\n\n")}\n`;
}

const introduction = `<!-- Made by \`syncline schema --docs\`: change the descriptions in src/config/schema/, not this page. -->
# Policies

A policy file names services, and says what to do with their sync jobs, when, and how to judge it. \`syncline validate PATH\` checks a file or a folder. The first line gives an editor completion and checks:

\`\`\`yaml
# yaml-language-server: $schema=./policies.schema.json
\`\`\`

- **Folders**: all \`*.yaml\` and \`*.yml\` files of a folder are one set, without hidden files and subfolders. A name, and a key of \`defaults\`, may stand in one file only.
- **Variables**: \`\${NAME}\` and \`\${NAME:-default}\` in a text stand for environment variables, \`$\${\` for \`\${\`. One that is not set, or empty, is a problem. Inside \`{ }\` and \`[ ]\` put such a text in quotes.
- **Defaults**: a key that a policy leaves out is taken from \`defaults\`, those of \`follow\` and \`dst\` one by one, then from the last column.
- **Durations** are a whole number and \`ms\`, \`s\`, \`m\`, \`h\` or \`d\`: \`90s\`, \`10m\`, \`2h\`.
- **YAML** is version 1.2: \`yes\` and \`no\` are texts. Tags, directives and merge keys (\`<<\`) are refused.
- **Limits**: ${policyLimits.fileBytesMax / 1024} KiB a file, ${policyLimits.filesMax} files, ${policyLimits.nestingMax} levels, ${policyLimits.aliasesMax} aliases a file, ${policyLimits.policiesMax} policies, ${policyLimits.servicesMax} services, ${policyLimits.syncJobsMax} sync jobs a policy.`;

/** The table of one object's keys. */
interface Section {
  readonly title: string;
  readonly rows: readonly string[];
  /** Keys whose rows stand in an earlier section, by that section. */
  readonly elsewhere: ReadonlyMap<string, readonly string[]>;
  /** Other objects with the same keys. */
  readonly twins: string[];
}

interface Page {
  readonly sections: Section[];
  /** Where each row stands, by its text. */
  readonly rows: Map<string, string>;
}

/** Adds a section for an object's keys, then sections for the objects below it. */
function addSections(schema: JsonObject, path: readonly string[], page: Page): void {
  const title = path.length === 0 ? "The file" : path.map((part) => (part === "*" ? "NAME" : part)).join(".");
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const keys = Object.entries(objectAt(schema, "properties")).map(([key, value]) => {
    const shape = isJsonObject(value) ? value : {};
    return { key, shape, row: rowOf(key, shape, required.includes(key)) };
  });
  const twin = page.sections.find(({ rows }) => rows.join() === keys.map(({ row }) => row).join());
  if (twin !== undefined) {
    twin.twins.push(title);
    return;
  }
  const own = keys.filter(({ row }) => !page.rows.has(row));
  const elsewhere = Map.groupBy(
    keys.filter(({ row }) => page.rows.has(row)),
    ({ row }) => page.rows.get(row) ?? "",
  );
  page.sections.push({
    title,
    rows: own.map(({ row }) => row),
    elsewhere: new Map([...elsewhere].map(([place, found]) => [place, found.map(({ key }) => key)])),
    twins: [],
  });
  for (const { row } of own) page.rows.set(row, title);
  for (const { key, shape } of own) {
    const inner = innerObject(shape);
    if (inner !== undefined) addSections(inner.schema, [...path, key, ...inner.step], page);
  }
}

function toMarkdown({ title, rows, elsewhere, twins }: Section): string {
  const names = (all: readonly string[]) => all.map((name) => `\`${name}\``).join(", ");
  return [
    `## ${title}`,
    ...(twins.length > 0 ? [`The same keys: ${names(twins)}.`] : []),
    ["| key | meaning | default, or an example |", "|---|---|---|", ...rows].join("\n"),
    ...[...elsewhere].map(([place, keys]) => `As in \`${place}\`: ${names(keys)}.`),
  ].join("\n\n");
}

/** The object with fixed keys behind a property: itself, an item, or the value of free names. */
function innerObject(value: unknown): { schema: JsonObject; step: readonly string[] } | undefined {
  if (!isJsonObject(value)) return undefined;
  if (isJsonObject(value["properties"])) return { schema: value, step: [] };
  const schema = [objectAt(value, "items"), objectAt(value, "additionalProperties")].find((one) => one["properties"]);
  return schema && { schema, step: ["*"] };
}

function rowOf(key: string, schema: JsonObject, isRequired: boolean): string {
  const description = typeof schema["description"] === "string" ? schema["description"] : "";
  const values: readonly unknown[] = Array.isArray(schema["enum"]) ? schema["enum"] : [];
  const options = values.map((value) => `\`${value}\``).join(", ");
  const isNamed = values.every((value) => description.includes(`\`${value}\``));
  const examples: readonly unknown[] = Array.isArray(schema["examples"]) ? schema["examples"] : [];
  const isPlain = values.length > 0 || schema["type"] === "boolean" || innerObject(schema) !== undefined;
  const example = isPlain ? "" : examples.map((item) => `\`${toYaml(item)}\``).join(" or ");
  const fallback = schema["default"] === undefined ? "" : `default ${schema["default"]}`;
  const meaning = isNamed ? description : `${description} One of ${options}.`;
  const value = isRequired ? `required${example && `, ${example}`}` : fallback || example;
  const cells = [`\`${key}\``, meaning, value.trim()];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function objectAt(schema: JsonObject, key: string): JsonObject {
  const value = schema[key];
  return isJsonObject(value) ? value : {};
}

/** A value as one line of YAML. */
function toYaml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toYaml).join(", ")}]`;
  if (isJsonObject(value)) {
    return `{ ${Object.entries(value)
      .map(([key, item]) => `${key}: ${toYaml(item)}`)
      .join(", ")} }`;
  }
  const text = String(value);
  if (typeof value !== "string" || /^[\w./-][\w ./=:<>()-]*$/.test(text))
    return text.includes(": ") ? `"${text}"` : text;
  return text.includes('"') ? `'${text}'` : `"${text}"`;
}
