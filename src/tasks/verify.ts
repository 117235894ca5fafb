// Verification: did a start in doubt happen? Looks for its activities in the feeds.
//
//   an activity of it ─▶ confirmed, followed on
//   none that is surely its own, in time ─▶ unknown, with what was seen (onUnknown: give-up: not
//     │  looked for; if its sender is silent, once its request has timed out)
//     ├─ no activity counts as its own (also where the lists could not be read, or do not say
//     │  whose it is), onUnknown: retry ─▶ sent again first
//     └─ follow.appearsWithin ─▶ shown absent ─▶ sent once more, then not-started
//
// Absence proves `not-started` only where the operator states how late an activity can be
// (`follow.appearsWithin`) and the lists were read right before the start. Else only send-start.ts
// ends a sent request as `not-started`: it surely did not arrive, or was refused.
import type { Policy } from "../config/policy-set.ts";
import { counted } from "../core/plain-text.ts";
import type { Task } from "../model/task.ts";
import { complete, snooze } from "../model/verdict.ts";
import { doubtOfOnlyRequest, type StartDoubt, type StartEntry, sentAtMsOf } from "../store/start-entry.ts";
import { noteDenied, verifyLater } from "./defer.ts";
import { appearedSince, type FeedEvidence, hasKnownChanged, lookedForUntilMs, receivedByMs } from "./evidence.ts";
import { feedOf, requestLists } from "./followed-lists.ts";
import { endsByAnswer, sendAgain } from "./send-start.ts";
import type { Claim, StepResult, TaskEnding } from "./step.ts";
import type { RunDependencies, StartDependencies } from "./step-dependencies.ts";

/** The most requests of a start that is shown to be absent. */
const absentSendsMax = 2;

/** How a start without evidence ends. Never `failed`: a 500 may follow a start that happened. */
export function endingOf({ kind }: StartDoubt): Pick<TaskEnding, "status" | "evidence" | "reason"> {
  const reasons = {
    server: "server-error",
    throttled: "server-error",
    contract: "bad-answer",
    "answer-lost": "answer-lost",
    crash: "answer-lost",
  } as const;
  return { status: "unknown", evidence: "none", reason: reasons[kind] };
}

/**
 * Whether no answer of the service is known: lost on its way (also 408, 502, 504), or not noted.
 */
export function isDoubtWithoutAnswer({ kind }: StartDoubt): boolean {
  return kind === "answer-lost" || kind === "crash";
}

/**
 * Whether no answer is known of a request of this start. Of several, only the first doubt is noted,
 * and the answer to one says nothing of the others.
 */
export function hasLostAnswer({ state, doubt, sends }: Pick<StartEntry, "state" | "doubt" | "sends">): boolean {
  return sends > 1 || (doubt === undefined ? state === "sending" : isDoubtWithoutAnswer(doubt));
}

/**
 * The doubt of a start without a good answer: the noted one, else that its sender is silent
 * (`crash`), which is logged and, unless the start has ended, noted now.
 */
export async function standingDoubt(
  { id: taskId, policy, target }: Task,
  { journal, log, nowMs }: Pick<StartDependencies, "journal" | "log" | "nowMs">,
): Promise<StartDoubt> {
  const detail =
    "no worker noted an answer, or whether the request went out: its worker died or hung, or Redis was out";
  const atMs = await nowMs();
  const doubt = await journal.noteDoubt(taskId, { kind: "crash", detail, atMs });
  const isNew = doubt.kind === "crash" && doubt.atMs === atMs;
  if (isNew) log.warn("task.in-doubt", { policy, taskId, target, kind: doubt.kind, detail });
  return doubt;
}

/**
 * Sleeps until the search may end (`lookedForUntilMs`): the newest request has timed out by then.
 * Without a noted doubt its sender may be slow, not dead. A noted doubt may be about an earlier
 * request.
 */
