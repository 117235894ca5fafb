// One request as a handler sees it, and the world it works in. Built by exchange.ts; knows nothing
// of sockets.
import type { SandboxSettings } from "./options.ts";
import { Refusal } from "./reply.ts";
import type { Row, Store } from "./store.ts";
import type { RawBody } from "./update-body.ts";

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

/**
 * Reads the optional `repository` query parameter.
 * @throws Refusal 400 when it is given twice or is a key that the sandbox does not have (Assumption
 * S5).
 */
export function parseRepository(parameters: URLSearchParams, world: World): string | undefined {
  const [repository, ...more] = parameters.getAll("repository");
  if (repository === undefined) return undefined;
  if (more.length > 0) throw new Refusal(400, "The parameter 'repository' is given twice.");
  return checkRepository(repository, world);
}

/**
 * Returns a repository key that the sandbox has. With only one repository, every key names it.
 * @throws Refusal 400 for an unknown key.
 */
export function checkRepository(repository: string, world: World): string {
  const [only, ...others] = world.settings.repositories;
  if (only !== undefined && others.length === 0) return only;
  if (world.settings.repositories.includes(repository)) return repository;
  throw new Refusal(400, `There is no repository '${repository.slice(0, 64)}'.`);
}

/**
 * Finds an entity by its key. An entity of another repository counts as missing.
 * @throws Refusal with `missingStatus` when there is none.
 */
export function findRow<E>(rows: ReadonlyMap<number, Row<E>>, key: number, call: Call, missingStatus: number): Row<E> {
  const row = rows.get(key);
  const visible = row !== undefined && (call.repository === undefined || call.repository === row.repository);
  if (!visible) throw new Refusal(missingStatus, `There is nothing with the id ${key}.`);
  return row;
}
