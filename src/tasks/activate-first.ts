// The activation before a run (`run: { activate: true }`). It has its own journal entry, so it is
// sent at most once per task and leaves the run's baseline, start and verification alone. Called by
// run.ts between lease and baseline.
//
//   accepted ─▶ the run     refused, or failed on the server ─▶ not-started     no answer ─▶ the run, whose outcome tells
//
// Whether a sync job is active is not documented (service-interface §2, §3; assumption A10): a lost
// answer cannot be verified.
import type { Policy } from "../config/policy-set.ts";
import type { Task } from "../model/task.ts";
import type { StartDependencies } from "./contracts.ts";
import { sendAgain, sendStart } from "./send-start.ts";
import { type Claim, endUnsent, type StepResult, type TaskEnding } from "./step.ts";
import { endingOf, findDoubt, isAnswerLost } from "./verify.ts";

/** Whether an activation goes before the runs of a policy. */
export function activatesFirst({ action }: Policy): boolean {
  return action.kind === "run" && action.activate === true;
}

interface Run {
  readonly deps: StartDependencies;
  readonly policy: Policy;
  /** The run's claimant. */
  readonly claimant: string;
}

/** Activates the sync job of a run that is not started yet; undefined when the run may go on. */
export async function activateFirst(task: Task, run: Run): Promise<StepResult | undefined> {
  const { deps, claimant } = run;
  const first: Task = { ...task, id: `${task.id}__activate`, kind: "activate" };
  const claim = { claimant, entry: await deps.journal.claim(first.id, claimant) };
  switch (claim.entry.state) {
    case "settled":
      return undefined;
    case "answered":
      return goOn(first, run);
    case "sending":
      return whenInDoubt(first, run, claim);
    case "claimed":
      return afterSend(first, run, await sendStart(first, { deps, claim, baseline: "", acceptedEnds: false }));
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
      return entry?.state === "answered" ? goOn(first, run) : result;
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

async function whenInDoubt(first: Task, run: Run, claim: Claim): Promise<StepResult | undefined> {
  const { deps, policy } = run;
  const doubt = await findDoubt(first, deps);
  const { reason } = endingOf(doubt);
  if (!isAnswerLost(doubt)) return endRun(first, run, { reason, detail: doubt.detail });
  if (policy.onUnknown === "give-up")
    return endRun(first, run, { reason, detail: `${doubt.detail}; the policy says give-up` });
  const again = policy.onUnknown === "retry" ? await sendAgain(first, { deps, claim, acceptedEnds: false }) : undefined;
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
  return endUnsent(claimant, "not-started", { reason, detail: describe(detail) });
}

function describe(detail: string): string {
  return `the activation before the run: ${detail}`;
}
