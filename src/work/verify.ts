// A start whose answer never came: did it happen? Looks at the feeds. Called by run.ts.
//
//   an activity of it ─▶ confirmed, followed on     nothing in time ─▶ unknown, with the evidence; sent again by onUnknown: retry alone
//                                                   └─ follow.appearsWithin ─▶ shown absent ─▶ sent once more, then not-started
//
// That nothing appears shows that nothing was started only where the operator says how late an activity can be. Else `not-started` is
// said only where the request surely did not arrive, or was refused (send-start.ts).
import type { Policy } from "../config/policy-set.ts";
import type { AnswerLoss, StartEntry } from "../store/start-entry.ts";
import type { Task } from "../tasks/task.ts";
import { type Appeared, appearedSince, feedOf, follow } from "./evidence.ts";
import { lookAgain, noteHold } from "./held.ts";
import type { WorkParts } from "./parts.ts";
import { sendAgain } from "./send-start.ts";
import { type Claim, type Ending, end, type Step } from "./step.ts";
import { sendWithinMs } from "./timing.ts";

/** A start that is shown to be absent is sent so often in all. */
const absentSendsMax = 2;

/** How a start without evidence ends. A 500 says that it failed, but it has been seen to lie: absence for a while proves nothing. */
export function endingOf(loss: AnswerLoss): Pick<Ending, "status" | "evidence" | "reason" | "answerLost"> {
  const reasons = {
    server: "server-error",
    contract: "bad-answer",
    unknown: "answer-lost",
    crash: "answer-lost",
  } as const;
  return { status: "unknown", evidence: "none", reason: reasons[loss.kind], answerLost: isLost(loss) };
}

/** Whether no answer came at all. */
export function isLost({ kind }: AnswerLoss): boolean {
  return kind === "unknown" || kind === "crash";
}

/** Why there is no answer: as noted, or else because the worker died in between. */
export async function noteLoss(task: Task, parts: WorkParts): Promise<AnswerLoss> {
  const detail = "the worker died between the request and its answer";
  return parts.journal.answerLost(task.id, { kind: "crash", detail, atMs: await parts.nowMs() });
}

/**
 * A sleep until the answer must have come, where the next step could only end the task as unknown: whoever sent the request has noted no loss, so it
 * may be held up and not dead. Undefined when it did, or the time is over.
 */
export async function awaitAnswer(
  { lost, lastSentAtMs, claimedAtMs }: StartEntry,
  { timing, nowMs }: WorkParts,
): Promise<Step | undefined> {
  const dueMs = lost === undefined ? (lastSentAtMs ?? claimedAtMs) + timing.verifyForMs : 0;
  return (await nowMs()) < dueMs ? { step: "snooze", untilMs: dueMs } : undefined;
}

/** Looks for the run: confirmed, not yet, sent again, or given up on with what is known. */
export async function verifyStart(
  task: Task,
  policy: Policy,
  { parts, claim }: { parts: WorkParts; claim: Claim },
): Promise<Step> {
  const awaited = policy.onUnknown === "give-up" ? await awaitAnswer(claim.entry, parts) : undefined;
  if (awaited !== undefined) return awaited;
  const lost = claim.entry.lost ?? (await noteLoss(task, parts));
  const entry = { ...claim.entry, lost };
  const sentAtMs = entry.sentAtMs ?? entry.claimedAtMs;
  const unknown = { ...endingOf(lost), startedAtMs: sentAtMs, sends: entry.sends };
  // Of this request: a worker that was held up may take it back, and another one send anew, before the outcome is written.
  const from = { state: "sending", owner: entry.owner } as const;
  if (policy.onUnknown === "give-up")
    return end({ ...unknown, detail: `${lost.detail}; the policy says give-up` }, from);
  const nowMs = await parts.nowMs();
  await follow(task, parts, { nowMs, hurry: true });
  const appeared = await appearedSince(task, parts, entry);
  if (isConfirmed(appeared)) {
    await parts.journal.answered(task);
    parts.log.info("task.start-confirmed", {
      policy: task.policy,
      taskId: task.id,
      target: task.target,
      activity: appeared.ours[0]?.id,
      confidence: appeared.confidence,
    });
    return { step: "snooze", untilMs: nowMs };
  }
  const look = planLook(task, policy, { parts, entry });
  const heldUntilMs = await noteHold(task, parts, { nowMs, heldUntilMs: entry.heldUntilMs });
  // From the first look that could have said the last word: all workers may have been down for hours before it.
  const sinceMs = nowMs < look.untilMs ? look.untilMs : await parts.journal.unreadable(task.id, nowMs);
  const readableAtMs = Math.max(sinceMs, Math.min(heldUntilMs, sentAtMs + policy.follow.deadlineMs));
  const patientUntilMs = readableAtMs + policy.follow.unreadableForMs;
  if (mayYetAppear(appeared, look, { nowMs, patientUntilMs })) {
    if (look.isWhole && nowMs >= look.untilMs) await parts.book.wantWhole(feedOf(task, "activities"), look.untilMs);
    return lookAgain(nowMs, Math.min(heldUntilMs, patientUntilMs));
  }
  const isAbsent = look.isWhole && isLookedFor(appeared, look) && !appeared.syncJobSeen;
  if (policy.onUnknown === "retry" || (isAbsent && entry.sends < absentSendsMax)) {
    const acceptedEnds = policy.follow.until === "accepted";
    const again = await sendAgain(task, { parts, claim, acceptedEnds });
    if (again !== undefined) return again;
  }
  const { confidence } = appeared;
  const detail = `${lost.detail}; ${whatWasSeen(task, appeared, look)}`;
  if (isAbsent)
    return end({ ...unknown, status: "not-started", evidence: "inferred", startedAtMs: undefined, detail }, from);
  return end({ ...unknown, detail, confidence }, from);
}

