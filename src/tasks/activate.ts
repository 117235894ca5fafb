// Activations: an activate task, and the activation before a run (`run: { activate: true }`). One
// leaves no documented trace (service-interface §3, §4.4; assumption A10), so a lost answer ends as
// unknown, or is sent again with `onUnknown: retry`. Where the mapping says by what an active
// sync job is known, the worker verifies an activate task.
import type { Policy } from "../config/policy-set.ts";
import type { ActivePredicate } from "../feeds/mapping.ts";
import { activationId, type Task } from "../model/task.ts";
import { complete } from "../model/verdict.ts";
import { sentAtMsOf } from "../store/start-entry.ts";
import { confirmEffect, type EffectPredicate } from "./confirm-effect.ts";
import { deferIfDenied } from "./defer.ts";
import { endsByAnswer, sendAgain, sendStart } from "./send-start.ts";
import { type Claim, endRemoved, endUnsent, type StepResult, type TaskEnding, withoutOutcome } from "./step.ts";
import type { StartDependencies } from "./step-dependencies.ts";
import { endingOf, hasLostAnswer, isDoubtWithoutAnswer, snoozeUntilTimedOut, standingDoubt } from "./verify.ts";

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
      return withoutOutcome;
    case "confirmed": {
      if (activePredicate !== undefined) return verifyActivation(task, { deps, claim }, activePredicate);
      const { sentAtMs: startedAtMs, sends } = entry;
      const sent = { startedAtMs, sends, answerLost: sends > 1, from: { state: "confirmed" } } as const;
      return complete({ ...wasAccepted, detail: "the service accepted it", ...sent });
    }
    case "sending":
      if (activePredicate !== undefined) return verifyActivation(task, { deps, claim }, activePredicate);
      return whenInDoubt(task, { deps, claim });
    case "claimed":
      if (policy === undefined) return endRemoved(claimant, `policy ${task.policy} is not`);
      return (
        (await deferIfDenied(task, deps, { nowMs: await deps.nowMs(), claimant })) ??
        sendStart(task, { deps, claim, baseline: "", isEndedByAnswer: endsByAnswer(task, policy, deps) })
      );
  }
}

/** A lost answer that nothing can verify. */
async function whenInDoubt(task: Task, { deps, claim }: Activation): Promise<StepResult> {
  const { sentAtMs: startedAtMs, sends, claimant } = claim.entry;
  const awaited = await snoozeUntilTimedOut(task, claim.entry, deps);
  if (awaited !== undefined) return awaited;
  const doubt = await standingDoubt(task, deps);
  const mayRepeat = deps.policy(task.policy)?.onUnknown === "retry";
  const again = mayRepeat ? await sendAgain(task, { deps, claim, isEndedByAnswer: true }) : undefined;
  const from = { state: "sending", claimant } as const;
  const answerLost = hasLostAnswer({ ...claim.entry, doubt });
  return again ?? complete({ ...endingOf(doubt), detail: doubt.detail, startedAtMs, sends, answerLost, from });
}

