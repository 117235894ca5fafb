// What an outcome says of its policy: it works, it does not, or nothing. Asked by the quarantine watch, and by the history for "when did
// it last succeed?".
import type { Outcome, OutcomeStatus } from "./outcome.ts";

const weights: Readonly<Record<OutcomeStatus, "good" | "bad" | "nothing">> = {
  succeeded: "good",
  conflicts: "good",
  accepted: "good",
  failed: "bad",
  "timed-out": "bad",
  unknown: "bad",
  "not-started": "bad",
  blocked: "nothing",
  skipped: "nothing",
  missed: "nothing",
};

/** What an outcome says of its policy. A poll whose expectation is not met has done its work: that is no failure of the policy. */
export function weightOf({ status, reason }: Pick<Outcome, "status" | "reason">): "good" | "bad" | "nothing" {
  return reason === "expectation-not-met" ? "good" : weights[status];
}
