// The JSON Schema of a policy file, for editors (policies.schema.json), hints and the reference
// page. Generated from the zod schema.
import { z } from "zod";
import { defined, isJsonObject, type JsonObject } from "../core/json.ts";
import type { Path } from "./problem.ts";
import { policyFileSchema } from "./schema/policy-file.ts";

let made: JsonObject | undefined;

/** The JSON Schema (draft-07) of a policy file. */
export function policyJsonSchema(): JsonObject {
  if (made === undefined) {
    const { "~standard": _, ...schema } = z.toJSONSchema(policyFileSchema, { io: "input", target: "draft-7" });
    made = schema;
  }
  return made;
}

/** The text of policies.schema.json, with a line end. */
export function policyJsonSchemaText(): string {
  return `${JSON.stringify(withVariables(policyJsonSchema()), undefined, 2)}\n`;
}

const variable = { type: "string", pattern: "\\$\\{" };

/**
 * Lets a text of a certain form be a variable, too: the loader fills in all but keys and the name
 * in `token.env`.
 */
function withVariables(schema: unknown, key = ""): unknown {
  if (Array.isArray(schema)) return schema.map((one) => withVariables(one, key));
  if (!isJsonObject(schema)) return schema;
  if (schema["type"] === "string" && ("pattern" in schema || "enum" in schema)) {
    const { description, default: otherwise, examples, ...text } = schema;
    return { ...defined({ description, default: otherwise, examples }), anyOf: [text, variable] };
  }
  const parts = Object.entries(schema).map(([name, part]) => {
    const isLiteral = name === "propertyNames" || (key === "token" && name === "env");
    return [name, isLiteral ? part : withVariables(part, name === "properties" ? key : name)];
  });
  return Object.fromEntries(parts);
}

/** The keys that the object at a path may have; none for free names or an unknown path. */
export function knownKeysAt(path: Path): readonly string[] {
  return Object.keys(propertiesOf(path.reduce<unknown>(schemaBelow, policyJsonSchema())));
}

/** Which keys of the object at a path may hold the given key: for "it belongs under …". */
export function keysThatHold(path: Path, key: string): readonly string[] {
  const properties = propertiesOf(path.reduce<unknown>(schemaBelow, policyJsonSchema()));
  return Object.keys(properties).filter((name) => Object.hasOwn(propertiesOf(properties[name]), key));
}

function propertiesOf(schema: unknown): JsonObject {
  const properties = isJsonObject(schema) ? schema["properties"] : undefined;
  return isJsonObject(properties) ? properties : {};
}

function schemaBelow(schema: unknown, part: string | number): unknown {
  if (!isJsonObject(schema)) return undefined;
  if (typeof part === "number") return schema["items"];
  const properties = propertiesOf(schema);
  return Object.hasOwn(properties, part) ? properties[part] : schema["additionalProperties"];
}

/** The schema's keys: all, those with a simple value or a list of such, and those with a list. */
interface SchemaWords {
  readonly all: Set<string>;
  readonly shown: Set<string>;
  readonly lists: Set<string>;
}

let words: SchemaWords | undefined;

/** The keys of the schema, to tell which texts of a file may be shown. */
export function schemaWords(): SchemaWords {
  if (words === undefined) {
    words = { all: new Set(), shown: new Set(), lists: new Set() };
    gatherWords(policyJsonSchema(), words);
  }
  return words;
}

function gatherWords(schema: unknown, words: SchemaWords): void {
  for (const option of optionsOf(schema)) {
    for (const [key, value] of Object.entries(propertiesOf(option))) {
      words.all.add(key);
      const isList = optionsOf(value).some((one) => optionsOf(one["items"]).some(isSimple));
      if (isList) words.lists.add(key);
      if (isList || optionsOf(value).some(isSimple)) words.shown.add(key);
      gatherWords(value, words);
    }
    gatherWords(option["items"], words);
    gatherWords(option["additionalProperties"], words);
  }
}

function optionsOf(schema: unknown): readonly JsonObject[] {
  if (!isJsonObject(schema)) return [];
  return Array.isArray(schema["anyOf"]) ? schema["anyOf"] : [schema];
}

function isSimple({ type }: JsonObject): boolean {
  return typeof type === "string" && type !== "object" && type !== "array";
}
