// An activate task: permission, POST once, done. An activation leaves no documented trace
// (service-interface §3, §4.4), so a lost answer ends as unknown, or is sent once more with
// `onUnknown: retry`. Where the mapping says by what an active sync job is known, the worker
// verifies each activation.
import type { ActivePredicate } from "../feeds/mapping.ts";
import type { Task } from "../model/task.ts";
import { confirmEffect, type EffectPredicate } from "./confirm-effect.ts";
import type { TaskDependencies } from "./contracts.ts";
import { deferIfLimited } from "./defer.ts";
import { acceptedEnds, sendAgain, sendStart } from "./send-start.ts";
import { type Claim, end, endUnsent, type TaskEnding, type TaskStep } from "./step.ts";
import { awaitAnswer, endingOf, isLost, noteLoss } from "./verify.ts";

const wasAccepted = { status: "succeeded", evidence: "direct", reason: "answered" } as const;

/** Does the next step of an activation. */
export async function stepActivate(task: Task, parts: TaskDependencies, claim: Claim): Promise<TaskStep> {
  const { entry, owner } = claim;
  const policy = parts.policy(task.policy);
  const activePredicate =
    policy?.onUnknown === "give-up" && entry.state === "sending" ? undefined : parts.activePredicate(task.service);
  switch (entry.state) {
    case "settled":
      return { step: "settled" };
    case "answered":
      if (activePredicate !== undefined) return verifyActivation(task, { parts, claim, activePredicate });
      return end(
        {
          status: "succeeded",
          evidence: "direct",
          reason: "answered",
          detail: "the service accepted it",
          startedAtMs: entry.sentAtMs,
          sends: entry.sends,
        },
        { state: "answered" },
      );
    case "sending": {
      if (activePredicate !== undefined) return verifyActivation(task, { parts, claim, activePredicate });
      const awaited = await awaitAnswer(entry, parts);
      if (awaited !== undefined) return awaited;
      const lost = await noteLoss(task, parts);
      if (policy?.onUnknown === "retry") {
        const again = await sendAgain(task, { parts, claim, acceptedEnds: true });
        if (again !== undefined) return again;
      }
      const { sentAtMs: startedAtMs, sends, owner: sender } = entry;
      return end({ ...endingOf(lost), detail: lost.detail, startedAtMs, sends }, { state: "sending", owner: sender });
    }
    case "claimed":
      if (policy === undefined) {
        const detail = `policy ${task.policy} is not configured any more`;
        return endUnsent(owner, "skipped", { reason: "policy-removed", detail });
      }
      return (
        (await deferIfLimited(task, parts, { nowMs: await parts.nowMs(), owner })) ??
        sendStart(task, { parts, claim, baseline: "", acceptedEnds: acceptedEnds(task, policy, parts) })
      );
  }
}

interface Activation {
  readonly parts: TaskDependencies;
  readonly claim: Claim;
  readonly activePredicate: ActivePredicate;
}

/**
 * Verifies an activation that may have been sent: active, not yet, sent again, or ended with what
 * is known.
 */
async function verifyActivation(task: Task, { parts, claim, activePredicate }: Activation): Promise<TaskStep> {
  const { entry } = claim;
  const { state, owner } = entry;
  const lost = state === "sending" ? await noteLoss(task, parts) : undefined;
  const known = lost === undefined ? wasAccepted : endingOf(lost);
  const answer = lost?.detail ?? "the service accepted it";
  const from = lost === undefined ? ({ state: "answered" } as const) : ({ state: "sending", owner } as const);
  const loss = lost ?? entry.lost;
  const answerLost = loss !== undefined && isLost(loss);
  const sent = { startedAtMs: entry.sentAtMs ?? entry.claimedAtMs, sends: entry.sends, answerLost };
  const finish = (ending: Pick<TaskEnding, "status" | "evidence" | "reason">, seen: string): TaskStep =>
    end({ ...ending, ...sent, detail: `${answer}; ${seen}` }, from);
  const orAgain = async (ended: TaskStep): Promise<TaskStep> => {
    const mayRepeat = lost !== undefined && parts.policy(task.policy)?.onUnknown === "retry";
    return (mayRepeat ? await sendAgain(task, { parts, claim, acceptedEnds: false }) : undefined) ?? ended;
  };
  const check = await confirmEffect(task, { parts, entry, predicate: toPredicate(activePredicate) });
  switch (check.is) {
    case "again":
      return check.step;
    case "effect":
      return finish({ ...wasAccepted, reason: "seen-active" }, "the sync job is active");
    case "none": {
      const seconds = Math.round(check.afterMs / 1_000);
      const ending = { status: "failed", evidence: "direct", reason: "not-active" } as const;
      return orAgain(finish(ending, `the sync job is not active ${seconds} s later`));
    }
    case "unreadable":
      return orAgain(finish(known, `whether the sync job is active cannot be read: ${check.why}`));
  }
}

function toPredicate({ select, read }: ActivePredicate): EffectPredicate {
  const isShown: EffectPredicate["isShown"] = (syncJob) => {
    const seen = read(syncJob);
    return "wrong" in seen ? { wrong: `mapping.syncJob.${seen.wrong}` } : seen.active;
  };
  return { select, isShown, isShownBy: () => false };
}