/** How long is looked, from the newest permission on. */
interface Look {
  /** Until when an activity had time to appear. */
  readonly untilMs: number;
  readonly forMs: number;
  /** Whether its absence would show that nothing was started: then all of the list must be looked at, whatever order it seems to have. */
  readonly isWhole: boolean;
}

/**
 * Where the operator vouches for a time, it runs from when the service had the request at the latest: a request may leave late, and as
 * long as its connection stands a proxy may hold it back. Of a worker that went silent nobody knows how long that was.
 */
function planLook(
  task: Task,
  { follow: { appearsWithinMs } }: Policy,
  { parts, entry }: { readonly parts: WorkParts; readonly entry: StartEntry },
): Look {
  const { lost, sends, lastSentAtMs = entry.claimedAtMs } = entry;
  const { verifyForMs } = parts.timing;
  if (appearsWithinMs === undefined) return { untilMs: lastSentAtMs + verifyForMs, forMs: verifyForMs, isWhole: false };
  const leftAtMs = lastSentAtMs + sendWithinMs;
  const isTold = lost?.atMs !== undefined && lost.kind !== "crash" && sends === 1;
  const hadAtMs = isTold
    ? Math.max(leftAtMs, lost.atMs)
    : leftAtMs + (parts.service(task.service)?.requestTimeoutMs ?? 0);
  const untilMs = Math.max(lastSentAtMs + verifyForMs, hadAtMs + appearsWithinMs);
  return { untilMs, forMs: untilMs - lastSentAtMs, isWhole: true };
}

/** Whether a walk that began after that time could have shown an activity of the start. */
function isLookedFor({ activities, attributable }: Appeared, { untilMs, isWhole }: Look): boolean {
  const { walkStartedAtMs = 0, wholeSinceMs = 0 } = activities;
  return attributable && (isWhole ? wholeSinceMs : walkStartedAtMs) >= untilMs;
}

/** Only an activity that is hardly anybody else's confirms a start that nobody answered. */
function isConfirmed({ ours, confidence }: Appeared): boolean {
  return ours.length > 0 && confidence !== "ambiguous";
}

interface Patience {
  readonly nowMs: number;
  /** Until when a walk is waited for that could show it: for so long somebody has been able to look. */
  readonly patientUntilMs: number;
}

/**
 * Whether another look can show more. After the time that an activity has to appear, one whole walk is waited for: the task may come
 * late itself, after its worker and the walk's died together, or the service let nobody read, and then nobody has looked yet. Bounded, since
 * walks can fail.
 */
function mayYetAppear(appeared: Appeared, look: Look, { nowMs, patientUntilMs }: Patience): boolean {
  if (nowMs < look.untilMs) return true;
  const isPatient = nowMs < patientUntilMs;
  return appeared.attributable && appeared.ours.length === 0 && !isLookedFor(appeared, look) && isPatient;
}

function whatWasSeen(task: Task, appeared: Appeared, look: Look): string {
  const { ours } = appeared;
  if (ours.length > 0) return `${ours.length} activities of sync job ${task.target} may be of it or of another start`;
  if (!appeared.attributable)
    return "whose an activity is cannot be told: map syncJobId, finished and startedAt of activities";
  const { failure } = appeared.activities;
  if (!isLookedFor(appeared, look))
    return `nobody could read the activities in time${failure === undefined ? "" : `: ${failure}`}`;
  if (appeared.syncJobSeen)
    return `an activity of sync job ${task.target} appeared, but nothing says that it began after the start`;
  return `no activity of it appeared within ${Math.round(look.forMs / 1_000)} s`;
}
