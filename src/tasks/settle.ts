// Settling: did the run end, and how? Pure: from what the feeds show now to an ending, or to "not
// yet". Called by run.ts. Direct evidence needs a mapping that names an activity's sync job and
// says whether it is finished. Without one, a list that grew and then stayed quiet settles the run
// by inference (docs/outcomes.md). A waiting approval ends it as blocked.
import type { Follow } from "../config/policy-set.ts";
import { counted } from "../core/plain-text.ts";
import { canonicalJson, hashText } from "../core/stable-hash.ts";
import { leavesOut, readKnowledge } from "../feeds/strategy/choose-walk.ts";
import type { SeenItem } from "../store/feed-mirror.ts";
import type { FeedStatus } from "../store/feed-store.ts";
import type { FeedEvidence, WaitingApprovals } from "./evidence.ts";
import type { TaskEnding } from "./step.ts";

/** What the feeds show of one run. */
export interface RunEvidence extends FeedEvidence, BlockingEvidence {
  readonly nowMs: number;
  /** When the request was permitted. */
  readonly sentAtMs: number;
  /** False when only an activity confirmed the start, which may be of one by hand. */
  readonly isAnswered: boolean;
  /** When all of its activities were first observed finished; undefined while one is not. */
  readonly finishSeenAtMs: number | undefined;
  /** When the first check past the deadline was; undefined before. */
  readonly overdueSinceMs?: number | undefined;
}

/** The evidence for `blocked`. `approvals` undefined: not read for this run, or not yet. */
export interface BlockingEvidence extends Pick<FeedEvidence, "activities" | "ours" | "attributable" | "newConflicts"> {
  readonly sentAtMs: number;
  readonly approvals: WaitingApprovals | undefined;
}

/** Counted in walks: one under way, a rest five times as long (feeds/pace.ts), one more. */
const walksUntilRead = 7;

/** Settles a run whose start is confirmed; undefined while it is too early. */
export function settleRun(follow: Follow, evidence: RunEvidence): TaskEnding | undefined {
  const { ours, confidence, isAnswered } = evidence;
  const ending = settle(follow, evidence);
  if (ending === undefined) return undefined;
  const kind = isAnswered || ending.evidence === "none" ? ending.evidence : "inferred";
  return { ...ending, evidence: kind, ...(ours.length === 0 ? {} : { confidence }) };
}

function settle(follow: Follow, evidence: RunEvidence): TaskEnding | undefined {
  const ending =
    follow.until === "settled"
      ? (settleDirectly(follow, evidence) ?? settleByQuiet(follow, evidence))
      : settleByQuiet(follow, evidence);
  const late = unreadable(follow, evidence) ?? overdue(follow, evidence);
  return ending ?? judgeBlocked(follow, evidence) ?? (late && failedUnread(follow, evidence)) ?? late;
}

type OwnActivities = Pick<RunEvidence, "ours" | "mayBeOurs" | "confidence">;

/** A hash of the activities that ended the run; undefined while one of them is not finished. */
export function finishedActivities(evidence: OwnActivities & Pick<RunEvidence, "attributable">): string | undefined {
  if (!isFinished(evidence)) return undefined;
  const ids = judgedOf(evidence).map(({ id }) => id);
  return hashText(canonicalJson(ids.toSorted()));
}

/** True when every activity that is or may be of the run is finished. */
function isFinished(evidence: OwnActivities & Pick<RunEvidence, "attributable">): boolean {
  const { attributable, ours } = evidence;
  return attributable && ours.length > 0 && judgedOf(evidence).every(({ finished }) => finished === true);
}

/** The activities to judge by. When ambiguous, only what all candidates say is true of this run. */
function judgedOf({ ours, mayBeOurs, confidence }: OwnActivities): readonly SeenItem[] {
  return confidence === "ambiguous" ? [...ours, ...mayBeOurs] : ours;
}