export async function snoozeUntilTimedOut(
  task: Task,
  entry: StartEntry,
  deps: Pick<StartDependencies, "timing" | "nowMs" | "service">,
): Promise<StepResult | undefined> {
  const dueMs = doubtOfOnlyRequest(entry) === undefined ? lookedForUntilMs(task, entry, deps) : 0;
  return (await deps.nowMs()) < dueMs ? snooze(dueMs) : undefined;
}

/** Verifies a start: confirmed, not yet, sent again, or ended with what is known. */
export async function verifyStart(
  task: Task,
  policy: Policy,
  { deps, claim }: { readonly deps: RunDependencies; readonly claim: Claim },
): Promise<StepResult> {
  // Any other policy waits at least as long for the end of the window.
  const awaited = policy.onUnknown === "give-up" ? await snoozeUntilTimedOut(task, claim.entry, deps) : undefined;
  if (awaited !== undefined) return awaited;
  const doubt = claim.entry.doubt ?? (await standingDoubt(task, deps));
  const entry = { ...claim.entry, doubt };
  const sentAtMs = sentAtMsOf(entry);
  // Ends this request only while the journal still shows it: a slow sender may take its permission
  // back, and another worker may send anew.
  const from = { state: "sending", claimant: entry.claimant } as const;
  const sent = { startedAtMs: sentAtMs, sends: entry.sends, answerLost: hasLostAnswer(entry) };
  const unknown = { ...endingOf(doubt), detail: doubt.detail, ...sent, from };
  if (policy.onUnknown === "give-up")
    return complete({ ...unknown, detail: `${doubt.detail}; the policy says give-up` });
  const nowMs = await deps.nowMs();
  await requestLists(task, deps, { nowMs, hurry: true });
  const appeared = await appearedSince(task, deps, entry);
  if (isConfirmed(appeared)) {
    await deps.journal.noteConfirmed(task, "evidence");
    deps.log.info("task.start-confirmed", {
      policy: task.policy,
      taskId: task.id,
      target: task.target,
      activity: appeared.ours[0]?.id,
      confidence: appeared.confidence,
    });
    return snooze(nowMs);
  }
  const window = planWindow(task, policy, { deps, entry });
  const deniedUntilMs = await noteDenied(task, deps, { nowMs, deniedUntilMs: entry.deniedUntilMs });
  // Patience starts with the first check that could have been final: all workers may have been down
  // for hours before it. Time of denied reads does not count, up to the run's deadline.
  const windowOverAtMs = nowMs < window.untilMs ? window.untilMs : await deps.journal.noteWindowOver(task.id, nowMs);
  const patientFromMs = Math.max(windowOverAtMs, Math.min(deniedUntilMs, sentAtMs + policy.follow.deadlineMs));
  const patientUntilMs = patientFromMs + policy.follow.unreadableForMs;
  if (mayYetAppear(appeared, window, { nowMs, patientUntilMs })) {
    if (window.provesAbsence && nowMs >= window.untilMs)
      await deps.feeds.wantWhole(feedOf(task, "activities"), window.untilMs);
    return verifyLater(nowMs, Math.min(deniedUntilMs, patientUntilMs));
  }
  return endUnconfirmed(task, policy, { deps, claim, entry, appeared, window, unknown });
}

/** A search that has ended. `entry`: with its doubt; `unknown`: how it ends without a finding. */
interface EndedSearch {
  readonly deps: RunDependencies;
  readonly claim: Claim;
  readonly entry: StartEntry;
  readonly appeared: FeedEvidence;
  readonly window: AppearanceWindow;
  readonly unknown: TaskEnding;
}

/** Nothing confirmed the start: sent again, shown to be absent, or unknown. */
async function endUnconfirmed(
  task: Task,
  policy: Policy,
  { deps, claim, entry, appeared, window, unknown }: EndedSearch,
): Promise<StepResult> {
  const mayBeAbsent = window.provesAbsence && wasWindowRead(appeared, window) && appeared.hasBaseline;
  const syncJobSeen = appeared.syncJobSeen || (mayBeAbsent && (await hasKnownChanged(task, deps, entry)));
  const isAbsent = mayBeAbsent && !syncJobSeen;
  const mayRetry = policy.onUnknown === "retry" && appeared.ours.length === 0;
  if (mayRetry || (isAbsent && entry.sends < absentSendsMax)) {
    const again = await sendAgain(task, { deps, claim, isEndedByAnswer: endsByAnswer(task, policy, deps) });
    if (again !== undefined) return again;
  }
  const { confidence } = appeared;
  const detail = `${unknown.detail}; ${describeSearch(task, { ...appeared, syncJobSeen }, window)}`;
  if (isAbsent)
    return complete({ ...unknown, status: "not-started", evidence: "inferred", startedAtMs: undefined, detail });
  return complete({ ...unknown, detail, confidence });
}

