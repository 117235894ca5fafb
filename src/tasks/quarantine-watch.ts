// Counts the failures of a policy in a row and logs when it is quarantined or released. Called with
// every recorded outcome; the counting itself is atomic in Redis (store/quarantines.ts).
import type { EventLog } from "../core/event-log.ts";
import { type Outcome, weightOf } from "../model/outcome.ts";
import type { CountedEnding, QuarantineRule } from "../store/quarantines.ts";

/** The part of store/quarantines.ts that the watch uses. */
export interface QuarantineCounts {
  count(ending: CountedEnding, rule: QuarantineRule): Promise<"quarantined" | "released" | "nothing">;
}

/** Creates the watch. `ruleOf`: the rule of a policy; without one, nothing is counted. */
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
    const change = await counts.count({ policy, slotMs: Date.parse(outcome.slot), isGood, note }, rule);
    if (change === "quarantined")
      log.error("policy.quarantined", { policy, after: rule.after, forMs: rule.forMs, taskId, status, reason, detail });
    if (change === "released") log.info("policy.released", { policy, by: note });
  };
}
