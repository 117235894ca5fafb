// Did the run end, and how? Pure: from what the feeds show now to an ending, or to "not yet".
// Direct evidence needs a mapping that says whose an activity is and whether it is final; without one, a list that grew
// and then stayed quiet settles the run by inference (design §4.8).
import type { Policy } from "../config/policy-set.ts";
import type { SeenItem } from "../store/seen-item.ts";
import { type BlockingEvidence, judgeBlocked, tellWaiting } from "./blocked.ts";
import type { Appeared } from "./evidence.ts";
import type { Ending } from "./step.ts";

/** What the feeds show of one run. */
export interface RunEvidence extends Appeared, BlockingEvidence {
  readonly nowMs: number;
  /** When the request was permitted. */
  readonly sentAtMs: number;
  /** When the run was first seen finished; undefined when it is not. */
  readonly finishSeenAtMs: number | undefined;
}

/** One that had just begun, the pause after it (feeds/pace.ts), and the next one. */
const walksUntilRead = 7;

/** The longest pause between two walks of a list that is read as it should be; of a short deadline a quarter. */
const freshForMs = 60_000;

type Activities = Pick<RunEvidence, "ours" | "mayBeOurs" | "confidence">;

/** Where another start's activities may be ours, and ours its, only what all of them say is true of this one. */
function judgedOf({ ours, mayBeOurs, confidence }: Activities): readonly SeenItem[] {
  return confidence === "ambiguous" ? [...ours, ...mayBeOurs] : ours;
}

/** True when direct evidence says that every activity of the run is final, and those that may be of it, too: what it left is read after that. */
export function isFinished(evidence: Activities & Pick<RunEvidence, "attributable">): boolean {
  const { attributable, ours } = evidence;
  return attributable && ours.length > 0 && judgedOf(evidence).every(({ finished }) => finished === true);
}

/** Settles a run that was surely or confirmedly started; undefined while it is too early to say. */
export function settleRun(follow: Policy["follow"], evidence: RunEvidence): Ending | undefined {
  const { ours, confidence } = evidence;
  const ending = settle(follow, evidence);
  return ending === undefined || ours.length === 0 ? ending : { ...ending, confidence };
}

function settle(follow: Policy["follow"], evidence: RunEvidence): Ending | undefined {
  const ending =
    follow.until === "settled"
      ? (settleDirectly(follow, evidence) ?? settleByQuiet(follow, evidence))
      : settleByQuiet(follow, evidence);
  return ending ?? judgeBlocked(follow, evidence) ?? unreadable(follow, evidence) ?? overdue(follow, evidence);
}

function settleDirectly(follow: Policy["follow"], evidence: RunEvidence): Ending | undefined {
  if (!isFinished(evidence) || evidence.finishSeenAtMs === undefined) return undefined;
  const conflictsRead = (evidence.conflictDetails.walkStartedAtMs ?? 0) >= evidence.finishSeenAtMs;
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
      : `${failed.length} of ${activities(judged.length)} did not succeed: ${name}`;
    // Where they disagree, the one that failed may be of a start by hand in the same second: a run may leave several.
    const kind = confidence === "certain" || (isSure && agree) ? "direct" : "inferred";
    return { status: "failed", evidence: kind, reason: "run-failed", detail, newConflicts };
  }
  if (failed.length > 0) {
    const detail = `${failed.length} of ${activities(judged.length)} did not succeed, and they may be of another start`;
    return { status: "unknown", evidence: "none", reason: "no-evidence", detail, newConflicts };
  }
  return judgeConflicts(follow, evidence, isSure ? "direct" : "inferred");
}

function settleByQuiet(follow: Policy["follow"], evidence: RunEvidence): Ending | undefined {
  if (evidence.attributable && follow.until === "settled") return undefined;
  const { activities, conflictDetails } = evidence;
  if (!evidence.grew) return undefined;
  const grewAtMs = Math.max(activities.grewAtMs ?? 0, conflictDetails.grewAtMs ?? 0, evidence.sentAtMs);
  // As far as both have been read, not by the clock: what nobody may read for a while is not quiet.
  const readUntilMs = Math.min(activities.walkStartedAtMs ?? 0, conflictDetails.walkStartedAtMs ?? 0);
  if (readUntilMs - grewAtMs < follow.quietForMs) return undefined;
  return judgeConflicts(follow, evidence, "inferred");
}