/** The window in which an activity must appear, from the newest permission on (`lastSentAtMs`). */
interface AppearanceWindow {
  /** The end of the window. */
  readonly untilMs: number;
  /** From the newest permission to its end, as the detail tells. */
  readonly forMs: number;
  /** Whether no activity by then proves that nothing was started: a whole walk must show it. */
  readonly provesAbsence: boolean;
}

/** With `follow.appearsWithin` it counts from when the service had the request at the latest. */
function planWindow(
  task: Task,
  { follow: { appearsWithinMs } }: Policy,
  { deps, entry }: { readonly deps: RunDependencies; readonly entry: StartEntry },
): AppearanceWindow {
  const { lastSentAtMs = entry.claimedAtMs } = entry;
  const appearsByMs = receivedByMs(task, entry, deps) + (appearsWithinMs ?? 0);
  const untilMs = Math.max(lookedForUntilMs(task, entry, deps), appearsByMs);
  return { untilMs, forMs: untilMs - lastSentAtMs, provesAbsence: appearsWithinMs !== undefined };
}

/** Whether a walk after the window could have shown an activity of the start. */
function wasWindowRead(
  { activities, attributable }: FeedEvidence,
  { untilMs, provesAbsence }: AppearanceWindow,
): boolean {
  const { walkBeganAtMs = 0, wholeWalkBeganAtMs = 0 } = activities;
  return attributable && (provesAbsence ? wholeWalkBeganAtMs : walkBeganAtMs) >= untilMs;
}

/** Only an activity that is hardly another start's confirms a start in doubt. */
function isConfirmed({ ours, confidence }: FeedEvidence): boolean {
  return ours.length > 0 && confidence !== "ambiguous";
}

interface VerifyPatience {
  readonly nowMs: number;
  /**
   * Until when it waits for a walk that could show the activity; time of denied reads does not
   * count.
   */
  readonly patientUntilMs: number;
}

/**
 * Whether another check can show more. After the window the task waits for one walk that began
 * after it (with `follow.appearsWithin`: of the whole list); bounded, since walks can fail.
 */
function mayYetAppear(
  appeared: FeedEvidence,
  window: AppearanceWindow,
  { nowMs, patientUntilMs }: VerifyPatience,
): boolean {
  if (nowMs < window.untilMs) return true;
  const isPatient = nowMs < patientUntilMs;
  return appeared.attributable && appeared.ours.length === 0 && !wasWindowRead(appeared, window) && isPatient;
}

function describeSearch(task: Task, appeared: FeedEvidence, window: AppearanceWindow): string {
  const { ours } = appeared;
  if (ours.length > 0) {
    const found = counted(ours.length, "activity", "activities");
    return `${found} of sync job ${task.target} may be of it or of another start`;
  }
  if (!appeared.attributable)
    return "the mapping does not say whose an activity is: map syncJobId, finished and startedAt of activities";
  const { failure } = appeared.activities;
  if (!wasWindowRead(appeared, window))
    return `the activities could not be read in time${failure === undefined ? "" : `: ${failure}`}`;
  if (appeared.syncJobSeen)
    return `an activity appeared or changed that may be of sync job ${task.target}, but nothing says that it is of this start`;
  const none = `no activity of it appeared within ${Math.round(window.forMs / 1_000)} s`;
  return window.provesAbsence && !appeared.hasBaseline
    ? `${none}, which shows nothing: no reading from right before it is there to compare with`
    : none;
}
