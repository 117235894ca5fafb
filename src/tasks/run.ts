// A run task. The start journal says which step is next; a step never waits for a run or a
// lease.
//
//   claimed ─▶ lease (─▶ activation first) ─▶ baseline of the feeds*
//     ─▶ permission (intent written) ─▶ POST once
//          ├─ a good answer ─▶ follow ─▶ outcome
//          └─ in doubt ─▶ verify.ts
//
// * Not with `follow.until: accepted`, where the answer is the end: the journal notes the feed's
// sequence instead. Such a run usually takes the fast path (send-start.ts). With
// `follow.appearsWithin` each takes one: an absence proves something only against a baseline.
// A request that may have started something is never repeated (P2), unless the policy allows it.

import { needsBaseline, type Policy } from "../config/policy-set.ts";
import { isNotified } from "../model/notify-event.ts";
import type { Task } from "../model/task.ts";
import { longFromMs, usualMsOf } from "../model/unusual.ts";
import { complete, snooze } from "../model/verdict.ts";
import { type StartEntry, sentAtMsOf } from "../store/start-entry.ts";
import { activateFirst } from "./activate.ts";
import { takeBaseline, writeBaseline } from "./baseline.ts";
import { deferIfDenied } from "./defer.ts";
import { appearedSince, approvalsSince, conflictChange, returnedConflicts } from "./evidence.ts";
import { feedOf, requestLists } from "./followed-lists.ts";
import { activatesFirst, endsByAnswer, sendStart } from "./send-start.ts";
import { endsReadUntilMs, finishedActivities, settleRun } from "./settle.ts";
import {
  type Claim,
  endRemoved,
  endTooLate,
  endUnsent,
  type StepResult,
  stepAgainSoon,
  type TaskEnding,
  takeLease,
  withoutOutcome,
} from "./step.ts";
import type { RunDependencies } from "./step-dependencies.ts";
import { nextCheckMs } from "./timing.ts";
import { hasLostAnswer, verifyStart } from "./verify.ts";

/** Does the next step of a run. */
export async function stepRun(task: Task, deps: RunDependencies, claim: Claim): Promise<StepResult> {
  const { entry } = claim;
  const policy = deps.policy(task.policy);
  const isKnown = deps.service(task.service) !== undefined;
  switch (entry.state) {
    case "settled":
      return withoutOutcome;
    case "claimed":
      if (policy === undefined) return endRemoved(claim.claimant, `policy ${task.policy} is not`);
      if (!isKnown) return endRemoved(claim.claimant, `service ${task.service} is not`);
      return prepare(task, policy, { deps, claim });
    case "sending":
    case "confirmed":
      if (policy === undefined || !isKnown)
        return endForgotten(entry, entry.state, policy === undefined ? "policy" : "service");
      return entry.state === "sending"
        ? verifyStart(task, policy, { deps, claim })
        : followRun(task, policy, { deps, entry });
  }
}

/** Before the request: the checks, the lease, the activation, the baseline; then the start. */
async function prepare(
  task: Task,
  policy: Policy,
  { deps, claim }: { readonly deps: RunDependencies; readonly claim: Claim },
): Promise<StepResult> {
  const { claimant } = claim;
  const nowMs = await deps.nowMs();
  if (nowMs > task.startByMs) return endTooLate(claimant);
  // Before the lease and the baseline: neither may grow old while a denial defers the run.
  const deferred = await deferIfDenied(task, deps, { nowMs, claimant });
  if (deferred !== undefined) {
    // No feed is read meanwhile: the wait for the baseline starts afterwards.
    await deps.journal.forgetReady(task.id);
    return deferred;
  }
  // With `overlap: allow` a followed run takes a free lease: others must not start beside it.
  if (policy.overlap !== "allow" || policy.follow.until !== "accepted") {
    const holder = await takeLease(task, deps, claimant);
    if (holder === undefined) return stepAgainSoon(nowMs);
    const isHeld = holder !== task.id;
    if (isHeld && policy.overlap === "skip")
      return endUnsent(claimant, "skipped", { reason: "overlap", detail: `${holder} is still running` });
    if (isHeld && policy.overlap === "queue") return snooze(nowMs + deps.timing.queueForLeaseMs);
  }
  const activating = activatesFirst(policy) ? await activateFirst(task, { deps, policy, claimant }) : undefined;
  if (activating !== undefined) return activating;
  if (needsBaseline(policy.follow)) return startFromBaseline(task, policy, { deps, claim, nowMs });
  const { seq: knownSeq } = await deps.feeds.status(feedOf(task, "activities"));
  return sendStart(task, { deps, claim, baseline: "", knownSeq, isEndedByAnswer: true });
}