/** Verifies an activation: active, not yet, sent again, or ended with what is known. */
async function verifyActivation(
  task: Task,
  { deps, claim }: Activation,
  activePredicate: ActivePredicate,
): Promise<StepResult> {
  const { entry } = claim;
  const { state, claimant } = entry;
  const open = state === "sending" ? await standingDoubt(task, deps) : undefined;
  const doubt = open ?? entry.doubt;
  const sent = {
    startedAtMs: sentAtMsOf(entry),
    sends: entry.sends,
    answerLost: hasLostAnswer({ ...entry, doubt }),
    from: open === undefined ? ({ state: "confirmed" } as const) : ({ state: "sending", claimant } as const),
  };
  const endAs = (ending: Pick<TaskEnding, "status" | "evidence" | "reason">, seen: string): StepResult =>
    complete({ ...ending, ...sent, detail: `${open?.detail ?? "the service accepted it"}; ${seen}` });
  const orAgain = async (ended: StepResult): Promise<StepResult> => {
    const mayRepeat = open !== undefined && deps.policy(task.policy)?.onUnknown === "retry";
    return (mayRepeat ? await sendAgain(task, { deps, claim, isEndedByAnswer: false }) : undefined) ?? ended;
  };
  const check = await confirmEffect(task, { deps, entry, predicate: toPredicate(activePredicate) });
  switch (check.is) {
    case "again":
      return check.result;
    case "effect":
      return endAs({ ...wasAccepted, reason: "seen-active" }, "the sync job is active");
    case "none": {
      const seconds = Math.round(check.afterMs / 1_000);
      const ending = { status: "failed", evidence: "direct", reason: "not-active" } as const;
      return orAgain(endAs(ending, `the sync job is not active ${seconds} s later`));
    }
    case "unreadable": {
      const known = open === undefined ? wasAccepted : endingOf(open);
      return orAgain(endAs(known, `whether the sync job is active cannot be read: ${check.why}`));
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

interface Run {
  readonly deps: StartDependencies;
  readonly policy: Policy;
  /** The run's claimant. */
  readonly claimant: string;
}

/**
 * The activation before a run, as the journal knows it. It goes out under the run's lease: a
 * permission that the journal takes back ends that, too.
 */
function activationOf(run: Task): Task & { readonly leaseHolder: string } {
  return { ...run, id: activationId(run.id), kind: "activate", leaseHolder: run.id };
}

/**
 * Activates the sync job of a run that is not started yet; undefined when the run may go on. It has
 * its own journal entry, so it is sent at most once per task, while this claim of the run stands.
 * Accepted: the run goes on. Refused or failed on the server: not-started. No answer: the run goes
 * on (`retry`: after another request; `give-up`: not-started), and the log tells
 * (`run.activation-unknown`).
 */
export async function activateFirst(task: Task, run: Run): Promise<StepResult | undefined> {
  const { deps, claimant } = run;
  const first = activationOf(task);
  const claim = { claimant, entry: await deps.journal.claim(first.id, claimant) };
  switch (claim.entry.state) {
    case "settled":
      return undefined;
    case "confirmed":
      return goOn(first, run);
    case "sending":
      return firstInDoubt(first, run, claim);
    case "claimed":
      return afterSend(first, run, await sendStart(first, { deps, claim, baseline: "", isEndedByAnswer: false }));
  }
}

async function goOn(first: Task, { deps }: Run): Promise<undefined> {
  await deps.journal.close(first, { isOver: true });
  return undefined;
}

/** Turns the result of the activation into that of the run; undefined when the run may go on. */
async function afterSend(first: Task, run: Run, result: StepResult): Promise<StepResult | undefined> {
  const { deps } = run;
  switch (result.verdict) {
    case "snooze": {
      const entry = await deps.journal.entry(first.id);
      return entry?.state === "confirmed" ? goOn(first, run) : result;
    }
    case "retry":
      return { ...result, ending: { ...result.ending, detail: describe(result.ending.detail) } };
    default: {
      // An ending before the request is an ending of the run.
      if (result.ending?.from?.state !== "sending") return result;
      const { reason, detail } = result.ending;
      // After a crash the next worker must not take the refusal for a lost answer.
      await deps.journal.noteDoubt(first.id, { kind: "server", detail, atMs: await deps.nowMs() });
      return endRun(first, run, { reason, detail });
    }
  }
}

async function firstInDoubt(first: Task, run: Run, claim: Claim): Promise<StepResult | undefined> {
  const { deps, policy } = run;
  const awaited = await snoozeUntilTimedOut(first, claim.entry, deps);
  if (awaited !== undefined) return awaited;
  const doubt = await standingDoubt(first, deps);
  const { reason } = endingOf(doubt);
  if (!isDoubtWithoutAnswer(doubt)) return endRun(first, run, { reason, detail: doubt.detail });
  if (policy.onUnknown === "give-up")
    return endRun(first, run, { reason, detail: `${doubt.detail}; the policy says give-up` });
  const mayRepeat = policy.onUnknown === "retry";
  const again = mayRepeat ? await sendAgain(first, { deps, claim, isEndedByAnswer: false }) : undefined;
  if (again !== undefined) return afterSend(first, run, again);
  const { policy: name, target } = first;
  deps.log.warn("run.activation-unknown", { policy: name, taskId: first.id, target, detail: doubt.detail });
  return goOn(first, run);
}

/** The run does not start. The activation's entry stays for the worker after a crash. */
async function endRun(
  first: Task,
  { deps, claimant }: Run,
  { reason, detail }: Pick<TaskEnding, "reason" | "detail">,
): Promise<StepResult> {
  await deps.journal.close(first, { isOver: false });
  const tellsActivation = { tellsActivation: true } as const;
  return endUnsent(claimant, "not-started", { reason, detail: describe(detail), ...tellsActivation });
}

function describe(detail: string): string {
  return `the activation before the run: ${detail}`;
}