function judgeConflicts(follow: Policy["follow"], evidence: RunEvidence, kind: Ending["evidence"]): Ending {
  const { newConflicts } = evidence;
  if (newConflicts !== undefined && newConflicts > (follow.conflictsMax ?? 0)) {
    const detail = `finished with ${newConflicts} new conflict${newConflicts === 1 ? "" : "s"} (at most ${follow.conflictsMax ?? 0} allowed)`;
    return { status: "conflicts", evidence: kind, reason: "new-conflicts", detail, newConflicts };
  }
  const { ours, others, confidence, perhapsNewConflicts } = evidence;
  if (perhapsNewConflicts > (follow.conflictsMax ?? 0)) {
    const detail = `finished; ${perhapsNewConflicts} conflict${perhapsNewConflicts === 1 ? "" : "s"} may be of it or older, since nobody could read them right before the start`;
    return { status: "unknown", evidence: "none", reason: "no-evidence", detail };
  }
  const whose =
    confidence === "ambiguous" ? ", perhaps of another start too" : others > 0 ? `; ${others} more are of others` : "";
  const detail = isFinished(evidence)
    ? `${activities(ours.length)} finished${whose}`
    : "the activities grew and then stayed quiet";
  return { status: "succeeded", evidence: kind, reason: "completed", detail, newConflicts };
}

function unreadable({ unreadableForMs }: Policy["follow"], evidence: RunEvidence): Ending | undefined {
  const { nowMs, activities, conflictDetails, newConflicts } = evidence;
  const since = Math.min(activities.failingSinceMs ?? nowMs, conflictDetails.failingSinceMs ?? nowMs);
  if (nowMs - since < unreadableForMs) return undefined;
  const failure = activities.failure ?? conflictDetails.failure ?? "";
  return {
    status: "unknown",
    evidence: "none",
    reason: "no-evidence",
    detail: `the feeds cannot be read: ${failure}`,
    newConflicts,
  };
}

/** Of a run that nobody saw right before its deadline it is not known whether it had ended by then: one more reading is waited for. */
function overdue(follow: Policy["follow"], evidence: RunEvidence): Ending | undefined {
  const { nowMs, sentAtMs, newConflicts } = evidence;
  const deadlineMs = sentAtMs + follow.deadlineMs;
  if (nowMs < deadlineMs) return undefined;
  const lists = [evidence.activities, evidence.conflictDetails];
  const readUntilMs = Math.min(...lists.map(({ walkStartedAtMs = 0 }) => walkStartedAtMs));
  // One that was seen finished is settled as soon as its conflicts are read; beside others that may be much later.
  const isEnding = isFinished(evidence) && !mayYetBegin(evidence);
  const freshFromMs = deadlineMs - Math.min(freshForMs, follow.deadlineMs / 4);
  if (readUntilMs >= freshFromMs && !isEnding) {
    const seen = [whatWasSeen(evidence), tellWaiting(evidence.approvals)].filter(Boolean).join("; ");
    const detail = `not settled within its deadline: ${seen}`;
    return { status: "timed-out", evidence: "none", reason: "deadline", detail, newConflicts };
  }
  const walkMs = Math.max(...lists.map(({ walkTookMs = 0 }) => walkTookMs));
  if (nowMs < deadlineMs + follow.unreadableForMs + walkMs * walksUntilRead) return undefined;
  const since = readUntilMs > 0 ? `not been read since ${new Date(readUntilMs).toISOString()}` : "never been read";
  const detail = `not settled within its deadline, and the feeds have ${since}`;
  return { status: "unknown", evidence: "none", reason: "no-evidence", detail, newConflicts };
}

/** Whether one may yet appear that is of this run, instead of those that may be another start's. */
function mayYetBegin({ confidence, nowMs, mayBeginUntilMs }: RunEvidence): boolean {
  return confidence === "ambiguous" && nowMs < mayBeginUntilMs;
}

function whatWasSeen(evidence: RunEvidence): string {
  const { attributable, ours } = evidence;
  if (!attributable) return "nothing in the feeds tells whether it ended";
  if (isFinished(evidence)) return `${activities(ours.length)} finished, perhaps of another start of the same seconds`;
  return ours.length > 0 ? `${activities(ours.length)} appeared, not all final` : "no activity of it was seen";
}

function activities(count: number): string {
  return count === 1 ? "1 activity" : `${count} activities`;
}
