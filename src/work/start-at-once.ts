// The short way of a plain start: one whose end is the service's answer, so that nothing is read before and nothing is followed.
// One step of Redis permits it, with a place at the service's gate, one more ends it. Called by process-task.ts before the steps one by one, which have the
// same rules: whatever stands in the way here (a lease, a redelivery, a Redis that must be looked at) is told apart there.
import { createDeadline } from "../core/clock.ts";
import { requestSubject } from "../core/gate.ts";
import type { Task } from "../tasks/task.ts";
import { activatesFirst } from "./activate-first.ts";
import { waitAtGate } from "./held.ts";
import type { WorkParts } from "./parts.ts";
import { acceptedEnds, sendPermitted } from "./send-start.ts";
import type { Step } from "./step.ts";
import { leaseMs } from "./take-lease.ts";
import { sendWithinMs } from "./timing.ts";

/** Starts a run or an activation in as few steps as there are; undefined, with nothing sent, when that is not possible now. */
export async function startAtOnce(task: Task, parts: WorkParts, owner: string): Promise<Step | undefined> {
  const policy = parts.policy(task.policy);
  const service = parts.service(task.service);
  if (policy === undefined || service === undefined || !acceptedEnds(task, policy, parts)) return undefined;
  if (activatesFirst(policy)) return undefined;
  if (parts.stopping.aborted || (await parts.held(task.service)) !== undefined) return undefined;
  const isTooLate = createDeadline(sendWithinMs);
  const answer = await parts.journal.sendAtOnce(task, owner, {
    startByMs: task.startByMs,
    slotMs: task.slotMs,
    leaseMs: task.kind === "run" && policy.overlap !== "allow" ? leaseMs : undefined,
    notesFeed: task.kind === "run",
    entrance: parts.entrance(task.service, requestSubject({ ...task, key: task.target })),
  });
  if (answer === undefined) return undefined;
  if ("hold" in answer) {
    return waitAtGate(task, answer.hold, { nowMs: await parts.nowMs(), owner });
  }
  const { sentAtMs, pass } = answer;
  const permitted = { service, isTooLate, sends: 1, sentAtMs, startedAtMs: sentAtMs, pass };
  return sendPermitted(task, { parts, owner, acceptedEnds: true }, permitted);
}
