// A start whose answer never came: did it happen? Looks at the feeds, never sends anything. Called by run.ts.
import type { Policy } from "../config/policy-set.ts";
import type { StartEntry } from "../store/start-journal.ts";
import type { Task } from "../tasks/task.ts";
import { appearedSince, follow, parseBaseline } from "./evidence.ts";
import type { WorkParts } from "./parts.ts";
import { end, type Step } from "./step.ts";

/** Looks for the run: confirmed, not yet, or given up on with what is known. */
export async function verifyStart(
  task: Task,
  policy: Policy,
  { parts, entry }: { parts: WorkParts; entry: StartEntry },
): Promise<Step> {
  const lost = await parts.journal.answerLost(task.id, "crash: the worker died between the request and its answer");
  const sentAtMs = entry.sentAtMs ?? entry.claimedAtMs;
  const unknown = {
    status: "unknown",
    evidence: "none",
    reason: "answer-lost",
    startedAtMs: sentAtMs,
    answerLost: true,
  } as const;
  if (policy.onUnknown === "give-up") return end({ ...unknown, detail: `${lost}; the policy says give-up` });
  const nowMs = await parts.nowMs();
  await follow(task, parts, { nowMs, hurry: true });
  const appeared = await appearedSince(task, parts, parseBaseline(entry.baseline));
  if (appeared.ours.length > 0) {
    await parts.journal.answered(task.id);
    parts.log.info("task.start-confirmed", {
      policy: task.policy,
      taskId: task.id,
      target: task.target,
      activity: appeared.ours[0]?.id,
    });
    return { step: "snooze", untilMs: nowMs };
  }
  const { verifyForMs } = parts.timing;
  if (nowMs - sentAtMs < verifyForMs) return { step: "snooze", untilMs: nowMs + 1_000 };
  const looked = (appeared.activities.walkStartedAtMs ?? 0) > sentAtMs && appeared.attributable;
  if (looked && lost.startsWith("server:")) {
    const detail = `${lost}; no activity of sync job ${task.target} appeared within ${verifyForMs / 1_000} s`;
    return end({ ...unknown, status: "failed", evidence: "direct", reason: "server-error", detail, answerLost: false });
  }
  const seen = looked ? `no activity of sync job ${task.target} appeared` : "the feeds cannot tell";
  return end({ ...unknown, detail: `${lost}; ${seen}` });
}
