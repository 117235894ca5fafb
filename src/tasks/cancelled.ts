// The end of a task that a person has cancelled (actions/cancel.ts): not sent, or not followed any
// more. Called before each step; the journal permits no request of such a task.
import type { Task } from "../model/task.ts";
import { complete } from "../model/verdict.ts";
import type { StartJournal } from "../store/start-journal.ts";
import { type Claim, endUnsent, type StepResult } from "./step.ts";
import { hasLostAnswer } from "./verify.ts";

/** How a cancelled start ends; undefined when it is not cancelled, or is over. */
export function endCancelledStart({ kind }: Task, { claimant, entry }: Claim): StepResult | undefined {
  const { state, cancelled, sends, sentAtMs: startedAtMs } = entry;
  if (cancelled === undefined || state === "settled") return undefined;
  if (state === "claimed")
    return endUnsent(claimant, "skipped", { reason: "cancelled", detail: `${cancelled}; nothing was sent` });
  const begun = kind === "run" ? "the run" : "what it began";
  const known =
    state === "answered"
      ? `the service had taken the request, and ${begun} goes on there`
      : `the request was sent: if the service took it, ${begun} goes on there`;
  return complete({
    ...{ status: "unknown", evidence: "none", reason: "cancelled", detail: `${cancelled}; ${known}` },
    ...{ startedAtMs, sends, answerLost: hasLostAnswer(entry) },
    from: state === "answered" ? { state } : { state, claimant: entry.claimant },
  });
}

/** How a cancelled poll or apply task ends, which the journal knows for this alone. */
export async function endCancelled(
  { id }: Task,
  { journal }: { readonly journal: Pick<StartJournal, "cancelled"> },
): Promise<StepResult | undefined> {
  const detail = await journal.cancelled(id);
  return detail === undefined ? undefined : endUnsent(undefined, "skipped", { reason: "cancelled", detail });
}
