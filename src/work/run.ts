// A run task, step by step. The journal says which step is next; no step waits in place.
//
//   claimed ─▶ lease (─▶ activation, activate-first.ts) ─▶ baseline of the feeds* ─▶ permission (intent written) ─▶ POST once ─▶ answered ─▶ follow ─▶ outcome
//                                                         └─ no answer ─▶ verify in the feeds: confirmed ─▶ follow
//                                                                                              absent    ─▶ unknown
//
// * Not where the answer is the end (`follow.until: accepted`): then how far the feed was known is noted, and start-at-once.ts is the short way.
// A request that was permitted once is never sent again (P2), unless it surely did not leave this machine or the policy says so.
import type { Policy } from "../config/policy-set.ts";
import type { StartEntry } from "../store/start-entry.ts";
import type { Task } from "../tasks/task.ts";
import { activateFirst, activatesFirst } from "./activate-first.ts";
import { approvalsSince } from "./approvals.ts";
import { takeBaseline } from "./baseline.ts";
import { conflictChange } from "./conflict-change.ts";
import { appearedSince, feedOf, follow, unfollow, writeBaseline } from "./evidence.ts";
import { nextLookMs } from "./follow-pace.ts";
import { heldBack } from "./held.ts";
import type { WorkParts } from "./parts.ts";
import { acceptedEnds, askAgain, sendStart } from "./send-start.ts";
import { isFinished, settleRun } from "./settle.ts";
import { type Claim, end, endUnsent, type Step } from "./step.ts";
import { takeLease } from "./take-lease.ts";
import { isLost, verifyStart } from "./verify.ts";

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
  if (held !== undefined) {
    // Nobody reads the feeds meanwhile: the wait for their baseline begins after it.
    await parts.journal.notReady(task.id);
    return held;
  }
  if (policy.overlap !== "allow") {
    const holder = await takeLease(task, parts, owner);
    if (holder === undefined) return askAgain(nowMs);
    if (holder !== task.id && policy.overlap === "skip")
      return endUnsent(owner, "skipped", { reason: "overlap", detail: `${holder} is still running` });
    if (holder !== task.id) return { step: "snooze", untilMs: nowMs + parts.timing.queueForLeaseMs };
  }
  if (activatesFirst(policy)) {
    const step = await activateFirst(task, { parts, policy, owner });
    if (step !== undefined) return step;
  }
  if (acceptedEnds(task, policy, parts)) {
    const { seq: knownSeq } = await parts.book.status(feedOf(task, "activities"));
    return sendStart(task, { parts, claim, baseline: "", knownSeq, acceptedEnds: true });
  }
  const readyAtMs = await parts.journal.ready(task.id);
  const { baseline, isReady, isComplete } = await takeBaseline(task, parts, { readyAtMs, follow: policy.follow });
  if (!isReady && nowMs - readyAtMs < parts.timing.baselineWithinMs) {
    await follow(task, parts, { nowMs, hurry: true });
    return { step: "snooze", untilMs: nowMs + 250 };
  }
  // Where nobody could look: what is found since then and says that it began after the start is of it all the same.
  const knownSeq = baseline.activities === null ? (await parts.book.status(feedOf(task, "activities"))).seq : undefined;
  if (!isComplete) parts.log.warn("run.without-baseline", { policy: task.policy, taskId: task.id });
  return sendStart(task, { parts, claim, baseline: writeBaseline(baseline), knownSeq, acceptedEnds: false });
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
  const deadlineMs = sentAtMs + policy.follow.deadlineMs;
  // Whether it had ended by then is only seen in a walk after it.
  await follow(task, parts, { nowMs, hurry: nowMs >= deadlineMs });
  const appeared = await appearedSince(task, parts, entry);
  const finishSeenAtMs = isFinished(appeared) ? await parts.journal.finishSeen(task.id) : undefined;
  if (finishSeenAtMs !== undefined && entry.finishSeenAtMs === undefined)
    await follow(task, parts, { nowMs, hurry: true });
  const approvals = await approvalsSince(task, parts, { entry, follow: policy.follow, nowMs });
  const ending = settleRun(policy.follow, { ...appeared, nowMs, sentAtMs, finishSeenAtMs, approvals });
  if (ending !== undefined) {
    const conflicts = await conflictChange(task, parts, { entry, appeared, ending });
    return end({ ...ending, ...conflicts, startedAtMs: sentAtMs, answerLost, sends: entry.sends }, from);
  }
  const { attributable } = appeared;
  const { blockedAfterMs, unreadableForMs } = policy.follow;
  const patienceMs = Math.min(blockedAfterMs ?? unreadableForMs, unreadableForMs);
  const run = { nowMs, sentAtMs, deadlineMs, finishSeenAtMs, attributable, patienceMs };
  return { step: "snooze", untilMs: nextLookMs(run, parts.timing) };
}
