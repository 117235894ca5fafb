// Counts the failures of a policy in a row, at the end of each task, and says so when it is quarantined. Called with every
// recorded outcome; the counting itself is atomic in Redis (store/quarantines.ts).
import type { EventLog } from "../core/event-log.ts";
import type { CountedEnding, QuarantineRule } from "../store/quarantines.ts";
import type { Outcome } from "../tasks/outcome.ts";
import { weightOf } from "../tasks/outcome-weight.ts";

/** What the watch needs of the quarantines (store/quarantines.ts). */
export interface QuarantineCounts {
  count(ending: CountedEnding, rule: QuarantineRule): Promise<"quarantined" | "released" | "nothing">;
}

/** Makes the watch. `ruleOf`: the rule of a policy, undefined when it is never quarantined; then nothing is counted. */
export function createQuarantineWatch(
  counts: QuarantineCounts,
  ruleOf: (policy: string) => QuarantineRule | undefined,
  log: EventLog,
): (outcome: Outcome) => Promise<void> {
  return async (outcome) => {
    const rule = ruleOf(outcome.policy);
    const weight = weightOf(outcome);
    if (rule === undefined || weight === "nothing") return;
    const { policy, taskId, status, reason, detail } = outcome;
    const isGood = weight === "good";
    const note = isGood ? `a success: ${taskId}` : `the last ended ${status} (${reason}): ${detail}`;
    const led = await counts.count({ policy, slotMs: Date.parse(outcome.slot), isGood, note }, rule);
    if (led === "quarantined")
      log.error("policy.quarantined", { policy, after: rule.after, forMs: rule.forMs, taskId, status, reason, detail });
    if (led === "released") log.info("policy.released", { policy, by: note });
  };
}