/** Starts a run from its baseline if the feeds can be read in time. */
async function startFromBaseline(
  task: Task,
  policy: Policy,
  { deps, claim, nowMs }: { readonly deps: RunDependencies; readonly claim: Claim; readonly nowMs: number },
): Promise<StepResult> {
  const readyAtMs = await deps.journal.noteReady(task.id);
  // A start that has waited longer for its turn takes a walk of the last two minutes.
  const sinceMs = Math.max(readyAtMs, nowMs - baselineOldMs);
  const { baseline, isTaken, lacks } = await takeBaseline(task, deps, { sinceMs, follow: policy.follow });
  // Workers or Redis were away meanwhile, or its clock was set: the wait begins anew.
  const isOld = !isTaken && Math.abs(nowMs - readyAtMs) > baselineOldMs;
  if (isOld) {
    await deps.journal.forgetReady(task.id);
    await deps.journal.noteReady(task.id);
  }
  if (!isTaken && (isOld || nowMs - readyAtMs < deps.timing.baselineWithinMs)) {
    await requestLists(task, deps, { nowMs, hurry: true });
    return snooze(nowMs + 250);
  }
  // Without a baseline, an activity counts if it says that it began after the start.
  const knownSeq = baseline.activities === null ? (await deps.feeds.status(feedOf(task, "activities"))).seq : undefined;
  // Where it does not wait, a list that cannot be read is told once (feed.unreadable).
  if (!isTaken) deps.log.warn("run.without-baseline", { policy: task.policy, taskId: task.id, lists: lacks });
  return sendStart(task, {
    deps,
    claim,
    baseline: writeBaseline(baseline),
    knownSeq,
    isEndedByAnswer: endsByAnswer(task, policy, deps),
  });
}

/** The oldest baseline from which a start is sent. */
const baselineOldMs = 120_000;

/** After the answer: reads what the feeds show, and settles the run or looks again later. */
async function followRun(
  task: Task,
  policy: Policy,
  { deps, entry }: { readonly deps: RunDependencies; readonly entry: StartEntry },
): Promise<StepResult> {
  const nowMs = await deps.nowMs();
  const sentAtMs = sentAtMsOf(entry);
  const sent = {
    ...{ startedAtMs: sentAtMs, answerLost: hasLostAnswer(entry), sends: entry.sends },
    toldLong: entry.longNotedAtMs === undefined ? undefined : true,
    // A slow sender may take its permission back, and the task may start anew.
    from: { state: "confirmed", claimant: entry.claimant },
  } as const;
  if (policy.follow.until === "accepted")
    return complete({ ...(await acceptedEnding(task, deps, entry)), status: "accepted", ...sent });
  const deadlineMs = sentAtMs + policy.follow.deadlineMs;
  // Past its deadline a run ends only by a walk that began after it (settle.ts).
  await requestLists(task, deps, { nowMs, hurry: nowMs >= deadlineMs });
  const appeared = await appearedSince(task, deps, entry);
  const finished = finishedActivities(appeared);
  const isNoted = finished !== undefined || entry.finishSeenAtMs !== undefined;
  const finishSeenAtMs = isNoted ? await deps.journal.noteFinishSeen(task.id, finished) : undefined;
  if (finishSeenAtMs !== undefined && entry.finishSeenAtMs !== finishSeenAtMs)
    await requestLists(task, deps, { nowMs, hurry: true });
  const approvals = await approvalsSince(task, deps, { entry, follow: policy.follow, nowMs });
  const isAnswered = entry.confirmedBy === "answer";
  // All workers may have been away: patience past the deadline begins with the first check there.
  const overdueSinceMs = nowMs < deadlineMs ? undefined : await deps.journal.noteOverdue(task.id, nowMs);
  const evidence = { ...appeared, nowMs, sentAtMs, isAnswered, finishSeenAtMs, approvals, overdueSinceMs };
  let ending = settleRun(policy.follow, evidence);
  if (ending?.status === "succeeded") {
    const returned = await returnedConflicts(task, deps, { entry, appeared });
    const perhapsNewConflicts = appeared.perhapsNewConflicts + returned;
    ending = settleRun(policy.follow, { ...evidence, perhapsNewConflicts });
  }
  if (ending !== undefined)
    return complete({ ...ending, ...(await conflictChange(task, deps, { entry, appeared, ending })), ...sent });
  const { walkBeganAtMs = 0 } = appeared.activities;
  // It may have ended on a page that the walk after the deadline left out.
  if (walkBeganAtMs >= deadlineMs && endsReadUntilMs(appeared.activities) < deadlineMs && finished === undefined)
    await deps.feeds.wantWhole(feedOf(task, "activities"), deadlineMs);
  await noteIfLong(task, policy, { deps, entry, nowMs, sentAtMs });
  const { attributable } = appeared;
  const { blockedAfterMs, unreadableForMs } = policy.follow;
  const patienceMs = Math.min(blockedAfterMs ?? unreadableForMs, unreadableForMs);
  const run = { nowMs, sentAtMs, deadlineMs, finishSeenAtMs, attributable, patienceMs };
  return snooze(nextCheckMs(run, deps.timing));
}

