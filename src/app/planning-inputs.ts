// Reads what planning depends on besides the policy: how fresh its inputs are (`needs`), since when
// no process has newer policies, and the pauses, after it has lifted the quarantines that no policy
// file asks for. Also here: whether a worker has newer policies.
import { type Policy, targetsOf } from "../config/policy-set.ts";
import { createDeadline } from "../core/clock.ts";
import { NewerVersionError } from "../core/newer-version.ts";
import type { Pause } from "../model/pause.ts";
import { namedByNewest } from "../queries/status-at.ts";
import type { ReadInputs } from "../schedule/scheduler-ports.ts";
import { readKeptNote, readReplicas } from "../store/kept-policies.ts";
import { Pauses, Quarantines } from "../store/pauses.ts";
import { oldestSuccessMs, readPolicyStates } from "../store/policy-states.ts";
import { PollStore } from "../store/poll-store.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";

/** Makes the reader of inputs; a policy that is not configured any more never had a success. */
export function createInputReader(policyOf: (name: string) => Policy | undefined, store: Store): ReadInputs {
  const polls = new PollStore(store);
  return async (names) => {
    const states = await readPolicyStates(store, names);
    const instants = new Map<string, number>();
    for (const name of names) {
      const [policy, state] = [policyOf(name), states.get(name)];
      if (policy === undefined || state === undefined) continue;
      const { action, service, repository = null } = policy;
      const newest = state.targets.map((target) => target.newest.taskId);
      // A poll whose expectation is not met did its work, and has not ended well.
      const successMs =
        action.kind === "poll"
          ? await polls.lastMetMs(name, { service, repository, list: action.list })
          : oldestSuccessMs(state, targetsOf(action) ?? (await namedByNewest(newest, store)));
      if (successMs !== undefined) instants.set(name, successMs);
    }
    return instants;
  };
}

/**
 * Since when the set with this hash is the newest, by Redis; Infinity while another one is kept, or
 * none. Where no live process runs the kept one, SetKeeper soon keeps this one.
 */
export async function readNewestSinceMs(store: Store, contentHash: string): Promise<number> {
  try {
    const kept = await readKeptNote(store);
    return kept?.hash === contentHash ? kept.atMs : Number.POSITIVE_INFINITY;
  } catch (error) {
    if (error instanceof NewerVersionError) return Number.POSITIVE_INFINITY;
    throw error;
  }
}

/**
 * Makes the check whether a live worker runs the kept set, in place of the one with this hash. One
 * that this process saw counts `awayForMs` longer: it may restart. One of a newer version does not
 * count where its note cannot be read.
 */
export function createNewerWorkerCheck(
  store: Store,
  contentHash: () => string,
  awayForMs: number,
): () => Promise<boolean> {
  let seen: { readonly hash: string; isLongAway?: () => boolean } | undefined;
  return async () => {
    try {
      const kept = await readKeptNote(store);
      if (kept === undefined || kept.hash === contentHash()) return false;
      const replicas = await readReplicas(store);
      const isAlive = replicas.some(({ hash, roles }) => hash === kept.hash && roles.includes("worker"));
      if (isAlive) seen = { hash: kept.hash };
      if (isAlive || seen?.hash !== kept.hash) return isAlive;
      // Not since it was seen: after an outage of Redis all processes seem to be gone.
      seen.isLongAway ??= createDeadline(awayForMs);
      return !seen.isLongAway();
    } catch (error) {
      if (error instanceof NewerVersionError) return false;
      throw error;
    }
  };
}

/** Who lifts a quarantine that the policy file no longer asks for. */
const byFile = "its file, which has no quarantine any more";

/**
 * Lifts quarantines of policies whose rule is gone from the newest set; returns all pauses after
 * that.
 */
export async function liftDroppedQuarantines(
  store: Store,
  policy: (name: string) => Policy | undefined,
  newestSinceMs: () => Promise<number>,
): Promise<Pause[]> {
  const quarantines = new Quarantines(store);
  const [wanted, counted, nowMs] = await Promise.all([new Pauses(store).all(), quarantines.all(), redisTimeMs(store)]);
  const kept = counted.map(async (pause) => {
    const known = policy(pause.name);
    // An expired quarantine needs no lifting. A removed policy may come back with its rule.
    if (known === undefined || known.quarantine !== undefined || (pause.untilMs ?? 0) <= nowMs) return pause;
    if ((await newestSinceMs()) === Number.POSITIVE_INFINITY) return pause;
    return (await quarantines.release(pause.name, byFile)) ?? pause;
  });
  return [...wanted, ...(await Promise.all(kept))];
}
