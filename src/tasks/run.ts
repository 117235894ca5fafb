// A run task. The start journal says which step is next; a step never waits in place.
//
//   claimed ─▶ lease (─▶ activation, activate-first.ts) ─▶ baseline of the feeds* ─▶ permission (intent written) ─▶ POST once ─▶ answered ─▶ follow ─▶ outcome
//                                                         └─ no answer ─▶ verify in the feeds: confirmed ─▶ follow
//                                                                                              absent    ─▶ unknown
//
// * Not with `follow.until: accepted`, where the answer is the end: the journal notes the feed's
// sequence instead. Such a run usually takes the fast path (fast-path.ts). A permitted request is
// never sent twice (P2), unless it surely stayed on this machine or the policy allows it.
import type { Policy } from "../config/policy-set.ts";
import type { Task } from "../model/task.ts";
import type { StartEntry } from "../store/start-entry.ts";
import { activateFirst, activatesFirst } from "./activate-first.ts";
import { approvalsSince, conflictChange, takeBaseline } from "./baseline.ts";
import type { TaskDependencies } from "./contracts.ts";
import { deferIfLimited } from "./defer.ts";
import { appearedSince, feedOf, follow, unfollow, writeBaseline } from "./evidence.ts";
import { nextCheckMs } from "./follow-pace.ts";
import { acceptedEnds, askAgain, sendStart } from "./send-start.ts";
import { finishedActivities, settleRun } from "./settle.ts";
import { type Claim, end, endUnsent, type TaskEnding, type TaskStep, takeLease } from "./step.ts";
import { isAnswerLost, verifyStart } from "./verify.ts";

/** Does the next step of a run. */
export async function stepRun(task: Task, parts: TaskDependencies, claim: Claim): Promise<TaskStep> {
  const { entry } = claim;
  if (entry.state === "settled") return { step: "settled" };
  const policy = parts.policy(task.policy);
  if (entry.state === "claimed") return prepare(task, { parts, policy, claim });
  if (policy === undefined || parts.service(task.service) === undefined) {
    const detail = `the ${policy === undefined ? "policy" : "service"} was removed while the run went on`;
    const { state, sentAtMs: startedAtMs, sends } = entry;
    return end(
      {
        ...{ status: "unknown", evidence: "none", reason: "policy-removed", detail },
        ...{ startedAtMs, sends, answerLost: isAnswerLost(entry) },
      },
      { state },
    );
  }
  return entry.state === "sending"
    ? verifyStart(task, policy, { parts, claim })
    : followRun(task, policy, { parts, entry });
}

/** Releases the lease and the feeds of a run. Called once its outcome is recorded. */
export async function releaseRun(task: Task, parts: TaskDependencies): Promise<void> {
  await unfollow(task, parts);
  await parts.leases.release(task, task.id);
}

interface Preparation {
  readonly parts: TaskDependencies;
  readonly policy: Policy | undefined;
  readonly claim: Claim;
}

