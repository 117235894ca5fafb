// A poll task: reads a list or only its count, judges it by the policy's expectation, and leaves a
// note for the next poll. Changes nothing in the service. An unreadable list ends as unknown; only
// an expectation that is not met ends as failed.

import { type PollExpectation, parseExpectation } from "../feeds/poll-expectation.ts";
import { listNames } from "../model/feed.ts";
import type { Outcome } from "../model/outcome.ts";
import type { Task } from "../model/task.ts";
import type { Attempt } from "../model/task-processing.ts";
import { complete, retry, snooze } from "../model/verdict.ts";
import { ServiceError } from "../service/service-error.ts";
import type { PollMemory, PollNote, PollObservation, PollState } from "../store/poll-store.ts";
import { stepAfterFailure } from "./defer.ts";
import { feedOf } from "./followed-lists.ts";
import { reasonOf } from "./judge.ts";
import { judgeList, type ListRead, missingFrom, packSeen } from "./judge-list.ts";
import {
  type ListWish,
  pollItemsMax,
  type ReadAnswer,
  type Reading,
  readAgain,
  readTogether,
} from "./read-together.ts";
import { endRemoved, endTooLate, type StepResult, type TaskEnding, withoutOutcome } from "./step.ts";
import type { PollDependencies } from "./step-dependencies.ts";

/** Reads and judges the list once. */
export async function stepPoll(task: Task, deps: PollDependencies, attempt: Attempt): Promise<StepResult> {
  const policy = deps.policy(task.policy);
  const service = deps.service(task.service);
  if (policy?.action.kind !== "poll" || policy.action.list !== task.target)
    return endRemoved(undefined, `policy ${task.policy} does not poll ${task.target}`);
  if (service === undefined) return endRemoved(undefined, `service ${task.service} is not`);
  // Another worker recorded the outcome and died: it must not be judged anew.
  if (await deps.polls.isOver(task)) return withoutOutcome;
  const nowMs = await deps.nowMs();
  if (nowMs > task.startByMs) return endTooLate(undefined);
  const feed = feedOf(task, policy.action.list);
  const expectation = parseExpectation(policy.action);
  const basis = await deps.polls.read(task.policy, feed);
  const wish = {
    ...({ feed, service, kind: expectation.readsItems ? "items" : "count", signal: attempt.signal } as const),
    ...{ sinceMs: task.slotMs, afterMs: basis.observation?.atMs ?? 0 },
    // A follower has the slot of its predecessor: its own turn began when it first asked.
    turnOf: policy.after === undefined ? undefined : task.id,
  };
  try {
    const first = await readTogether(wish, deps);
    if (first.answer === "wait") return snooze(nowMs + first.waitMs);
    const ending = judgeRead(first, expectation, basis);
    if (first.answer === "too-long" || !first.isPaged || !tellsGone(ending, first.list, expectation, basis))
      return complete({ ...ending, startedAtMs: nowMs });
    return await stepAgain(first, { wish, expectation, basis, nowMs }, deps);
  } catch (error) {
    return stepAfterFailure(task, error, { nowMs, ending: (failure) => unread(failure, nowMs) });
  }
}

interface PollStep {
  readonly wish: ListWish;
  readonly expectation: PollExpectation;
  readonly basis: PollMemory;
  readonly nowMs: number;
}

/** Reads the list once more, and judges both readings. @throws what a first reading throws. */
async function stepAgain(
  first: ReadAnswer,
  { wish, expectation, basis, nowMs }: PollStep,
  deps: PollDependencies,
): Promise<StepResult> {
  try {
    const second = await readAgain(first, wish, deps);
    if (second.answer === "wait") return snooze(nowMs);
    return complete({ ...judgeBoth(first, second, expectation, basis), startedAtMs: nowMs });
  } catch (error) {
    if (!(error instanceof ServiceError) || error.kind !== "throttled") throw error;
    // Spends an attempt: the next one may cost both readings.
    return retry(error.retryAfterMs ?? 0, unread(error, nowMs));
  }
}

/** Whether something that an earlier poll saw seems gone, or the state changes as if it were. */
function tellsGone(ending: TaskEnding, list: ListRead, expectation: PollExpectation, basis: PollMemory): boolean {
  if (expectation.seesNew) return missingFrom(basis.observation?.seen, list).size > 0;
  if (expectation.looksBack && list.count < (basis.observation?.count ?? 0)) return true;
  const state = stateOf(ending);
  // What is absent does not offend.
  const mayLack = expectation.expect !== undefined || state === "good";
  return mayLack && basis.state !== undefined && state !== basis.state;
}

/** Judges by the second reading. If only that one differs from the last poll: by the first. */
function judgeBoth(first: ReadAnswer, second: Reading, expectation: PollExpectation, basis: PollMemory): TaskEnding {
  const ending = judgeRead(second, expectation, basis, first.list);
  if (second.answer === "too-long" || stateOf(ending) === basis.state) return ending;
  const old = judgeRead(first, expectation, basis, second.list);
  return stateOf(old) === basis.state ? old : ending;
}

/** `other`: another reading; what is in neither is gone. */
function judgeRead(read: Reading, expectation: PollExpectation, basis: PollMemory, other?: ListRead): TaskEnding {
  if (read.answer === "too-long") return tooLong;
  const { list, beganAtMs } = read;
  const { seesNew, looksBack } = expectation;
  const ending = judgeList(expectation, list, looksBack ? basis.observation : undefined);
  const facts = list.items.map((one) => one.facts);
  const missing = (from: ListRead) => missingFrom(basis.observation?.seen, from);
  const slipped = seesNew && other !== undefined ? missing(list).difference(missing(other)) : undefined;
  const seen = seesNew ? packSeen(facts, list.keyedBy, slipped) : undefined;
  const observation: PollObservation = { count: list.count, atMs: beganAtMs, seen };
  // An unjudged list leaves no observation: what is new in it is still new at the next poll.
  const poll = {
    basis: looksBack ? basis : undefined,
    isNews: looksBack,
    observation: ending.status === "unknown" ? undefined : observation,
  };
  return { ...ending, poll };
}

const tooLong: TaskEnding = {
  ...{ status: "unknown", evidence: "none", reason: "expectation-unreadable" },
  detail: `the list holds more than ${pollItemsMax} items, the most that a poll reads: expect something of \`count\` alone`,
};

function unread({ kind, message: detail }: ServiceError, startedAtMs: number): TaskEnding {
  return { status: "unknown", evidence: "none", reason: reasonOf(kind), detail, startedAtMs };
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
  deps: Pick<PollDependencies, "policy" | "polls">,
): Promise<PollChange | undefined> {
  if (task.kind !== "poll" || ending.status === "skipped" || ending.status === "missed") return undefined;
  const action = deps.policy(task.policy)?.action;
  const list = action?.kind === "poll" ? action.list : listNames.find((name) => name === task.target);
  if (list === undefined) return undefined;
  const feed = feedOf(task, list);
  const { state: before = "good", revision } = ending.poll?.basis ?? (await deps.polls.read(task.policy, feed));
  const state = stateOf(ending);
  const changed = state !== before || (state === "bad" && ending.poll?.isNews === true);
  return { changed, note: { revision, feed, state, observation: ending.poll?.observation } };
}

function stateOf({ status }: Pick<Outcome, "status">): PollState {
  return status === "succeeded" ? "good" : status === "failed" ? "bad" : "unknown";
}