function settleDirectly(follow: Follow, evidence: RunEvidence): TaskEnding | undefined {
  if (!isFinished(evidence) || evidence.finishSeenAtMs === undefined) return undefined;
  const conflictsRead = (evidence.conflictDetails.walkBeganAtMs ?? 0) >= evidence.finishSeenAtMs;
  if (!conflictsRead) return undefined;
  const { newConflicts, confidence } = evidence;
  const isSure = confidence !== "ambiguous";
  if (mayYetBegin(evidence)) return undefined;
  const judged = judgedOf(evidence);
  const failed = judged.filter((item) => item.succeeded === false);
  if (failed.length > 0 && (isSure || failed.length === judged.length)) {
    const name = failed[0]?.label ?? failed[0]?.id;
    const agree = failed.length === judged.length;
    const detail = agree
      ? `activity ${name} did not succeed`
      : `${failed.length} of ${describeActivities(judged.length)} did not succeed: ${name}`;
    // A run may leave several activities: where they disagree, the failed one may be of a start by
    // hand in the same second.
    const kind = confidence === "certain" || (isSure && agree) ? "direct" : "inferred";
    return { status: "failed", evidence: kind, reason: "run-failed", detail, newConflicts };
  }
  if (failed.length > 0) {
    const detail = `${failed.length} of ${describeActivities(judged.length)} did not succeed, and they may be of another start`;
    return { status: "unknown", evidence: "none", reason: "no-evidence", detail, newConflicts };
  }
  const successUnread = judged.find(({ unread }) => unread?.includes("succeeded"));
  if (successUnread !== undefined) {
    const detail = `${describeActivities(judged.length)} finished, and whether ${successUnread.label ?? successUnread.id} succeeded cannot be read`;
    return { status: "unknown", evidence: "none", reason: "no-evidence", detail, newConflicts };
  }
  return judgeConflicts(follow, evidence, isSure ? "direct" : "inferred");
}

/** The failure of a run whose conflicts were not read after its end; undefined: none is seen. */
function failedUnread(follow: Follow, evidence: RunEvidence): TaskEnding | undefined {
  const conflictDetails = { ...evidence.conflictDetails, walkBeganAtMs: Number.POSITIVE_INFINITY };
  const ending = settleDirectly(follow, { ...evidence, conflictDetails, newConflicts: undefined });
  if (ending?.status !== "failed") return undefined;
  return { ...ending, detail: `${ending.detail}; its conflicts could not be read` };
}

function settleByQuiet(follow: Follow, evidence: RunEvidence): TaskEnding | undefined {
  if (evidence.attributable && follow.until === "settled") return undefined;
  const { activities, conflictDetails, ours, mayBeOurs, others, givenAway, unnamed } = evidence;
  // What appeared may be of other starts alone.
  const isGivenAway = givenAway > 0 && givenAway === others;
  const isOfOthers = isGivenAway && ours.length + mayBeOurs.length + unnamed.length === 0;
  if (!evidence.possibleSeen || isOfOthers) return undefined;
  const grewAtMs = Math.max(activities.grewAtMs ?? 0, conflictDetails.grewAtMs ?? 0, evidence.sentAtMs);
  // Until the last walk of both, not until now: an unread list is not quiet.
  const readUntilMs = Math.min(activities.walkBeganAtMs ?? 0, conflictDetails.walkBeganAtMs ?? 0);
  if (readUntilMs - grewAtMs < follow.quietForMs) return undefined;
  // Nothing new appears while a long one goes on.
  if (evidence.endsMapped && judgedInQuiet(evidence).some(({ finished }) => finished === false)) return undefined;
  return failedInQuiet(evidence) ?? judgeConflicts(follow, evidence, "inferred");
}

/** Where no activity is surely its own, those count that may be. */
function judgedInQuiet({ ours, mayBeOurs, unnamed, confidence }: RunEvidence): readonly SeenItem[] {
  return ours.length > 0 && confidence !== "ambiguous" ? ours : [...ours, ...mayBeOurs, ...unnamed];
}

/** Ends a quiet run of which an activity did not succeed, or does not tell; undefined: none. */
function failedInQuiet(evidence: RunEvidence): TaskEnding | undefined {
  const { confidence, newConflicts, unnamed, ours } = evidence;
  // Without ids an activity that has ended is another one, and the older stays as it was.
  const judged = judgedInQuiet(evidence).filter(({ finished }) => finished !== false);
  const bad = judged.filter(({ succeeded }) => succeeded === false);
  const failed = bad.find(({ finished }) => finished === true) ?? bad[0];
  const one = failed ?? judged.find(({ unread }) => unread?.includes("succeeded"));
  if (one === undefined) return undefined;
  const name = one.label ?? one.id;
  const what = failed === undefined ? `whether ${name} succeeded cannot be read` : `${name} did not succeed`;
  const whose = unnamed.includes(one) ? ", and of which sync job it is cannot be told" : "";
  const detail = `the activities stayed quiet, and ${what}${whose}`;
  const isItsOwn = ours.length > 0 && confidence !== "ambiguous";
  return failed?.finished === true && isItsOwn
    ? { status: "failed", evidence: "inferred", reason: "run-failed", detail, newConflicts }
    : { status: "unknown", evidence: "none", reason: "no-evidence", detail, newConflicts };
}

