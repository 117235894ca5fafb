// One request as a handler sees it: its repository, its row, the changes in its body, and the world
// it works in. Built by exchange.ts; knows nothing of sockets.
import { isJsonObject, parseJson } from "../core/json.ts";
import type { SandboxSettings } from "./options.ts";
import { Refusal } from "./reply.ts";
import type { Row, Store } from "./store.ts";

/** What every handler may use. */
export interface World {
  readonly store: Store;
  readonly settings: SandboxSettings;
}

/** One request after routing. */
export interface Call {
  /** The key in the path; for the identity its arguments. Decoded, unchecked. */
  readonly key: string;
  readonly parameters: URLSearchParams;
  /** The `repository` query parameter; undefined means all. */
  readonly repository: string | undefined;
  readonly body: RawBody;
  /** Scheme, host and base path as the caller sees them. */
  readonly baseUrl: string;
  readonly nowMs: number;
}

/** Reads the parameter `repository` (its own choice). @throws Refusal 400 */
export function parseRepository(parameters: URLSearchParams, world: World): string | undefined {
  const [repository, ...more] = parameters.getAll("repository");
  if (repository === undefined) return undefined;
  if (more.length > 0) throw new Refusal(400, "The parameter 'repository' is given twice.");
  return checkRepository(repository, world);
}

/** The repository of a key: of only one, every key is. @throws Refusal 400 for an unknown key. */
export function checkRepository(repository: string, world: World): string {
  const [only, ...others] = world.settings.repositories;
  if (only !== undefined && others.length === 0) return only;
  if (world.settings.repositories.includes(repository)) return repository;
  throw new Refusal(400, `There is no repository '${repository.slice(0, 64)}'.`);
}

/** Finds an entity by its key in the call's repository. @throws Refusal with `missingStatus`. */
export function findRow<E>(rows: ReadonlyMap<number, Row<E>>, key: number, call: Call, missingStatus: number): Row<E> {
  const row = rows.get(key);
  const visible = row !== undefined && (call.repository === undefined || call.repository === row.repository);
  if (!visible) throw new Refusal(missingStatus, `There is nothing with the id ${key}.`);
  return row;
}

/** What a PUT may change of one entity. Source: service-interface §4.3. */
export interface UpdateRules {
  /** Properties that may be changed. All are texts. */
  readonly updatable: readonly string[];
  /** Properties that must not be sent. Which they are is not shown. Its own choice */
  readonly readOnly: readonly string[];
  /** A property that may be sent when it equals the key of the path. */
  readonly keyProperty?: string;
}

interface RawBody {
  readonly text: string;
  readonly contentType: string | undefined;
}

/** Reads the changes of a PUT: property → new text. @throws Refusal 400 */
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
  const value = parseJson(raw.text);
  if (value === undefined) throw new Refusal(400, "No data could be read from the request: the body is not JSON.");
  if (!isJsonObject(value))
    throw new Refusal(400, "No data could be read from the request: the body is not an object.");
  return value;
}