async function prepare(task: Task, { parts, policy, claim }: Preparation): Promise<TaskStep> {
  const { owner } = claim;
  const nowMs = await parts.nowMs();
  if (policy === undefined || parts.service(task.service) === undefined) {
    const what = policy === undefined ? `policy ${task.policy}` : `service ${task.service}`;
    return endUnsent(owner, "skipped", { reason: "policy-removed", detail: `${what} is not configured any more` });
  }
  if (nowMs > task.startByMs)
    return endUnsent(owner, "missed", { reason: "too-late", detail: "its turn came after its start-by time" });
  // Before the lease and the baseline: neither may grow old while limits defer the run.
  const deferred = await deferIfLimited(task, parts, { nowMs, owner });
  if (deferred !== undefined) {
    // No feed is read meanwhile: the wait for the baseline starts afterwards.
    await parts.journal.notReady(task.id);
    return deferred;
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
    const { seq: knownSeq } = await parts.feeds.status(feedOf(task, "activities"));
    return sendStart(task, { parts, claim, baseline: "", knownSeq, acceptedEnds: true });
  }
  const readyAtMs = await parts.journal.ready(task.id);
  const { baseline, isReady, isComplete } = await takeBaseline(task, parts, { readyAtMs, follow: policy.follow });
  if (!isReady && nowMs - readyAtMs < parts.timing.baselineWithinMs) {
    await follow(task, parts, { nowMs, hurry: true });
    return { step: "snooze", untilMs: nowMs + 250 };
  }
  // Without a baseline: an activity after this sequence counts if it says that it began after the
  // start.
  const knownSeq =
    baseline.activities === null ? (await parts.feeds.status(feedOf(task, "activities"))).seq : undefined;
  if (!isComplete) parts.log.warn("run.without-baseline", { policy: task.policy, taskId: task.id });
  return sendStart(task, { parts, claim, baseline: writeBaseline(baseline), knownSeq, acceptedEnds: false });
}

async function followRun(
  task: Task,
  policy: Policy,
  { parts, entry }: { parts: TaskDependencies; entry: StartEntry },
): Promise<TaskStep> {
  const nowMs = await parts.nowMs();
  const sentAtMs = entry.sentAtMs ?? entry.claimedAtMs;
  const answerLost = isAnswerLost(entry);
  const from = { state: "answered" } as const;
  if (policy.follow.until === "accepted") {
    const said = await tellAccepted(task, parts, entry);
    return end({ ...said, status: "accepted", startedAtMs: sentAtMs, answerLost, sends: entry.sends }, from);
  }
  const deadlineMs = sentAtMs + policy.follow.deadlineMs;
  // Only a walk after the deadline shows whether the run had ended by then.
  await follow(task, parts, { nowMs, hurry: nowMs >= deadlineMs });
  const appeared = await appearedSince(task, parts, entry);
  const finished = finishedActivities(appeared);
  const isNoted = finished !== undefined || entry.finishSeenAtMs !== undefined;
  const finishSeenAtMs = isNoted ? await parts.journal.finishSeen(task.id, finished) : undefined;
  if (finishSeenAtMs !== undefined && entry.finishSeenAtMs !== finishSeenAtMs)
    await follow(task, parts, { nowMs, hurry: true });
  const approvals = await approvalsSince(task, parts, { entry, follow: policy.follow, nowMs });
  const isAnswered = entry.shownBy === "answer";
  const ending = settleRun(policy.follow, { ...appeared, nowMs, sentAtMs, isAnswered, finishSeenAtMs, approvals });
  if (ending !== undefined) {
    const conflicts = await conflictChange(task, parts, { entry, appeared, ending });
    return end({ ...ending, ...conflicts, startedAtMs: sentAtMs, answerLost, sends: entry.sends }, from);
  }
  const { attributable } = appeared;
  const { blockedAfterMs, unreadableForMs } = policy.follow;
  const patienceMs = Math.min(blockedAfterMs ?? unreadableForMs, unreadableForMs);
  const run = { nowMs, sentAtMs, deadlineMs, finishSeenAtMs, attributable, patienceMs };
  return { step: "snooze", untilMs: nextCheckMs(run, parts.timing) };
}

/**
 * Why a start counts as accepted: the service said so, or an activity shows it where no good answer
 * came.
 */
async function tellAccepted(
  task: Task,
  parts: TaskDependencies,
  entry: StartEntry,
): Promise<Pick<TaskEnding, "evidence" | "reason" | "detail" | "confidence">> {
  if (entry.shownBy === "answer")
    return { evidence: "direct", reason: "answered", detail: "the service accepted the start" };
  const { confidence } = await appearedSince(task, parts, entry);
  const detail = `${entry.lost?.detail ?? "no good answer came"}; an activity of it confirms the start`;
  return { evidence: "inferred", reason: "start-confirmed", detail, confidence };
}
