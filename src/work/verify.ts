// A start whose answer never came: did it happen? Looks at the feeds, never sends anything. Called by run.ts.
import type { Policy } from "../config/policy-set.ts";
import type { AnswerLoss, StartEntry } from "../store/start-journal.ts";
import type { Task } from "../tasks/task.ts";
import { appearedSince, follow, parseBaseline } from "./evidence.ts";
import type { WorkParts } from "./parts.ts";
import { type Ending, end, type Step } from "./step.ts";

/** What the journal notes for a start that is found without an answer and without a word why. */
export const workerDied: AnswerLoss = { kind: "crash", detail: "the worker died between the request and its answer" };

/** How a start without evidence ends. A 500 says that it failed, but it has been seen to lie: absence for a while proves nothing. */
export function endingOf(loss: AnswerLoss): Pick<Ending, "status" | "evidence" | "reason" | "answerLost"> {
  const answered = loss.kind === "server";
  return {
    status: "unknown",
    evidence: "none",
    reason: answered ? "server-error" : "answer-lost",
    answerLost: !answered,
  };
}

/** Looks for the run: confirmed, not yet, or given up on with what is known. */
export async function verifyStart(
  task: Task,
  policy: Policy,
  { parts, entry }: { parts: WorkParts; entry: StartEntry },
): Promise<Step> {
  const lost = await parts.journal.answerLost(task.id, workerDied);
  const sentAtMs = entry.sentAtMs ?? entry.claimedAtMs;
  const unknown = { ...endingOf(lost), startedAtMs: sentAtMs };
  if (policy.onUnknown === "give-up") return end({ ...unknown, detail: `${lost.detail}; the policy says give-up` });
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
  const seconds = Math.round(verifyForMs / 1_000);
  const seen = looked ? `no activity of sync job ${task.target} appeared within ${seconds} s` : "the feeds cannot tell";
  return end({ ...unknown, detail: `${lost.detail}; ${seen}` });
}
