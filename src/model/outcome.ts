// The outcome: how a task ended, published once. Made by tasks/, kept by store/history.ts, read by
// cli/.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";
import { taskKinds } from "./task.ts";

/** How a task can end. */
export const outcomeStatuses = [
  "succeeded",
  "conflicts",
  "accepted",
  "failed",
  "blocked",
  "timed-out",
  "unknown",
  "not-started",
  "skipped",
  "missed",
] as const;

/** One of the ten endings. */
export type OutcomeStatus = (typeof outcomeStatuses)[number];

/**
 * Whether an ending is what the operator wanted: decides exit code 0 or 1, and the level of the log
 * line.
 */
export const isGood: Readonly<Record<OutcomeStatus, boolean>> = {
  succeeded: true,
  accepted: true,
  skipped: true,
  conflicts: false,
  failed: false,
  blocked: false,
  "timed-out": false,
  unknown: false,
  "not-started": false,
  missed: false,
};

/**
 * Why a task ended so: a closed set, fit for labels; the `detail` adds the rest. A newer version
 * may write other reasons, which are read as they are.
 */
export type OutcomeReason =
  | "completed"
  | "answered"
  | "start-confirmed"
  | "run-failed"
  | "new-conflicts"
  | "approval-waiting"
  | "expectation-met"
  | "expectation-not-met"
  | "expectation-unreadable"
  | "overlap"
  | "too-late"
  | "policy-removed"
  | "no-target"
  | "refused"
  | "server-error"
  | "unreachable"
  | "throttled"
  | "bad-answer"
  | "answer-lost"
  | "redis-loss"
  | "no-evidence"
  | "deadline"
  | "crashed"
  | "bug"
  | "deleted"
  | "deleted-no-content"
  | "deletion-confirmed"
  | "not-deleted"
  | "still-there"
  | "seen-active"
  | "not-active"
  | "already-gone"
  | "gone-meanwhile"
  | "guard-mismatch"
  | "nothing-to-do"
  | "applied"
  | "drift-corrected"
  | "read-only-field";

/**
 * How sure the attribution of activities to a task is. `certain`: the start was answered, and one
 * activity began right then. `likely`: nothing speaks for another origin. `ambiguous`: another
 * start, one by hand or a trigger may be behind them.
 */
const confidences = ["certain", "likely", "ambiguous"] as const;

/** One of the three degrees. */
export type Confidence = (typeof confidences)[number];

/** The most covered slots in an outcome; the ledger has a record of each. */
export const coveredSlotsMax = 50;

/** The most offending items in the outcome of a poll. */
export const offendingItemsMax = 10;

const outcomeSchema = z.object({
  v: z.literal(1),
  taskId: z.string(),
  policy: z.string(),
  service: z.string(),
  repository: z.string().nullable(),
  kind: z.enum(taskKinds),
  target: z.string(),
  origin: z.enum(["schedule", "manual"]),
  slot: z.iso.datetime(),
  covers: z.int(),
  coveredSlots: z.array(z.iso.datetime()).exactOptional(),
  status: z.enum(outcomeStatuses),
  evidence: z.enum(["direct", "inferred", "none"]),
  // A newer version may write other words: one unknown outcome must not hide all others.
  reason: z.string().regex(/^[a-z][a-z0-9-]{0,59}$/),
  detail: z.string(),
  startedAt: z.iso.datetime().nullable(),
  finishedAt: z.iso.datetime(),
  durationMs: z.number().nullable(),
  attempts: z.int(),
  answerLost: z.boolean(),
  sends: z.int().exactOptional(),
  confidence: z.enum(confidences).exactOptional(),
  newConflicts: z.int().nullable(),
  goneConflicts: z.int().exactOptional(),
  stillConflicts: z.int().exactOptional(),
  count: z.int().nullable(),
  changed: z.boolean().exactOptional(),
  offending: z.int().exactOptional(),
  offendingItems: z.array(z.string()).exactOptional(),
});

/**
 * The record of one task's ending (version 1). Instants are ISO 8601 UTC.
 * - `covers`: how many older slots it stands for; `coveredSlots`: the newest `coveredSlotsMax` of
 * them.
 * - `evidence`: `direct` from the service, `inferred` from counts, `none`.
 * - `reason`: an `OutcomeReason`, or the word of a newer version.
 * - `startedAt`: when the request was permitted, null without one; `durationMs`: from then to the
 * end.
 * - `answerLost`: the request went out, and no answer came. `sends`: requests, where more than one.
 * - `confidence`: of the attribution, where activities were read.
 * - `newConflicts`: of a followed run; `goneConflicts`, `stillConflicts`: of earlier ones, where
 * known.
 * - `count`: of a poll. `changed`: the poll ended otherwise than the one before, or found new
 * offending items. `offending`: how many items offend, where known; `offendingItems`: the first of
 * them, by label and id.
 */
export type Outcome = Readonly<z.infer<typeof outcomeSchema>>;

/**
 * Reads an outcome from the history.
 * @throws NewerVersionError for one of a newer version; ZodError when it is no outcome.
 */
export function parseOutcome(value: unknown): Outcome {
  return parseVersioned("outcome", outcomeSchema, value);
}