/**
 * Logs once that a run is unusually long and goes on, and writes its event. Reads the usual
 * durations at its first check past `floor`, and once more when it is long.
 */
async function noteIfLong(
  task: Task,
  policy: Policy,
  {
    deps,
    entry,
    nowMs,
    sentAtMs,
  }: { readonly deps: RunDependencies; readonly entry: StartEntry; readonly nowMs: number; readonly sentAtMs: number },
): Promise<void> {
  const { unusual: rule, name } = policy;
  if (rule === undefined || entry.longNotedAtMs !== undefined || nowMs - sentAtMs < rule.floorMs) return;
  const readUsual = () => deps.runsOf(task);
  const longAtMs =
    entry.longAtMs ??
    (await deps.journal.noteLongFrom(task.id, sentAtMs + (longFromMs(await readUsual(), rule) ?? Infinity)));
  if (nowMs < longAtMs) return;
  const usualMs = usualMsOf(await readUsual()) ?? 0;
  const run = {
    policy: name,
    taskId: task.id,
    target: task.target,
    slotMs: task.slotMs,
    sentAtMs,
    atMs: nowMs,
    usualMs,
  };
  if (await deps.journal.noteLong(run, isNotified(policy)))
    deps.log.warn("run.long", { policy: name, taskId: task.id, target: task.target, forMs: nowMs - sentAtMs, usualMs });
}

/** Why a start counts as accepted: the service said so, or an activity shows it. */
async function acceptedEnding(
  task: Task,
  deps: RunDependencies,
  entry: StartEntry,
): Promise<Pick<TaskEnding, "evidence" | "reason" | "detail" | "confidence">> {
  if (entry.confirmedBy === "answer")
    return { evidence: "direct", reason: "answered", detail: "the service accepted the start" };
  const { confidence } = await appearedSince(task, deps, entry);
  const detail = `${entry.doubt?.detail ?? "no good answer came"}; an activity of it confirms the start`;
  return { evidence: "inferred", reason: "start-confirmed", detail, confidence };
}

/** Nothing says any more how to follow a run that was or may have been started. */
function endForgotten(entry: StartEntry, state: "sending" | "confirmed", what: "policy" | "service"): StepResult {
  const { sentAtMs: startedAtMs, sends } = entry;
  const known = state === "confirmed" ? "the run went on" : "whether the run had started was not known";
  const detail = `${known}, and its ${what} is not in the policies of the worker that had its turn`;
  return complete({
    ...{ status: "unknown", evidence: "none", reason: "policy-removed", detail },
    ...{ startedAtMs, sends, answerLost: hasLostAnswer(entry) },
    from: { state, claimant: entry.claimant },
  });
}
