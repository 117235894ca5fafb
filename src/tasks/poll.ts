// A poll task: reads a list or only its count, judges it by the policy's expectation, and leaves a
// note for the next poll. Changes nothing in the service. An unreadable list ends as unknown; only
// a broken expectation ends as failed.
import { listNames } from "../core/list-name.ts";
import { parseExpectation } from "../feeds/poll-expectation.ts";
import type { Attempt } from "../model/contracts.ts";
import type { Outcome } from "../model/outcome.ts";
import type { Task } from "../model/task.ts";
import { ServiceError } from "../service/service-error.ts";
import type { PollNote, PollObservation, PollState } from "../store/poll-store.ts";
import type { TaskDependencies } from "./contracts.ts";
import { deferAfter } from "./defer.ts";
import { feedOf } from "./evidence.ts";
import { judge, reasonOf } from "./judge.ts";
import { judgeList, packSeen } from "./judge-list.ts";
import { pollItemsMax, readTogether } from "./read-together.ts";
import { end, type TaskEnding, type TaskStep } from "./step.ts";

/** Reads and judges the list once. */
export async function stepPoll(task: Task, parts: TaskDependencies, attempt: Attempt): Promise<TaskStep> {
  const policy = parts.policy(task.policy);
  const service = parts.service(task.service);
  if (policy?.action.kind !== "poll" || service === undefined) {
    const detail = `policy ${task.policy} is not configured any more`;
    return end({ status: "skipped", evidence: "direct", reason: "policy-removed", detail });
  }
  // Another worker recorded the outcome and died: it may be unpublished, and must not be judged
  // anew.
  if (await parts.polls.isOver(task)) return { step: "settled" };
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
    // The slot of a follower is older than its turn.
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
    const observation: PollObservation = { count: list.count, atMs: beganAtMs, seen };
    // An unjudged list leaves no observation: what is new in it is still new at the next poll.
    const poll = {
      basis: looksBack ? basis : undefined,
      isNews: looksBack,
      observation: ending.status === "unknown" ? undefined : observation,
    };
    return end({ ...ending, poll, startedAtMs });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return onFailure(task, error, startedAtMs);
  }
}

function tooLong(startedAtMs: number): TaskStep {
  const detail = `the list holds more than ${pollItemsMax} items, the most that a poll reads: expect something of \`count\` alone`;
  return end({ status: "unknown", evidence: "none", reason: "expectation-unreadable", detail, startedAtMs });
}

function onFailure(task: Task, error: ServiceError, startedAtMs: number): TaskStep {
  const unread: TaskEnding = {
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
    case "defer":
      return deferAfter(task, error, { nowMs: startedAtMs });
    case "resume":
      return { step: "snooze", untilMs: startedAtMs };
    case "give-up":
      return end(unread);
  }
}

/** Whether the outcome differs from the last one, and the note for the next poll. */
interface PollChange {
  readonly changed: boolean;
  readonly note: PollNote;
}

/** The change by a poll; undefined for another task, and for a poll that did not read its list. */
export async function pollChange(
  task: Task,
  ending: TaskEnding,
  parts: TaskDependencies,
): Promise<PollChange | undefined> {
  if (task.kind !== "poll" || ending.status === "skipped" || ending.status === "missed") return undefined;
  const action = parts.policy(task.policy)?.action;
  const list = action?.kind === "poll" ? action.list : listNames.find((name) => name === task.target);
  if (list === undefined) return undefined;
  const feed = feedOf(task, list);
  const { state: before = "good", revision } = ending.poll?.basis ?? (await parts.polls.read(task.policy, feed));
  const state = stateOf(ending);
  const changed = state !== before || (state === "bad" && ending.poll?.isNews === true);
  return { changed, note: { revision, feed, state, sight: ending.poll?.observation } };
}

function stateOf({ status }: Pick<Outcome, "status">): PollState {
  return status === "succeeded" ? "good" : status === "failed" ? "bad" : "unknown";
}
