// A poll task: reads a list or only its count, and holds it against the policy's expectation. Changes nothing anywhere.
// What could not be read is unknown, never failed: only an expectation that does not hold is.

import { parseExpectation } from "../feeds/poll-expectation.ts";
import { ServiceError } from "../service/service-error.ts";
import type { PollSight } from "../store/poll-memories.ts";
import type { Attempt } from "../tasks/seams.ts";
import type { Task } from "../tasks/task.ts";
import { feedOf } from "./evidence.ts";
import { waitAfter } from "./held.ts";
import { judge, reasonOf } from "./judge.ts";
import { judgeList } from "./judge-list.ts";
import type { WorkParts } from "./parts.ts";
import { pollItemsMax, readTogether } from "./read-together.ts";
import { packSeen } from "./seen-digests.ts";
import { type Ending, end, type Step } from "./step.ts";

/** Reads and judges the list once. */
export async function stepPoll(task: Task, parts: WorkParts, attempt: Attempt): Promise<Step> {
  const policy = parts.policy(task.policy);
  const service = parts.service(task.service);
  if (policy?.action.kind !== "poll" || service === undefined) {
    const detail = `policy ${task.policy} is not configured any more`;
    return end({ status: "skipped", evidence: "direct", reason: "policy-removed", detail });
  }
  // Somebody recorded the outcome and died: it may have to be told, and must not be judged anew.
  if (await parts.polls.isOver(task.id)) return { step: "settled" };
  const startedAtMs = await parts.nowMs();
  if (startedAtMs > task.startByMs) {
    const detail = "its turn came after its start-by time";
    return end({ status: "missed", evidence: "direct", reason: "too-late", detail });
  }
  const feed = feedOf(task, policy.action.list);
  const expectation = parseExpectation(policy.action);
  const basis = await parts.polls.read(task.policy, feed);
  const wish = {
    ...({ feed, service, kind: expectation.readsItems ? "items" : "count", signal: attempt.signal } as const),
    ...{ sinceMs: task.slotMs, afterMs: basis.sight?.atMs ?? 0 },
    // The slot of a policy that follows another is older than its turn.
    turnOf: policy.after === undefined ? undefined : task.id,
  };
  try {
    const { seesNew, looksBack } = expectation;
    const read = await readTogether(wish, parts);
    if (read.answer === "wait") return { step: "snooze", untilMs: startedAtMs + read.waitMs };
    if (read.answer === "too-long") return tooLong(startedAtMs);
    const { list, beganAtMs } = read;
    const ending = judgeList(expectation, list, looksBack ? basis.sight : undefined);
    const seen = seesNew ? packSeen(list.items.map(({ facts }) => facts)) : undefined;
    const sight: PollSight = { count: list.count, atMs: beganAtMs, seen };
    // What nobody could judge is looked at again: it is still new at the next poll.
    const poll = {
      basis: looksBack ? basis : undefined,
      isNews: looksBack,
      sight: ending.status === "unknown" ? undefined : sight,
    };
    return end({ ...ending, poll, startedAtMs });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return onFailure(task, error, startedAtMs);
  }
}

function tooLong(startedAtMs: number): Step {
  const detail = `the list holds more than ${pollItemsMax} items, the most that a poll reads: expect something of \`count\` alone`;
  return end({ status: "unknown", evidence: "none", reason: "expectation-unreadable", detail, startedAtMs });
}

function onFailure(task: Task, error: ServiceError, startedAtMs: number): Step {
  const unread: Ending = {
    status: "unknown",
    evidence: "none",
    reason: reasonOf[error.kind],
    detail: error.message,
    startedAtMs,
  };
  switch (judge(error, "poll")) {
    case "retry":
    case "verify":
      return { step: "retry", afterMs: error.retryAfterMs ?? 0, ending: unread };
    case "wait":
      return waitAfter(task, error, { nowMs: startedAtMs });
    case "again":
      return { step: "snooze", untilMs: startedAtMs };
    case "give-up":
      return end(unread);
  }
}
