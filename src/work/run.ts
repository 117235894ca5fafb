// A run task, step by step. The journal says which step is next; no step waits in place.
//
//   claimed ─▶ lease ─▶ baseline of the feeds* ─▶ permission (intent written) ─▶ POST once ─▶ answered ─▶ follow ─▶ outcome
//                                                         └─ no answer ─▶ verify in the feeds: confirmed ─▶ follow
//                                                                                              absent    ─▶ unknown
//
// * Not where the answer is the end (`follow.until: accepted`): then how far the feed was known is noted, and start-at-once.ts is the short way.
// A request that was permitted once is never sent again (P2), unless it surely did not leave this machine or the policy says so.
import type { Policy } from "../config/policy-set.ts";
import type { StartEntry } from "../store/start-entry.ts";
import type { Task } from "../tasks/task.ts";
import { appearedSince, type Baseline, baselineSince, feedOf, follow, unfollow, writeBaseline } from "./evidence.ts";
import { heldBack } from "./held.ts";
import type { WorkParts } from "./parts.ts";
import { acceptedEnds, askAgain, sendStart } from "./send-start.ts";
import { isFinished, settleRun } from "./settle.ts";
import { type Claim, end, endUnsent, type Step } from "./step.ts";
import type { WorkTiming } from "./timing.ts";
import { isLost, verifyStart } from "./verify.ts";

/** How long a run holds its sync job: a holder that does not prolong its lease for so long has died. */
export const leaseMs = 300_000;

/** Does the next step of a run. */
export async function stepRun(task: Task, parts: WorkParts, claim: Claim): Promise<Step> {
  const { entry } = claim;
  if (entry.state === "settled") return { step: "settled" };
  const policy = parts.policy(task.policy);
  if (entry.state === "claimed") return prepare(task, { parts, policy, claim });
  if (policy === undefined || parts.service(task.service) === undefined) {
    const detail = `the ${policy === undefined ? "policy" : "service"} was removed while the run went on`;
    const { state, sentAtMs: startedAtMs, sends } = entry;
    return end(
      { status: "unknown", evidence: "none", reason: "policy-removed", detail, startedAtMs, sends },
      { state },
    );
  }
  return entry.state === "sending"
    ? verifyStart(task, policy, { parts, claim })
    : followRun(task, policy, { parts, entry });
}

/** Gives back what a run holds. Called once its outcome stands. */
export async function releaseRun(task: Task, parts: WorkParts): Promise<void> {
  await unfollow(task, parts);
  await parts.leases.release(task, task.id);
}

interface Preparation {
  readonly parts: WorkParts;
  readonly policy: Policy | undefined;
  readonly claim: Claim;
}

async function prepare(task: Task, { parts, policy, claim }: Preparation): Promise<Step> {
  const { owner } = claim;
  const nowMs = await parts.nowMs();
  if (policy === undefined || parts.service(task.service) === undefined) {
    const what = policy === undefined ? `policy ${task.policy}` : `service ${task.service}`;
    return endUnsent(owner, "skipped", { reason: "policy-removed", detail: `${what} is not configured any more` });
  }
  if (nowMs > task.startByMs)
    return endUnsent(owner, "missed", { reason: "too-late", detail: "its turn came after its start-by time" });
  // Before the lease and the baseline: neither may grow old while the service asks for patience.
  const held = await heldBack(task, parts, { nowMs, owner });
  if (held !== undefined) return held;
  if (policy.overlap !== "allow") {
    const holder = await parts.leases.acquire(task, owner, leaseMs);
    if (holder === undefined) return askAgain(nowMs);
    if (holder !== task.id && policy.overlap === "skip")
      return endUnsent(owner, "skipped", { reason: "overlap", detail: `${holder} is still running` });
    if (holder !== task.id) return { step: "snooze", untilMs: nowMs + parts.timing.queueForLeaseMs };
  }
  if (acceptedEnds(task, policy)) {
    const { seq: knownSeq } = await parts.book.status(feedOf(task, "activities"));
    return sendStart(task, { parts, claim, baseline: "", knownSeq, acceptedEnds: true });
  }
  const readyAtMs = await parts.journal.ready(task.id);
  const baseline = await baselineSince(task, parts, readyAtMs);
  if (!isComplete(baseline) && nowMs - readyAtMs < parts.timing.baselineWithinMs) {
    await follow(task, parts, { nowMs, hurry: true });
    return { step: "snooze", untilMs: nowMs + 250 };
  }
  if (!isComplete(baseline)) parts.log.warn("run.without-baseline", { policy: task.policy, taskId: task.id });
  return sendStart(task, { parts, claim, baseline: writeBaseline(baseline), acceptedEnds: false });
}

async function followRun(
  task: Task,
  policy: Policy,
  { parts, entry }: { parts: WorkParts; entry: StartEntry },
): Promise<Step> {
  const nowMs = await parts.nowMs();
  const sentAtMs = entry.sentAtMs ?? entry.claimedAtMs;
  const answerLost = entry.lost !== undefined && isLost(entry.lost);
  const from = { state: "answered" } as const;
  if (policy.follow.until === "accepted") {
    const detail = answerLost
      ? "the answer was lost; an activity of it confirms the start"
      : "the service accepted the start";
    return end(
      {
        status: "accepted",
        evidence: "direct",
        reason: "answered",
        detail,
        startedAtMs: sentAtMs,
        answerLost,
        sends: entry.sends,
      },
      from,
    );
  }
  await follow(task, parts, { nowMs, hurry: false });
  const appeared = await appearedSince(task, parts, entry);
  const finishSeenAtMs = isFinished(appeared) ? await parts.journal.finishSeen(task.id) : undefined;
  if (finishSeenAtMs !== undefined && entry.finishSeenAtMs === undefined)
    await follow(task, parts, { nowMs, hurry: true });
  const ending = settleRun(policy.follow, { ...appeared, nowMs, sentAtMs, finishSeenAtMs, timing: parts.timing });
  if (ending !== undefined) return end({ ...ending, startedAtMs: sentAtMs, answerLost, sends: entry.sends }, from);
  return { step: "snooze", untilMs: nowMs + followPaceMs(nowMs - sentAtMs, parts.timing) };
}

/** How long a follower sleeps: a fifth of the run's age, inside its bounds. */
function followPaceMs(ageMs: number, { followPaceMs: [leastMs, mostMs] }: WorkTiming): number {
  return Math.min(mostMs, Math.max(leastMs, ageMs / 5));
}

function isComplete(baseline: Baseline): boolean {
  return baseline.activities !== null && baseline.conflictDetails !== null;
}
