// A run task, step by step. The journal says which step is next; no step waits in place.
//
//   claimed ─▶ lease ─▶ baseline of the feeds ─▶ permission (intent written) ─▶ POST once ─▶ answered ─▶ follow ─▶ outcome
//                                                         └─ no answer ─▶ verify in the feeds: confirmed ─▶ follow
//                                                                                              absent    ─▶ failed or unknown
//
// A request that was permitted once is never sent again (P2), unless it surely did not leave this machine.
import { randomUUID } from "node:crypto";
import type { Policy } from "../config/policy-set.ts";
import type { StartEntry } from "../store/start-journal.ts";
import type { Task } from "../tasks/task.ts";
import { appearedSince, type Baseline, baselineSince, follow, parseBaseline, unfollow } from "./evidence.ts";
import { heldBack } from "./held.ts";
import type { WorkParts } from "./parts.ts";
import { sendStart } from "./send-start.ts";
import { isFinished, settleRun } from "./settle.ts";
import { end, endUnsent, type Step } from "./step.ts";
import { verifyStart } from "./verify.ts";

/** A holder that does not prolong its lease for this long has died. */
const leaseMs = 300_000;
const queueForLeaseMs = 2_000;

/** Does the next step of a run. */
export async function stepRun(task: Task, parts: WorkParts): Promise<Step> {
  const owner = randomUUID();
  const entry = await parts.journal.claim(task.id, owner);
  if (entry.state === "settled") return { step: "settled" };
  const policy = parts.policy(task.policy);
  if (entry.state === "claimed") return prepare(task, { parts, policy, owner });
  if (policy === undefined || parts.service(task.service) === undefined) {
    return end({
      status: "unknown",
      evidence: "none",
      reason: "policy-removed",
      detail: `the ${policy === undefined ? "policy" : "service"} was removed while the run went on`,
      startedAtMs: entry.sentAtMs,
    });
  }
  await parts.leases.acquire(task, task.id, leaseMs);
  return entry.state === "sending"
    ? verifyStart(task, policy, { parts, entry })
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
  readonly owner: string;
}

async function prepare(task: Task, { parts, policy, owner }: Preparation): Promise<Step> {
  const nowMs = await parts.nowMs();
  if (policy === undefined)
    return endUnsent("skipped", "policy-removed", `policy ${task.policy} is not configured any more`);
  if (parts.service(task.service) === undefined)
    return endUnsent("skipped", "policy-removed", `service ${task.service} is not configured any more`);
  if (nowMs > task.startByMs) return endUnsent("missed", "too-late", "its turn came after its start-by time");
  // Before the lease and the baseline: neither may grow old while the service asks for patience.
  const held = await heldBack(task, parts, nowMs);
  if (held !== undefined) return held;
  if (policy.overlap !== "allow") {
    const holder = await parts.leases.acquire(task, task.id, leaseMs);
    if (holder !== task.id && policy.overlap === "skip")
      return endUnsent("skipped", "overlap", `${holder} is still running`);
    if (holder !== task.id) return { step: "snooze", untilMs: nowMs + queueForLeaseMs };
  }
  const readyAtMs = await parts.journal.ready(task.id);
  const baseline = await baselineSince(task, parts, readyAtMs);
  if (!isComplete(baseline) && nowMs - readyAtMs < parts.timing.baselineWithinMs) {
    await follow(task, parts, { nowMs, hurry: true });
    return { step: "snooze", untilMs: nowMs + 250 };
  }
  if (!isComplete(baseline)) parts.log.warn("run.without-baseline", { policy: task.policy, taskId: task.id });
  return sendStart(task, {
    parts,
    owner,
    baseline: JSON.stringify(baseline),
    acceptedEnds: policy.follow.until === "accepted",
  });
}

async function followRun(
  task: Task,
  policy: Policy,
  { parts, entry }: { parts: WorkParts; entry: StartEntry },
): Promise<Step> {
  const nowMs = await parts.nowMs();
  const sentAtMs = entry.sentAtMs ?? entry.claimedAtMs;
  const answerLost = entry.lost !== undefined && entry.lost.kind !== "server";
  if (policy.follow.until === "accepted") {
    const detail = answerLost
      ? "the answer was lost; an activity of it confirms the start"
      : "the service accepted the start";
    return end({
      status: "accepted",
      evidence: "direct",
      reason: "answered",
      detail,
      startedAtMs: sentAtMs,
      answerLost,
    });
  }
  await follow(task, parts, { nowMs, hurry: false });
  const appeared = await appearedSince(task, parts, parseBaseline(entry.baseline));
  const finishSeenAtMs = isFinished(appeared) ? await parts.journal.finishSeen(task.id) : undefined;
  if (finishSeenAtMs !== undefined && entry.finishSeenAtMs === undefined)
    await follow(task, parts, { nowMs, hurry: true });
  const ending = settleRun(policy.follow, { ...appeared, nowMs, sentAtMs, finishSeenAtMs, timing: parts.timing });
  if (ending !== undefined) return end({ ...ending, startedAtMs: sentAtMs, answerLost });
  return { step: "snooze", untilMs: nowMs + followPaceMs(nowMs - sentAtMs) };
}

/** How long a follower sleeps: one second for a young run, up to fifteen for an old one. */
function followPaceMs(ageMs: number): number {
  return Math.min(15_000, Math.max(1_000, ageMs / 5));
}

function isComplete(baseline: Baseline): boolean {
  return baseline.activities !== null && baseline.conflictDetails !== null;
}
