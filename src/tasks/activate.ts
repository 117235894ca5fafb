// An activate task: permission, POST once, done. An activation leaves no documented trace
// (service-interface §3, §4.4), so a lost answer ends as unknown, or is sent once more with
// `onUnknown: retry`. Where the mapping says by what an active sync job is known, the worker
// verifies each activation.
import type { ActivePredicate } from "../feeds/mapping.ts";
import type { Task } from "../model/task.ts";
import { complete } from "../model/verdict.ts";
import { confirmEffect, type EffectPredicate } from "./confirm-effect.ts";
import type { StartDependencies } from "./contracts.ts";
import { deferIfLimited } from "./defer.ts";
import { acceptedEnds, sendAgain, sendStart } from "./send-start.ts";
import { type Claim, endRemoved, type StepResult, settled, type TaskEnding } from "./step.ts";
import { awaitAnswer, endingOf, findDoubt, isAnswerLost } from "./verify.ts";

const wasAccepted = { status: "succeeded", evidence: "direct", reason: "answered" } as const;

interface Activation {
  readonly deps: StartDependencies;
  readonly claim: Claim;
}

/** Does the next step of an activation. */
export async function stepActivate(task: Task, deps: StartDependencies, claim: Claim): Promise<StepResult> {
  const { entry, claimant } = claim;
  const policy = deps.policy(task.policy);
  const isGivenUp = policy?.onUnknown === "give-up" && entry.state === "sending";
  const activePredicate = isGivenUp ? undefined : deps.activePredicate(task.service);
  switch (entry.state) {
    case "settled":
      return settled;
    case "answered": {
      if (activePredicate !== undefined) return verifyActivation(task, { deps, claim }, activePredicate);
      const sent = { startedAtMs: entry.sentAtMs, sends: entry.sends, from: { state: "answered" } } as const;
      return complete({ ...wasAccepted, detail: "the service accepted it", ...sent });
    }
    case "sending":
      if (activePredicate !== undefined) return verifyActivation(task, { deps, claim }, activePredicate);
      return whenInDoubt(task, { deps, claim });
    case "claimed":
      if (policy === undefined) return endRemoved(claimant, `policy ${task.policy} is not configured`);
      return (
        (await deferIfLimited(task, deps, { nowMs: await deps.nowMs(), claimant })) ??
        sendStart(task, { deps, claim, baseline: "", acceptedEnds: acceptedEnds(task, policy, deps) })
      );
  }
}

/** A lost answer that nothing can verify. */
async function whenInDoubt(task: Task, { deps, claim }: Activation): Promise<StepResult> {
  const { sentAtMs: startedAtMs, sends, claimant } = claim.entry;
  const awaited = await awaitAnswer(claim.entry, deps);
  if (awaited !== undefined) return awaited;
  const doubt = await findDoubt(task, deps);
  const mayRepeat = deps.policy(task.policy)?.onUnknown === "retry";
  const again = mayRepeat ? await sendAgain(task, { deps, claim, acceptedEnds: true }) : undefined;
  const from = { state: "sending", claimant } as const;
  return again ?? complete({ ...endingOf(doubt), detail: doubt.detail, startedAtMs, sends, from });
}

/** Verifies an activation: active, not yet, sent again, or ended with what is known. */
async function verifyActivation(
  task: Task,
  { deps, claim }: Activation,
  activePredicate: ActivePredicate,
): Promise<StepResult> {
  const { entry } = claim;
  const { state, claimant } = entry;
  const open = state === "sending" ? await findDoubt(task, deps) : undefined;
  const doubt = open ?? entry.doubt;
  const sent = {
    startedAtMs: entry.sentAtMs ?? entry.claimedAtMs,
    sends: entry.sends,
    answerLost: doubt !== undefined && isAnswerLost(doubt),
    from: open === undefined ? ({ state: "answered" } as const) : ({ state: "sending", claimant } as const),
  };
  const finish = (ending: Pick<TaskEnding, "status" | "evidence" | "reason">, seen: string): StepResult =>
    complete({ ...ending, ...sent, detail: `${open?.detail ?? "the service accepted it"}; ${seen}` });
  const orAgain = async (ended: StepResult): Promise<StepResult> => {
    const mayRepeat = open !== undefined && deps.policy(task.policy)?.onUnknown === "retry";
    return (mayRepeat ? await sendAgain(task, { deps, claim, acceptedEnds: false }) : undefined) ?? ended;
  };
  const check = await confirmEffect(task, { deps, entry, predicate: toPredicate(activePredicate) });
  switch (check.is) {
    case "again":
      return check.result;
    case "effect":
      return finish({ ...wasAccepted, reason: "seen-active" }, "the sync job is active");
    case "none": {
      const seconds = Math.round(check.afterMs / 1_000);
      const ending = { status: "failed", evidence: "direct", reason: "not-active" } as const;
      return orAgain(finish(ending, `the sync job is not active ${seconds} s later`));
    }
    case "unreadable": {
      const known = open === undefined ? wasAccepted : endingOf(open);
      return orAgain(finish(known, `whether the sync job is active cannot be read: ${check.why}`));
    }
  }
}

function toPredicate({ select, read }: ActivePredicate): EffectPredicate {
  const isShown: EffectPredicate["isShown"] = (syncJob) => {
    const seen = read(syncJob);
    return "wrong" in seen ? { wrong: `mapping.syncJob.${seen.wrong}` } : seen.active;
  };
  return { select, isShown, isShownBy: () => false };
}
