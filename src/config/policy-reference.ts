// Renders docs/policies.md, the reference of the policy format, from the schema's descriptions.
import { isJsonObject, type JsonObject } from "../core/json.ts";
import { policyJsonSchema } from "./json-schema.ts";
import { policyLimits } from "./rules/policy-limits.ts";

/** The page as Markdown, with a line end. */
export function policyReference(): string {
  return `${[introduction, ...sectionsOf(policyJsonSchema(), { path: [], seen: new Map() })].join("\n\n")}\n`;
}

const introduction = `<!-- Made by \`syncline schema --docs\`: change the descriptions in src/config/schema/, not this page. -->
# Policies

A policy file says which services there are and what to do with their sync jobs, when, and how to judge it. \`syncline validate PATH\`
checks a file or a folder. For completion and checks in an editor, start the file with

\`\`\`yaml
# yaml-language-server: $schema=./policies.schema.json
\`\`\`

- **Folders**: all \`*.yaml\` and \`*.yml\` files of a folder are one set; hidden files and subfolders are left out. A name, and a key of
  \`defaults\`, may stand in one file only.
- **Variables**: \`\${NAME}\` and \`\${NAME:-default}\` in a text stand for environment variables; \`$\${\` stands for \`\${\`. A variable that is not
  set, or empty, is a problem. Inside \`{ }\` and \`[ ]\` put such a text in quotes. Secrets never stand here: see \`token\`.
- **Defaults**: a policy that does not say \`catchUp\`, \`catchUpWindow\`, \`overlap\`, \`onUnknown\`, \`quarantine\`, \`blackout\`, \`holidays\`, or a key of \`follow\` or \`dst\`, takes it from
  \`defaults\`; what is not said there either is in the column "default".
- **Durations** are a whole number and \`ms\`, \`s\`, \`m\`, \`h\` or \`d\`: \`90s\`, \`10m\`, \`2h\`.
- **YAML** is version 1.2: \`yes\` and \`no\` are texts. Tags, directives and merge keys (\`<<\`) are refused.
- **Limits**: ${policyLimits.fileBytesMax / 1024} KiB a file, ${policyLimits.filesMax} files, ${policyLimits.nestingMax} levels, ${policyLimits.aliasesMax} aliases a file, ${policyLimits.policiesMax} policies, ${policyLimits.servicesMax} services, ${policyLimits.syncJobsMax} sync jobs a policy.`;

interface Place {
  readonly path: readonly string[];
  /** Where the same table stands already, by its text. */
  readonly seen: Map<string, string>;
}

/** A section for an object's keys, then sections for the objects below it. */
function sectionsOf(schema: JsonObject, { path, seen }: Place): string[] {
  const properties = objectAt(schema, "properties");
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const rows = Object.entries(properties).map(([key, value]) =>
    rowOf([...path, key], isJsonObject(value) ? value : {}, required.includes(key)),
  );
  const title = path.length === 0 ? "The file" : path.map((part) => (part === "*" ? "NAME" : part)).join(".");
  const text = typeof schema["description"] === "string" ? [schema["description"]] : [];
  const table = ["| key | meaning | default | example |", "|---|---|---|---|", ...rows].join("\n");
  const twin = seen.get(table);
  if (twin !== undefined) return [`## ${title}`, ...text, `The keys are those of \`${twin}\`.`];
  seen.set(table, title);
  const below = Object.entries(properties).flatMap(([key, value]) => {
    const inner = innerObject(value);
    if (inner === undefined) return [];
    return sectionsOf(inner.schema, { path: [...path, key, ...inner.step], seen });
  });
  return [`## ${title}`, ...text, table, ...below];
}

/** The object with fixed keys behind a property: itself, an item, or the value of free names. */
function innerObject(value: unknown): { schema: JsonObject; step: readonly string[] } | undefined {
  if (!isJsonObject(value)) return undefined;
  if (isJsonObject(value["properties"])) return { schema: value, step: [] };
  const schema = [objectAt(value, "items"), objectAt(value, "additionalProperties")].find((one) => one["properties"]);
  return schema && { schema, step: ["*"] };
}

function rowOf(path: readonly string[], schema: JsonObject, isRequired: boolean): string {
  const description = typeof schema["description"] === "string" ? schema["description"] : "";
  const values: readonly unknown[] = Array.isArray(schema["enum"]) ? schema["enum"] : [];
  const options = values.map((value) => `\`${value}\``).join(", ");
  const fallback = isRequired ? "required" : schema["default"] === undefined ? "–" : String(schema["default"]);
  const examples: readonly unknown[] = Array.isArray(schema["examples"]) ? schema["examples"] : [];
  const example = examples.map((item) => `\`${toYaml(item)}\``).join(" or ");
  const meaning = options === "" ? description : `${description} One of ${options}.`;
  const cells = [`\`${path.at(-1)}\``, meaning, fallback, example];
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
