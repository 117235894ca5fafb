// Finds the policy set to look with: the one that runs, which Redis keeps, or the one of a file.
import type { PolicySet } from "../config/policy-set.ts";
import { showInstant } from "../core/instant.ts";
import { type KeptNote, readKeptNote, readKeptSet } from "../store/kept-policies.ts";
import type { Store } from "../store/redis.ts";

/** A set to look with. `note`: what a person must know about it; undefined: nothing. */
export interface FoundSet {
  readonly set: PolicySet;
  readonly note?: string;
}

/** The set that runs; undefined when no process has run under this prefix. */
export async function findRunningSet(store: Store): Promise<FoundSet | undefined> {
  return readKeptSet(store);
}

/** The set of a file, and whether another one runs. `path`: as the user wrote it. */
export async function compareWithRunning(path: string, set: PolicySet, store: Store): Promise<FoundSet> {
  const kept = await readKeptNote(store);
  if (kept === undefined || kept.hash === set.contentHash) return { set };
  const note = `${path} is not what runs: ${showKept(kept)} is in force; shown is what ${path} says`;
  return { set, note };
}

/** The set that runs, in place of a file with problems; undefined when there is none. */
export async function replaceBroken(path: string, problems: string, store: Store): Promise<FoundSet | undefined> {
  const kept = await readKeptSet(store);
  if (kept === undefined) return undefined;
  const note = `${path} cannot be used (${problems}; \`syncline validate ${path}\` shows all): shown is what ${showKept(kept)} says`;
  return { set: kept.set, note };
}

function showKept({ hash, atMs, by }: KeptNote): string {
  return `the set ${shortHash(hash)}, taken ${showInstant(atMs)} by ${by},`;
}

/** A hash as people compare it. */
export function shortHash(hash: string): string {
  return hash.slice(0, 8);
}
