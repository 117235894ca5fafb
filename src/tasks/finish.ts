// The end of a task, also of one that a person has cancelled: its ending becomes an outcome, and is
// recorded.

import { errorText } from "../core/errors.ts";
import { toIso } from "../core/instant.ts";
import { defined } from "../core/json.ts";
import { coveredSlotsMax, figuresOf, type Outcome, withFindings } from "../model/outcome.ts";
import { activationId, isFromMasks, type Task } from "../model/task.ts";
import { judgeRun } from "../model/unusual.ts";
import { complete } from "../model/verdict.ts";
import type { RecordResult } from "../store/history.ts";
import type { StartJournal } from "../store/start-journal.ts";
import { leaveLists } from "./followed-lists.ts";
import { pollChange } from "./poll.ts";
import type { Recorder } from "./recorder.ts";
import { type Claim, endUnsent, lostWithRedis, type StepResult, type TaskEnding } from "./step.ts";
import type { FinishDependencies, RunDependencies } from "./step-dependencies.ts";
import { hasLostAnswer } from "./verify.ts";

/** How often the end of an abandoned task is tried anew after it was superseded. */
const abandonRoundsMax = 5;

interface FinishContext {
  readonly deps: FinishDependencies;
  readonly recorder: Recorder;
  readonly attempts: number;
}

/** Records the outcome, unless it may not be true any more (`superseded`). */
export async function finish(
  task: Task,
  ending: TaskEnding,
  { deps, recorder, attempts }: FinishContext,
): Promise<RecordResult> {
  const { from } = ending;
  const fence = isToldByJournal(ending) ? await deps.checkFence(task) : undefined;
  if (fence === "undecided") return "superseded";
  const final = fence === "loss" ? endLost(ending) : await tellActivation(task, ending, deps);
  const finishedAtMs = Math.max(final.atMs ?? (await deps.nowMs()), final.startedAtMs ?? 0);
  const poll = await pollChange(task, final, deps);
  const facts = { finishedAtMs, attempts, changed: poll?.changed };
  const outcome = await compareWithUsual(toOutcome(task, final, facts), deps);
  const recorded = await recorder.record(outcome, from, poll?.note);
  // Recorded before: that worker may have died before it let followers go on.
  const mayBeAwaited = recorded === "recorded-awaited" || recorded === "already-recorded";
  if (mayBeAwaited) await advanceChains(task, deps);
  return recorded;
}

/**
 * Whether it says that nothing was sent, or that what was sent had no effect: that is true only if
 * Redis has lost nothing of the journal. Else one more request may be under way.
 */
function isToldByJournal({ from, status, evidence }: TaskEnding): boolean {
  if (from?.state === "claimed") return status !== "unknown";
  return from?.state === "sending" && (status === "failed" || (status === "not-started" && evidence === "inferred"));
}

function endLost(ending: TaskEnding): TaskEnding {
  if (ending.from?.state === "claimed") return lostWithRedis;
  const detail = `${ending.detail}; but Redis lost what was written meanwhile, perhaps of one more request`;
  return { ...ending, ...lostWithRedis, detail };
}

/**
 * Ends a task after too many worker crashes: sent → unknown, only claimed → not-started. A claimed
 * fan-out ends as unknown, since its tasks may be queued. False: the ending is superseded, or
 * another worker may still publish it.
 */
export async function endAbandoned(
  task: Task,
  deps: FinishDependencies,
  { recorder, why }: { readonly recorder: Recorder; readonly why: string },
): Promise<boolean> {
  const unknown = { status: "unknown", evidence: "none", reason: "crashed", detail: why } as const;
  for (let round = 1; round <= abandonRoundsMax; round += 1) {
    const entry = task.kind === "poll" || task.kind === "apply" ? undefined : await deps.journal.entry(task.id);
    const { state = "settled", claimant = "" } = entry ?? {};
    const from = state === "settled" ? undefined : { state, claimant };
    const ending: TaskEnding =
      from?.state === "claimed" && !isFromMasks(task)
        ? { ...unknown, status: "not-started", evidence: "direct", from }
        : {
            ...unknown,
            startedAtMs: entry?.sentAtMs,
            sends: entry?.sends,
            answerLost: entry && hasLostAnswer(entry),
            from,
          };
    const recorded = await finish(task, ending, { deps, recorder, attempts: 0 });
    // The worker that recorded the outcome may have died before it published it.
    if (recorded !== "superseded")
      return recorded !== "already-recorded" || (await recorder.republish(task)) === undefined;
  }
  return false;
}

/**
 * Releases the lease and the feeds of a task that ends without an outcome of its own. Where there
 * is one, lua/outcome/record.lua does it in the same step.
 */
export async function releaseTask(task: Task, deps: Pick<RunDependencies, "feeds" | "leases">): Promise<void> {
  await leaveLists(task, deps);
  await deps.leases.release(task, task.id);
}

/** Lets waiting followers go on. After a failure, the scheduler's sweep repeats it. */
export async function advanceChains(
  task: Task,
  { chains, log }: Pick<FinishDependencies, "chains" | "log">,
): Promise<void> {
  await chains.taskOver(task).catch((error: unknown) => {
    log.warn("chain.delayed", { taskId: task.id, message: errorText(error) });
  });
}

