// Notes each deleted sync job, so that `doctor` and `plan` can name the policies that still use it.
// Called with every recorded outcome, at least once; a repeated note changes nothing.
import type { Outcome, OutcomeReason } from "../model/outcome.ts";

/** The part of store/deleted-sync-jobs.ts that the watch uses. */
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

/** After these the sync job is gone. Not `already-gone`: it may never have existed. */
const goneReasons: ReadonlySet<string> = new Set<OutcomeReason>([
  "deleted",
  "deleted-no-content",
  "deletion-confirmed",
  "gone-meanwhile",
]);

/** Creates the watch. */
export function createDeletionWatch(notes: DeletionNotes): (outcome: Outcome) => Promise<void> {
  return async ({ kind, reason, service, repository, target: syncJob, finishedAt, policy }) => {
    if (kind !== "delete" || !goneReasons.has(reason)) return;
    await notes.note(service, { repository, syncJob, atMs: Date.parse(finishedAt), policy });
  };
}
