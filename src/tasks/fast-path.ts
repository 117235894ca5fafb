// The fast path of a start that ends with the service's answer: no baseline, nothing to follow. One
// script in Redis acquires the limiter and permits the start, one more ends it. Called by
// process-task.ts before the ordinary steps, which follow the same rules and handle every obstacle
// (a lease, a redelivery, an undecided fence).
import { createDeadline } from "../core/clock.ts";
import { resourceKey } from "../core/limiter.ts";
import { isFromMasks, type Task } from "../model/task.ts";
import { activatesFirst } from "./activate-first.ts";
import type { StartDependencies } from "./contracts.ts";
import { deferByLimiter } from "./defer.ts";
import { sendWithinMs } from "./follow-pace.ts";
import { acceptedEnds, sendPermitted } from "./send-start.ts";
import { leaseMs, type StepResult } from "./step.ts";

/**
 * Starts a run or an activation; undefined, with nothing sent, when this path is not open now, or
 * not for such a task.
 */
export async function startFastPath(
  task: Task,
  deps: StartDependencies,
  claimant: string,
): Promise<StepResult | undefined> {
  // A deletion reads its guard first, and masks name no sync job yet.
  if (task.kind === "delete" || isFromMasks(task)) return undefined;
  const policy = deps.policy(task.policy);
  const service = deps.service(task.service);
  if (policy === undefined || service === undefined || !acceptedEnds(task, policy, deps)) return undefined;
  if (activatesFirst(policy)) return undefined;
  if (deps.stopping.aborted || (await deps.deniedBy(task.service)) !== undefined) return undefined;
  const isTooLate = createDeadline(sendWithinMs);
  const answer = await deps.journal.tryAcquireAndSend(task, claimant, {
    startByMs: task.startByMs,
    slotMs: task.slotMs,
    leaseMs: task.kind === "run" && policy.overlap !== "allow" ? leaseMs : undefined,
    notesFeed: task.kind === "run",
    limiter: deps.scriptedAcquire(task.service, resourceKey({ ...task, key: task.target })),
  });
  if (answer === undefined) return undefined;
  if ("denied" in answer) return deferByLimiter(task, answer.denied, { nowMs: await deps.nowMs(), claimant });
  const { sentAtMs, permit } = answer;
  const permitted = { service, isTooLate, sends: 1, sentAtMs, startedAtMs: sentAtMs, permit };
  return sendPermitted(task, { deps, claimant, acceptedEnds: true }, permitted);
}
