// The JSON Schema of a policy file, for editors (policies.schema.json), hints and the reference page.
// Made from the zod schema; never edited by hand.
import { z } from "zod";
import { isJsonObject, type JsonObject } from "../core/json.ts";
import type { Path } from "./node-places.ts";
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

/** What policies.schema.json holds, with a line end. */
export function policyJsonSchemaText(): string {
  return `${JSON.stringify(policyJsonSchema(), undefined, 2)}\n`;
}

/** The keys that may stand in the object at a path; none when the path leads nowhere or to free names. */
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
