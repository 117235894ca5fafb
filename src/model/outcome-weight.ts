// What an outcome says of its policy (good, bad or nothing), and whether doing its task over may
// help. Used by the quarantine watch, by the history for the last success, and for the failed list.
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

/**
 * The endings where doing the task over may help. Not `conflicts` and `blocked`: the run was made,
 * and people must decide. `may-run`: the first start may still run; doing it over may start it
 * twice.
 */
export const replayable: Readonly<Partial<Record<OutcomeStatus, "surely-over" | "may-run">>> = {
  failed: "surely-over",
  "not-started": "surely-over",
  missed: "surely-over",
  unknown: "may-run",
  "timed-out": "may-run",
};

/**
 * What an outcome says of its policy. A poll whose expectation is not met did its work: no failure.
 */
export function weightOf({ status, reason }: Pick<Outcome, "status" | "reason">): "good" | "bad" | "nothing" {
  return reason === "expectation-not-met" ? "good" : weights[status];
}
