// Notes each sync job that a deletion has ended, so that `doctor` and `plan` can name the policies that still mean it. Called with every
// recorded outcome, once at least; noting twice changes nothing.
import type { Outcome, OutcomeReason } from "../tasks/outcome.ts";

/** What the watch needs of the notes (store/deleted-sync-jobs.ts). */
interface DeletionNotes {
  note(
    service: string,
    deleted: {
      readonly repository: string | null;
      readonly syncJob: string;
      readonly atMs: number;
      readonly policy: string;
    },
  ): Promise<void>;
}

/** After these the sync job is gone. Not `already-gone`: nobody knows whether there ever was one. */
const goneReasons: ReadonlySet<string> = new Set<OutcomeReason>([
  "deleted",
  "deleted-no-content",
  "deletion-confirmed",
  "gone-meanwhile",
]);

/** Makes the watch. */
export function createDeletionWatch(notes: DeletionNotes): (outcome: Outcome) => Promise<void> {
  return async ({ kind, reason, service, repository, target: syncJob, finishedAt, policy }) => {
    if (kind !== "delete" || !goneReasons.has(reason)) return;
    await notes.note(service, { repository, syncJob, atMs: Date.parse(finishedAt), policy });
  };
}
