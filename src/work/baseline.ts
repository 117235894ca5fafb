// What was known of the feeds right before a run, put together from evidence.ts, conflict-change.ts and approvals.ts. Called by run.ts
// until it is ready; reads the feed book, never the service.
import type { Follow } from "../config/policy-set.ts";
import type { Task } from "../tasks/task.ts";
import { approvalsBefore } from "./approvals.ts";
import { conflictsBefore } from "./conflict-change.ts";
import { type Baseline, baselineSince } from "./evidence.ts";
import type { WorkParts } from "./parts.ts";

/** A baseline as far as it goes. */
export interface TakenBaseline {
  readonly baseline: Baseline;
  /** False while a walk is worth waiting for. */
  readonly isReady: boolean;
  /** False where activities or conflicts were not read in time: then the run may end as unknown. */
  readonly isComplete: boolean;
}

/** Takes the baseline of a run, counting only walks that began after this instant. */
export async function takeBaseline(
  task: Task,
  parts: WorkParts,
  { readyAtMs, follow }: { readonly readyAtMs: number; readonly follow: Follow },
): Promise<TakenBaseline> {
  const [read, approvals] = await Promise.all([
    baselineSince(task, parts, readyAtMs),
    follow.blockedAfterMs === undefined ? undefined : approvalsBefore(task, parts, readyAtMs),
  ]);
  const isComplete = read.activities !== null && read.conflictDetails !== null;
  if (!isComplete) return { baseline: read, isReady: false, isComplete };
  const conflicts = await conflictsBefore(task, parts, read);
  const baseline: Baseline = {
    ...read,
    ...(conflicts === undefined ? {} : { conflictsBefore: conflicts }),
    ...(typeof approvals === "number" ? { approvals } : {}),
  };
  return { baseline, isReady: approvals !== "awaited", isComplete };
}
