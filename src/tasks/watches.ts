// The watches over recorded outcomes: one counts the failures of a policy in a row and logs its
// quarantine, the other notes deleted sync jobs for `doctor` and `plan`. Each may see an outcome
// twice; the counting itself is atomic in Redis (store/quarantines.ts).
import type { EventLog } from "../core/event-log.ts";
import { type Outcome, type OutcomeReason, weightOf } from "../model/outcome.ts";
import type { DeletedSyncJobs } from "../store/deleted-sync-jobs.ts";
import type { QuarantineRule, Quarantines } from "../store/quarantines.ts";

/** Creates the watch of quarantines. A policy without a rule is not counted. */
export function createQuarantineWatch(
  counts: Pick<Quarantines, "count">,
  ruleOf: (policy: string) => QuarantineRule | undefined,
  log: EventLog,
): (outcome: Outcome) => Promise<void> {
  return async (outcome) => {
    const rule = ruleOf(outcome.policy);
    const weight = weightOf(outcome);
    if (rule === undefined || weight === "nothing") return;
    const { policy, taskId, status, reason, detail } = outcome;
    const isGood = weight === "good";
    const note = isGood ? `a success: ${taskId}` : `the last ended ${status} (${reason}): ${detail}`;
    const change = await counts.count({ policy, slotMs: Date.parse(outcome.slot), isGood, note }, rule);
    if (change === "quarantined")
      log.error("policy.quarantined", { policy, after: rule.after, forMs: rule.forMs, taskId, status, reason, detail });
    if (change === "released") log.info("policy.released", { policy, by: note });
  };
}

/** After these the sync job is gone. Not `already-gone`: it may never have existed. */
const goneReasons: ReadonlySet<string> = new Set<OutcomeReason>([
  "deleted",
  "deleted-no-content",
  "deletion-confirmed",
  "gone-meanwhile",
]);

/** Creates the watch of deleted sync jobs. */
export function createDeletionWatch(notes: Pick<DeletedSyncJobs, "note">): (outcome: Outcome) => Promise<void> {
  return async ({ kind, reason, service, repository, target: syncJob, finishedAt, policy }) => {
    if (kind !== "delete" || !goneReasons.has(reason)) return;
    await notes.note(service, { repository, syncJob, atMs: Date.parse(finishedAt), policy });
  };
}
