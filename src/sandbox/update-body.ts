// Parses the body of a PUT and checks it against what may be changed. Every mistake is a Refusal
// with 400. Pure; called by the handlers of the four updates.
import { isJsonObject } from "../core/json.ts";
import { Refusal } from "./reply.ts";

/**
 * The rules of one entity: properties that may be changed, those that may not, and the one that may
 * only repeat the key.
 */
export interface UpdateRules {
  /** Properties that may be changed. All are texts. */
  readonly updatable: readonly string[];
  /**
   * Properties that exist and must not be sent.
   * Source: service-interface §4.3. Which they are is not shown. Assumption S4
   */
  readonly readOnly: readonly string[];
  /** A property that may be sent when it equals the key of the path. */
  readonly keyProperty?: string;
}

/** A body as received: the bytes and the header that describes them. */
export interface RawBody {
  readonly text: string;
  readonly contentType: string | undefined;
}

/**
 * Reads the changes of a PUT: property → new text. `{}` changes nothing.
 * @throws Refusal 400 on an unreadable body, on read-only, immutable or unknown properties and on
 * values of a wrong type. Source: service-interface §4.3, §7
 */
export function parseUpdate(raw: RawBody, rules: UpdateRules, key: number): Readonly<Record<string, string>> {
  const changes: Record<string, string> = {};
  for (const [property, value] of Object.entries(readObject(raw))) {
    if (property === rules.keyProperty) {
      if (value !== key)
        throw new Refusal(400, `The property '${property}' is immutable: it must be ${key} or left out.`);
      continue;
    }
    if (rules.readOnly.includes(property)) throw new Refusal(400, `The property '${property}' is read-only.`);
    if (!rules.updatable.includes(property)) throw new Refusal(400, `The property '${property}' does not exist.`);
    if (typeof value !== "string") throw new Refusal(400, `The property '${property}' must be a string.`);
    changes[property] = value;
  }
  return changes;
}

function readObject(raw: RawBody): Readonly<Record<string, unknown>> {
  const mediaType = raw.contentType?.split(";")[0]?.trim().toLowerCase();
  if (mediaType !== "application/json") throw new Refusal(400, "The header Content-Type must be application/json.");
  let value: unknown;
  try {
    value = JSON.parse(raw.text);
  } catch {
    throw new Refusal(400, "No data could be read from the request: the body is not JSON.");
  }
  if (!isJsonObject(value))
    throw new Refusal(400, "No data could be read from the request: the body is not an object.");
  return value;
}
