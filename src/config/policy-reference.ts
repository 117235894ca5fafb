// Renders docs/policies.md, the reference of the policy format, from the schema's descriptions.
import { isJsonObject, type JsonObject } from "../core/json.ts";
import { policyJsonSchema } from "./json-schema.ts";
import { policyLimits } from "./rules/policy-limits.ts";

/** The page as Markdown, with a line end. */
export function policyReference(): string {
  const file = policyJsonSchema();
  const known = new Map<string, string>();
  const sections = Object.entries(objectAt(file, "properties")).flatMap(([key, value]) => {
    const inner = innerObject(value);
    if (inner === undefined) return [];
    const title = [key, ...inner.below].join(".");
    return [toSection(title, rowsOf(inner.schema, { path: [], known }))];
  });
  return `${[introduction, toSection("The file", keysOf(file, [])), ...sections].join("\n\n")}\n`;
}

const introduction = `<!-- Made by \`syncline schema --docs\`: change the descriptions in src/config/schema/, not this page. -->
# Policies

\`syncline validate PATH\` checks a file or folder. This first line lets an editor complete and check:

\`\`\`yaml
# yaml-language-server: $schema=./policies.schema.json
\`\`\`

- **Folders**: the \`*.yaml\` and \`*.yml\` files of a folder are one set, without hidden files and subfolders. A name, and a key of \`defaults\`, stands in one file. Paths are relative to the policy file.
- **Variables**: \`\${NAME}\` and \`\${NAME:-default}\` in a text stand for environment variables, \`$\${\` for \`\${\`. One that is unset or empty is a problem. Inside \`{ }\` and \`[ ]\` put such a text in quotes.
- **Defaults**: a policy may hold all keys of \`defaults\` itself (\`timezone\` and \`dst\` under \`schedule\`). What it leaves out comes from \`defaults\`, of \`follow\` and \`dst\` key by key, then from the last column.
- **Durations** are a whole number and \`ms\`, \`s\`, \`m\`, \`h\` or \`d\`: \`90s\`.
- Where a row leads to a section of a page, that has the keys below.
- **YAML** is version 1.2: \`yes\` and \`no\` are texts. Tags, directives and merge keys (\`<<\`) are refused.
- **Limits**: ${policyLimits.fileBytesMax / 1024} KiB a file, ${policyLimits.filesMax} files, ${policyLimits.nestingMax} levels, ${policyLimits.aliasesMax} aliases a file, ${policyLimits.policiesMax} policies, ${policyLimits.servicesMax} services, ${policyLimits.syncJobsMax} sync jobs a policy.`;

interface Place {
  readonly path: readonly string[];
  /** What stands there already, by its text. */
  readonly known: Map<string, string>;
}

const toSection = (title: string, rows: readonly string[]) =>
  [`## ${title}\n`, "| key | meaning | default, or an `example` |", "|---|---|---|", ...rows].join("\n");

/** The rows of an object's keys, each followed by those of the object below it. */
function rowsOf(schema: JsonObject, { path, known }: Place): string[] {
  const rows = keysOf(schema, path);
  return Object.entries(objectAt(schema, "properties")).flatMap(([key, value], index) => {
    const inner = innerObject(value);
    const row = rows[index] ?? "";
    const text = JSON.stringify(value);
    // The keys of `defaults` are not said again under `policies`.
    if (path.length === 0 && known.has(text)) return [];
    if (path.length === 0) known.set(text, key);
    // A page that explains the object has its keys, too.
    if (inner === undefined || /\.md#/.test(row)) return [row];
    const keys = keysOf(inner.schema, []).join("\n");
    const twin = known.get(keys);
    if (twin !== undefined) return [row.replace(/ \|$/, ` keys as \`${twin}\` |`)];
    known.set(keys, [...path, key].join("."));
    return [row, ...rowsOf(inner.schema, { path: [...path, key, ...inner.below], known })];
  });
}

/** A row for each key. */
function keysOf(schema: JsonObject, path: readonly string[]): string[] {
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(objectAt(schema, "properties")).map(([key, value]) =>
    rowOf([...path, key].join("."), isJsonObject(value) ? value : {}, required.includes(key)),
  );
}

/** The object with fixed keys behind a property: itself, an item, or the value of free names. */
function innerObject(value: unknown): { schema: JsonObject; below: readonly string[] } | undefined {
  if (!isJsonObject(value)) return undefined;
  if (isJsonObject(value["properties"])) return { schema: value, below: [] };
  const schema = [objectAt(value, "items"), objectAt(value, "additionalProperties")].find((one) => one["properties"]);
  return schema && { schema, below: ["NAME"] };
}

function rowOf(key: string, schema: JsonObject, isRequired: boolean): string {
  const said = typeof schema["description"] === "string" ? schema["description"] : "";
  const description = said.replace(/\(docs\/(\S+\.md\S*)\)/, "([more]($1))");
  const values: readonly unknown[] = Array.isArray(schema["enum"]) ? schema["enum"] : [];
  const options = values.map((value) => `\`${value}\``).join(", ");
  const isNamed = values.every((value) => description.includes(`\`${value}\``));
  const examples: readonly unknown[] = Array.isArray(schema["examples"]) ? schema["examples"] : [];
  const isPlain = values.length > 0 || schema["type"] === "boolean" || innerObject(schema) !== undefined;
  // Addresses, paths and plain words need none.
  const isObvious = examples.every((one) => !isJsonObject(one) && /^(\/|https:|(?!item)[\w@.-]+$)/.test(`${one}`));
  const example = isPlain || isObvious ? "" : examples.map((item) => `\`${toYaml(item)}\``).join(" or ");
  const fallback = schema["default"] === undefined ? "" : String(schema["default"]);
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