/** Says of a run that ended well what is unusual about it. */
async function compareWithUsual(outcome: Outcome, { policy, runsOf }: FinishDependencies): Promise<Outcome> {
  const rule = policy(outcome.policy)?.unusual;
  const isJudged = outcome.kind === "run" && (outcome.status === "succeeded" || outcome.status === "conflicts");
  if (rule === undefined || !isJudged) return outcome;
  const figures = figuresOf(outcome);
  // That there are too many conflicts is said already.
  const run = outcome.status === "conflicts" ? { ...figures, conflicts: undefined } : figures;
  const findings = judgeRun(run, await runsOf(outcome), rule);
  return findings.length === 0 ? outcome : withFindings(outcome, findings);
}

interface OutcomeFacts {
  readonly finishedAtMs: number;
  readonly attempts: number;
  readonly changed: boolean | undefined;
}

type Activations = Pick<FinishDependencies, "journal">;

/** A run that is not started tells of an activation before it that went out. */
async function tellActivation(task: Task, ending: TaskEnding, deps: Activations): Promise<TaskEnding> {
  const isUnstarted = ending.from?.state === "claimed" || ending.status === "not-started";
  if (!isUnstarted || ending.tellsActivation === true) return ending;
  const sent = await leaveActivation(task, deps);
  return sent === undefined ? ending : { ...ending, detail: `${ending.detail}; but ${sent}` };
}

/** Describes the activation before a run that ends, and takes it out of flight. */
async function leaveActivation(task: Task, deps: Activations): Promise<string | undefined> {
  const sent = await describeActivation(task, deps);
  const first = { ...task, id: activationId(task.id), kind: "activate" } as const;
  if (sent !== undefined) await deps.journal.close(first, { isOver: false });
  return sent;
}

/** Says that the activation before a run went out, or may have; undefined: none did. */
export async function describeActivation(
  { kind, id }: Task,
  { journal }: { readonly journal: Pick<StartJournal, "entry"> },
): Promise<string | undefined> {
  const activation = kind === "run" ? await journal.entry(activationId(id)) : undefined;
  if (activation === undefined || activation.sends === 0) return undefined;
  // After a crash the permission is known, and not whether the request followed.
  const isSure = activation.state !== "sending" && activation.doubt?.kind !== "crash";
  return `the activation before it ${isSure ? "was" : "may have been"} sent`;
}

/** The outcome of an ending. */
export function toOutcome(task: Task, ending: TaskEnding, { finishedAtMs, attempts, changed }: OutcomeFacts): Outcome {
  const { id: taskId, policy, service, repository, kind, target, origin } = task;
  const { status, evidence, reason, detail, startedAtMs, sends = 1 } = ending;
  const { confidence, goneConflicts, stillConflicts, activities, toldLong, offending, offendingItems } = ending;
  return {
    ...{ v: 1, taskId, policy, service, repository, kind, target, origin },
    slot: toIso(task.slotMs),
    covers: task.covers.length,
    ...(task.covers.length === 0 ? {} : { coveredSlots: task.covers.slice(-coveredSlotsMax).map((ms) => toIso(ms)) }),
    ...{ status, evidence, reason, detail },
    startedAt: toIso(startedAtMs),
    finishedAt: toIso(finishedAtMs),
    durationMs: startedAtMs === undefined ? null : Math.max(0, finishedAtMs - startedAtMs),
    attempts,
    answerLost: ending.answerLost ?? false,
    ...(sends > 1 ? { sends } : {}),
    ...defined({ confidence }),
    newConflicts: ending.newConflicts ?? null,
    ...defined({ goneConflicts, stillConflicts, activities, toldLong }),
    count: ending.count ?? null,
    ...defined({ changed, offending }),
    ...(offendingItems === undefined ? {} : { offendingItems: [...offendingItems] }),
  };
}

/** How a cancelled start ends; undefined when it is not cancelled, or is over. */
export async function endCancelledStart(
  task: Task,
  { claimant, entry }: Claim,
  deps: Activations,
): Promise<StepResult | undefined> {
  const { state, cancelled, sends, sentAtMs: startedAtMs, doubt } = entry;
  if (cancelled === undefined || state === "settled") return undefined;
  if (state === "claimed") {
    const sent = await leaveActivation(task, deps);
    const what = sent === undefined ? "nothing was sent" : `the run was not started, but ${sent}`;
    const why = { reason: "cancelled", detail: `${cancelled}; ${what}`, tellsActivation: true } as const;
    return endUnsent(claimant, "skipped", why);
  }
  // Without a word of its sender only the permission is known.
  const wasSent = doubt === undefined || doubt.kind === "crash" ? "may have been" : "was";
  const begun = task.kind === "run" ? "the run" : "what it began";
  const known =
    state === "confirmed"
      ? `the service had taken the request, and ${begun} goes on there`
      : `the request ${wasSent} sent: if the service took it, ${begun} goes on there`;
  return complete({
    ...{ status: "unknown", evidence: "none", reason: "cancelled", detail: `${cancelled}; ${known}` },
    ...{ startedAtMs, sends, answerLost: hasLostAnswer(entry) },
    from: state === "confirmed" ? { state } : { state, claimant: entry.claimant },
  });
}

/** How a cancelled poll or apply task ends, which the journal knows for this alone. */
export async function endCancelled(
  { id }: Task,
  { journal }: { readonly journal: Pick<StartJournal, "readCancelled"> },
): Promise<StepResult | undefined> {
  const detail = await journal.readCancelled(id);
  return detail === undefined ? undefined : endUnsent(undefined, "skipped", { reason: "cancelled", detail });
}
