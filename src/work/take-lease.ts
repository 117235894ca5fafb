// Takes the lease of a sync job before a start. Called by run.ts and delete.ts. A holder ends its lease with its outcome; one whose outcome
// Redis has forgotten is over for the queue and holds it all the same, and nobody would end that before the lease does by itself.
import type { Task } from "../tasks/task.ts";
import type { WorkParts } from "./parts.ts";

/** How long a run holds its sync job: a holder that does not prolong its lease for so long has died. */
export const leaseMs = 300_000;

/**
 * Takes or prolongs the lease for a task that this owner has claimed, also from a holder that nobody works on any more and that has sent nothing
 * or is over. Answers which task holds it; undefined when the claim is not this owner's any more.
 */
export async function takeLease(task: Task, parts: WorkParts, owner: string): Promise<string | undefined> {
  const holder = await parts.leases.acquire(task, owner, leaseMs);
  if (holder === undefined || holder === task.id) return holder;
  const fate = await parts.fate(task.service, holder);
  if (fate === "open") return holder;
  const taken = await parts.leases.takeOver(task, owner, { holder, isOver: fate === "over", durationMs: leaseMs });
  if (taken === task.id) parts.log.warn("lease.taken-over", { policy: task.policy, taskId: task.id, holder });
  return taken;
}
