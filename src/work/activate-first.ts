// The activation before a run (`run: { activate: true }`). It has an entry of its own in the journal, so it goes out at most once for
// a task, and it changes nothing about the run's baseline, start and verification. Called by run.ts between lease and baseline.
//
//   accepted ─▶ the run     refused, or failed on the server ─▶ not-started     no answer ─▶ the run, whose outcome tells
//
// Nothing tells whether a sync job is active (service-interface §2, §3; assumption A10), so a lost answer cannot be looked into.
import type { Policy } from "../config/policy-set.ts";
import type { Task } from "../tasks/task.ts";
import type { WorkParts } from "./parts.ts";
import { sendAgain, sendStart } from "./send-start.ts";
import { type Claim, type Ending, endUnsent, type Step } from "./step.ts";
import { endingOf, isLost, noteLoss } from "./verify.ts";

/** Whether an activation goes before the runs of a policy. */
export function activatesFirst({ action }: Policy): boolean {
  return action.kind === "run" && action.activate === true;
}

interface Run {
  readonly parts: WorkParts;
  readonly policy: Policy;
  /** Who has claimed the run. */
  readonly owner: string;
}

/** Activates the sync job of a run that is not started yet; undefined when the run may go on. */
export async function activateFirst(task: Task, run: Run): Promise<Step | undefined> {
  const { parts, owner } = run;
  const first: Task = { ...task, id: `${task.id}__activate`, kind: "activate" };
  const claim = { owner, entry: await parts.journal.claim(first.id, owner) };
  switch (claim.entry.state) {
    case "settled":
      return undefined;
    case "answered":
      return goOn(first, run);
    case "sending":
      return afterLoss(first, run, claim);
    case "claimed":
      return sent(first, run, await sendStart(first, { parts, claim, baseline: "", acceptedEnds: false }));
  }
}

async function goOn(first: Task, { parts }: Run): Promise<undefined> {
  await parts.journal.close(first, { isOver: true });
  return undefined;
}

/** What the run makes of the step of its activation. */
async function sent(first: Task, run: Run, step: Step): Promise<Step | undefined> {
  const { parts } = run;
  switch (step.step) {
    case "end": {
      // What ends before the request ends the run in the same way.
      if (step.from?.state !== "sending") return step;
      const { reason, detail } = step.ending;
      // Whoever comes after a crash must not take the refusal for a lost answer.
      await parts.journal.answerLost(first.id, { kind: "server", detail, atMs: await parts.nowMs() });
      return endRun(first, run, { reason, detail });
    }
    case "retry":
      return { ...step, ending: { ...step.ending, detail: tell(step.ending.detail) } };
    default: {
      const entry = await parts.journal.entry(first.id);
      return entry?.state === "answered" ? goOn(first, run) : step;
    }
  }
}

async function afterLoss(first: Task, run: Run, claim: Claim): Promise<Step | undefined> {
  const { parts, policy } = run;
  const lost = await noteLoss(first, parts);
  const { reason } = endingOf(lost);
  if (!isLost(lost)) return endRun(first, run, { reason, detail: lost.detail });
  if (policy.onUnknown === "give-up")
    return endRun(first, run, { reason, detail: `${lost.detail}; the policy says give-up` });
  const again =
    policy.onUnknown === "retry" ? await sendAgain(first, { parts, claim, acceptedEnds: false }) : undefined;
  if (again !== undefined) return sent(first, run, again);
  const { policy: name, target } = first;
  parts.log.warn("run.activation-unknown", { policy: name, taskId: first.id, target, detail: lost.detail });
  return goOn(first, run);
}

/** The run does not start. Its activation stays as it is in the journal: whoever comes after a crash must find the same. */
async function endRun(
  first: Task,
  { parts, owner }: Run,
  { reason, detail }: Pick<Ending, "reason" | "detail">,
): Promise<Step> {
  await parts.journal.close(first, { isOver: false });
  return endUnsent(owner, "not-started", { reason, detail: tell(detail) });
}

function tell(detail: string): string {
  return `the activation before the run: ${detail}`;
}