function judgeConflicts(follow: Follow, evidence: RunEvidence, kind: TaskEnding["evidence"]): TaskEnding {
  const { newConflicts, ours, others, confidence, perhapsNewConflicts } = evidence;
  const counts = isFinished(evidence) ? { activities: ours.length } : {};
  const ended = isFinished(evidence) ? "finished" : "the activities grew and then stayed quiet";
  if (newConflicts !== undefined && newConflicts > (follow.conflictsMax ?? 0)) {
    const detail = `${ended} with ${newConflicts} new conflict${newConflicts === 1 ? "" : "s"} (at most ${follow.conflictsMax ?? 0} allowed)`;
    return { status: "conflicts", evidence: kind, reason: "new-conflicts", detail, newConflicts, ...counts };
  }
  if ((newConflicts ?? 0) + perhapsNewConflicts > (follow.conflictsMax ?? 0)) {
    const perhaps = counted(perhapsNewConflicts, "conflict", "conflicts");
    const detail =
      newConflicts === undefined
        ? `${ended}; ${perhaps} may be of it or older, since they could not be read right before the start`
        : `${ended}; ${perhaps} may be of it: of a sync job that cannot be read, or back under a known id`;
    return { status: "unknown", evidence: "none", reason: "no-evidence", detail, newConflicts };
  }
  const whose =
    confidence === "ambiguous" ? ", perhaps of another start too" : others > 0 ? `; ${others} more are of others` : "";
  // Where the mapping, or an item, says nothing of success, it is assumed.
  const isKnown = judgedOf(evidence).every(({ succeeded }) => succeeded !== undefined);
  const detail = isFinished(evidence)
    ? `${describeActivities(ours.length)} finished${isKnown ? "" : ", success is assumed"}${whose}`
    : ended;
  const ending = { status: "succeeded", reason: "completed", detail, newConflicts, ...counts } as const;
  return { ...ending, evidence: isKnown ? kind : "inferred" };
}

function unreadable({ unreadableForMs }: Follow, evidence: RunEvidence): TaskEnding | undefined {
  const { nowMs, sentAtMs, activities, conflictDetails, newConflicts } = evidence;
  // Time in which no walk was tried says nothing: all workers were away, or the service throttled.
  const unreadFor = ({ unreadSinceMs = 0, unreadUntilMs = 0 }: FeedStatus) =>
    Math.min(nowMs, unreadUntilMs) - Math.max(unreadSinceMs, sentAtMs);
  if (Math.max(unreadFor(activities), unreadFor(conflictDetails)) < unreadableForMs) return undefined;
  const failure = activities.failure ?? conflictDetails.failure ?? "";
  return {
    status: "unknown",
    evidence: "none",
    reason: "no-evidence",
    detail: `the feeds cannot be read: ${failure}`,
    newConflicts,
  };
}

/** Past the deadline. It waits for a reading that began then: the run may have ended until then. */
function overdue(follow: Follow, evidence: RunEvidence): TaskEnding | undefined {
  const { nowMs, sentAtMs, newConflicts } = evidence;
  const deadlineMs = sentAtMs + follow.deadlineMs;
  if (nowMs < deadlineMs) return undefined;
  const lists = [evidence.activities, evidence.conflictDetails];
  const readUntilMs = Math.min(endsReadUntilMs(evidence.activities), evidence.conflictDetails.walkBeganAtMs ?? 0);
  // A finished run is settled once its conflicts are read and no activity of it may yet begin.
  if (readUntilMs >= deadlineMs && !isFinished(evidence)) {
    const perhapsEnded = whyPerhapsEnded(evidence);
    const what = perhapsEnded ?? whatWasSeen(evidence);
    const seen = [what, describeWaiting(evidence.approvals)].filter(Boolean).join("; ");
    const detail = `not settled within its deadline: ${seen}`;
    return perhapsEnded === undefined
      ? { status: "timed-out", evidence: "none", reason: "deadline", detail, newConflicts }
      : { status: "unknown", evidence: "none", reason: "no-evidence", detail, newConflicts };
  }
  const walkMs = Math.max(...lists.flatMap(({ walkTookMs = 0, ownWalkTookMs = 0 }) => [walkTookMs, ownWalkTookMs]));
  const patientFromMs = Math.max(deadlineMs, evidence.overdueSinceMs ?? 0);
  if (nowMs < patientFromMs + follow.unreadableForMs + walkMs * walksUntilRead) return undefined;
  // Walks that leave pages out do not count.
  const read =
    readUntilMs > 0
      ? `not been read completely since ${new Date(readUntilMs).toISOString()}`
      : "never been read completely";
  const detail = `not settled within its deadline, and the feeds have ${read}`;
  return { status: "unknown", evidence: "none", reason: "no-evidence", detail, newConflicts };
}

