// Whether an answer to GetSyncJobById is about the sync job that was asked for. Called before anything is believed of it.
import type { SyncJob } from "../service/client.ts";
import type { Task } from "../tasks/task.ts";

/** Says in one line that the answer is another sync job's; undefined when it is the task's own, or does not say whose. */
export function tellOther({ target }: Task, { syncJobId }: SyncJob): string | undefined {
  if (syncJobId === undefined || syncJobId === null || String(syncJobId) === target) return undefined;
  return `the service answered with sync job ${syncJobId} instead of ${target}`;
}
