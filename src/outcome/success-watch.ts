// Notes when each policy last succeeded, at the end of each task: what "is it still working?" is answered from. Called with every
// recorded outcome, like the quarantine watch, and by the same idea of a success.
import type { Outcome } from "../tasks/outcome.ts";
import { weightOf } from "./quarantine-watch.ts";

/** What the watch needs of the last successes (store/last-successes.ts). */
interface SuccessNotes {
  note(policy: string, atMs: number): Promise<void>;
}

/** Makes the watch. */
export function createSuccessWatch(notes: SuccessNotes): (outcome: Outcome) => Promise<void> {
  return async (outcome) => {
    if (weightOf(outcome) === "good") await notes.note(outcome.policy, Date.parse(outcome.finishedAt));
  };
}
