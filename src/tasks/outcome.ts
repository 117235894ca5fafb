// The outcome: what Syncline tells the world about a task, once. Made by work/, written by outcome/, read by cli/.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";
import { taskKinds } from "./task.ts";

/** How a task can end (design §4). */
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

/** Whether an ending is what the operator wanted: decides exit code 0 or 1, and the level of the log line. */
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

/** Why a task ended so: a closed set, fit for labels. The `detail` says the rest. A newer version may write others, which are read as they are. */
export type OutcomeReason =
  | "completed"
  | "answered"
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
  | "drift-mended"
  | "read-only-field";

/**
 * How sure it is that the activities behind an outcome are this task's own. `certain`: it was answered, and one activity began right
 * then. `likely`: nothing speaks for another origin. `ambiguous`: another start, one by hand or a trigger may be behind them.
 */
const confidences = ["certain", "likely", "ambiguous"] as const;

/** One of the three. */
export type Confidence = (typeof confidences)[number];

/** How many covered slots an outcome names; the ledger has a record of each that says which slot stands for it. */
export const coveredSlotsMax = 50;

/** How many offending items the outcome of a poll names. */
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
  // A word that is not known here is a newer version's: one outcome that is not understood must not hide all others.
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
 * `covers`: how many older slots it stands for; `coveredSlots`: the newest `coveredSlotsMax` of them, where there are any. `evidence`: `direct` the service said so, `inferred` from counts, `none`.
 * `reason`: an `OutcomeReason`, or the word of a newer version. `startedAt`: when the request was permitted; null when none was. `durationMs`: from there to the ending.
 * `answerLost`: the request went out and its answer never came. `sends`: how many requests went out, where sending again made it
 * more than one. `confidence`: whose the activities are, where any were looked at. `newConflicts`: of a followed run;
 * `goneConflicts`, `stillConflicts`: of those from before it, where they can be known. `count`: of a poll.
 * Of a poll that looked: `changed`: it ended otherwise (good, bad, unknown) than this policy's poll before, or found something new that offends. `offending`: how many items do, as far as
 * that is known; `offendingItems`: the first `offendingItemsMax` of them, by the mapping's label and id.
 */
export type Outcome = Readonly<z.infer<typeof outcomeSchema>>;

/**
 * Reads an outcome from the history.
 * @throws NewerVersionError for one of a newer version; ZodError when it is no outcome.
 */
export function parseOutcome(value: unknown): Outcome {
  return parseVersioned("outcome", outcomeSchema, value);
}