/** Until when a list was read so that each end shows: walks may leave open items out. */
export function endsReadUntilMs({ knowledge, walkBeganAtMs = 0, wholeWalkBeganAtMs = 0 }: FeedStatus): number {
  return leavesOut(readKnowledge(knowledge)) ? wholeWalkBeganAtMs : walkBeganAtMs;
}

/** Whether an activity of this run may still appear, as far as the list was read. */
function mayYetBegin({ confidence, activities, mayBeginUntilMs }: RunEvidence): boolean {
  return confidence === "ambiguous" && (activities.walkBeganAtMs ?? 0) < mayBeginUntilMs;
}

/** Why the run may have ended where no end of it was seen; undefined: nothing speaks for that. */
function whyPerhapsEnded(evidence: RunEvidence): string | undefined {
  const { attributable, confidence, ours, mayBeOurs, others, rivals, unjudgedSeen, unnamed } = evidence;
  const isPerhapsOver = (item: SeenItem) => item.finished === true || isEndUnread(item);
  const mayBeOver = unjudgedSeen || unnamed.some(isPerhapsOver);
  const untoldWhy =
    ours.length === 0 && mayBeOver ? "an activity appeared, and whether it is its own cannot be told" : undefined;
  if (!attributable && ours.some(isPerhapsOver)) return "an activity finished that may be its last";
  if (!attributable) return untoldWhy;
  const isSure = confidence === "certain" || confidence === "likely";
  const possible = isSure ? ours : [...ours, ...mayBeOurs];
  if (!isSure && possible.some(({ finished }) => finished === true))
    return "an activity finished that may be of it or of another start";
  const endUnread = possible.find(isEndUnread);
  const goesOn = isSure && possible.some((item) => item.finished !== true && !isEndUnread(item));
  if (endUnread !== undefined && !goesOn) return `whether ${endUnread.label ?? endUnread.id} finished cannot be read`;
  // By the service's clock these are not its own, and no start in flight has them.
  if (possible.length === 0 && others > 0 && rivals === 0) return whatWasSeen(evidence);
  return untoldWhy;
}

function isEndUnread({ unread }: SeenItem): boolean {
  return unread?.includes("finished") === true;
}

function whatWasSeen(evidence: RunEvidence): string {
  const { attributable, ours, others, rivals } = evidence;
  if (!attributable) return "nothing in the feeds shows whether it ended";
  if (ours.length > 0) return `${describeActivities(ours.length)} appeared, not all finished`;
  // Beside another start they may be that one's.
  return others > 0 && rivals === 0
    ? `${describeActivities(others)} of the sync job appeared, and by the service's clock none is its own: compare it with Redis's`
    : "no new activity of it was seen";
}

function describeActivities(count: number): string {
  return counted(count, "activity", "activities");
}

/**
 * The ending `blocked`, or undefined. Direct when approvals and activities name their sync job;
 * otherwise any change in the repository's activities is progress.
 */
export function judgeBlocked({ blockedAfterMs }: Follow, evidence: BlockingEvidence): TaskEnding | undefined {
  const { approvals, activities, ours, sentAtMs, newConflicts } = evidence;
  const [first] = approvals?.waiting ?? [];
  if (blockedAfterMs === undefined || approvals === undefined || first === undefined) return undefined;
  if (ours.some(({ finished }) => finished === true) || activities.failingSinceMs !== undefined) return undefined;
  const isSure = approvals.ofSyncJob && evidence.attributable;
  const progress = isSure ? ours.map(({ seenAtMs = 0 }) => seenAtMs) : [activities.grewAtMs ?? 0];
  const sinceMs = Math.max(sentAtMs, first.seenAtMs ?? 0, ...progress);
  const seenUntilMs = Math.min(approvals.readAtMs, endsReadUntilMs(activities));
  if (seenUntilMs - sinceMs < blockedAfterMs) return undefined;
  const whose = isSure ? "" : "; it may be of another sync job";
  return {
    status: "blocked",
    evidence: isSure ? "direct" : "inferred",
    reason: "approval-waiting",
    detail: `${describeWaiting(approvals)}, and nothing has finished since${whose}`,
    newConflicts,
  };
}

/** Describes the approvals that wait, or that such are not seen; empty when none does. */
function describeWaiting(approvals: WaitingApprovals | undefined): string {
  if (approvals?.unseenWhy !== undefined) return `approvals ${approvals.unseenWhy}, so a waiting one is not seen`;
  const [first, ...more] = approvals?.waiting ?? [];
  if (first === undefined) return "";
  return `approval ${nameOf(first)} waits${more.length === 0 ? "" : `, and ${more.length} more`}`;
}

function nameOf({ id, label }: SeenItem): string {
  return label === undefined ? id : `${label} (${id})`;
}
