// Finds policies that name sync jobs which Syncline has deleted. Reads only.
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { showInstant } from "../core/instant.ts";
import { deletionByHand } from "../model/task.ts";
import { type DeletedSyncJob, DeletedSyncJobs } from "../store/deleted-sync-jobs.ts";
import { readPolicyStates } from "../store/policy-states.ts";
import type { Store } from "../store/redis.ts";

/** A policy that names a deleted sync job. */
export interface DeletedTarget {
  readonly policy: Policy;
  readonly syncJob: string;
  /** When it was deleted, milliseconds UTC. */
  readonly atMs: number;
  /** The policy that deleted it, or `by-hand.delete`. */
  readonly by: string;
}

/** Every policy with every deleted sync job that it names, in the order of the policies. */
export async function findDeletedTargets(
  { policies }: Pick<PolicySet, "policies">,
  store: Store,
): Promise<DeletedTarget[]> {
  const notes = new DeletedSyncJobs(store);
  const deleted = new Map<string, DeletedSyncJob>();
  for (const service of new Set(policies.map((policy) => policy.service))) {
    for (const note of await notes.of(service))
      deleted.set(JSON.stringify([service, note.repository, note.syncJob]), note);
  }
  if (deleted.size === 0) return [];
  const states = await readPolicyStates(
    store,
    policies.map(({ name }) => name),
  );
  return policies.flatMap((policy) =>
    namedSyncJobs(policy).flatMap((id): DeletedTarget[] => {
      const syncJob = String(id);
      const note = deleted.get(JSON.stringify([policy.service, policy.repository ?? null, syncJob]));
      const own = states.get(policy.name)?.targets.find(({ target }) => target === syncJob);
      // It is back under its id where a run of it has ended well since.
      const isBack = policy.follow.until !== "accepted" && (own?.lastSuccessMs ?? 0) > (note?.atMs ?? 0);
      return note === undefined || isBack ? [] : [{ policy, syncJob, atMs: note.atMs, by: note.policy }];
    }),
  );
}

/** What is wrong, in words. */
export function tellDeleted({ syncJob, atMs, by, policy }: DeletedTarget): string {
  const whom = by === deletionByHand ? "by hand" : by === policy.name ? "by this policy" : `by policy ${by}`;
  return `names sync job ${syncJob}, which was deleted ${whom} at ${showInstant(atMs)}`;
}

/** What to do about it. */
export function cureOfDeleted({ by, policy }: DeletedTarget): string {
  return by === policy.name
    ? "it has done its work: remove the policy"
    : "remove the sync job from the policy, or the policy";
}

/** The ids of the sync jobs that a policy names, also to delete; without those that masks name. */
export function namedSyncJobs({ action }: Pick<Policy, "action">): readonly number[] {
  if (action.kind === "delete") return [action.syncJob];
  return "syncJobs" in action ? action.syncJobs : [];
}
