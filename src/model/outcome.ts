// The outcome: how a task ended, recorded once and published at least once; and what it says of its
// policy.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";
import { taskKinds } from "./task.ts";
import { type RunFigures, type Unusual, unusualFields, unusualWords } from "./unusual.ts";

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
 * Whether the task ended as the operator wants it: decides the exit code and the level of the log
 * line. That `conflicts` did its work all the same, `weightOf` says.
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

/** Why a task ended so: fit for labels. A newer version may write others, read as they are. */
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
  | "cancelled"
  | "no-target"
  | "refused"
  | "no-access"
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

/** Failures that are the service's, and over when it works again. */
export const outageReasons: ReadonlySet<string> = new Set<OutcomeReason>(["unreachable", "server-error", "throttled"]);

/**
 * `certain`: the start was answered, and one activity began right then. `likely`: nothing speaks
 * for another origin. `ambiguous`: another start or a trigger may be behind the activities.
 */
const confidences = ["certain", "likely", "ambiguous"] as const;

/** How sure the attribution of activities to a task is. */
export type Confidence = (typeof confidences)[number];

/** The most covered slots in an outcome; the ledger has a record of each. */
export const coveredSlotsMax = 50;

/** The most offending items in the outcome of a poll. */
export const offendingItemsMax = 10;

/** The form of an outcome. */
export const outcomeSchema = z.object({
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
  activities: z.int().exactOptional(),
  ...unusualFields,
  count: z.int().nullable(),
  changed: z.boolean().exactOptional(),
  offending: z.int().exactOptional(),
  offendingItems: z.array(z.string()).exactOptional(),
});

/**
 * The record of one task's ending.
 * - `covers`: how many older slots it stands for, of those planned with it (1,000 at the most);
 * `coveredSlots`: the newest of them.
 * - `startedAt`: when the request was permitted, null where nothing was started; `durationMs`: from
 * then to the end.
 * - `answerLost`: no answer is known (lost on its way, also 408, 502, 504, or not noted), or there
 * was more than one request. `sends`: requests, where more than one.
 * - `goneConflicts`, `stillConflicts`: of the conflicts from before the start, where known.
 * - `activities`: of a run whose mapping tells them. `unusual`: in what it differs from this sync
 * job's newest runs, which `usualMs` and the like are the medians of.
 * - `count`: of a poll. `changed`: it ended otherwise than the poll before, or its expectation is
 * about changes since that poll and is not met. `offendingItems`: the first, by label and id.
 */
export type Outcome = Readonly<z.infer<typeof outcomeSchema>>;

/** Reads an outcome from the history. @throws NewerVersionError or ZodError. */
export function parseOutcome(value: unknown): Outcome {
  return parseVersioned("outcome", outcomeSchema, value);
}

/** What an ending says of its policy: did it do its work? `blocked`: people must decide. */
const weights: Readonly<Record<OutcomeStatus, "success" | "bad" | "nothing">> = {
  succeeded: "success",
  conflicts: "success",
  accepted: "success",
  failed: "bad",
  "timed-out": "bad",
  unknown: "bad",
  "not-started": "bad",
  blocked: "nothing",
  skipped: "nothing",
  missed: "nothing",
};

/**
 * Weighs an outcome. A poll whose expectation is not met did its work: no failure. What a person
 * cancelled says nothing.
 */
export function weightOf({ status, reason }: Pick<Outcome, "status" | "reason">): "success" | "bad" | "nothing" {
  if (reason === "cancelled") return "nothing";
  return reason === "expectation-not-met" ? "success" : weights[status];
}

/** The figures of a run. */
export function figuresOf({ durationMs, activities, newConflicts }: Outcome): RunFigures {
  return { duration: durationMs ?? undefined, activities, conflicts: newConflicts ?? undefined };
}

const usualNames = { duration: "usualMs", activities: "usualActivities", conflicts: "usualConflicts" } as const;

/** What is unusual about a run. */
export function findingsOf(outcome: Outcome): readonly Unusual[] {
  const { unusual = [] } = outcome;
  const figures = figuresOf(outcome);
  return unusual.map((what) => ({ what, value: figures[what] ?? 0, usual: outcome[usualNames[what]] ?? 0 }));
}

/** The outcome of a run with what is unusual about it, also in its detail. */
export function withFindings(outcome: Outcome, findings: readonly Unusual[]): Outcome {
  const usual = Object.fromEntries(findings.map((finding) => [usualNames[finding.what], finding.usual]));
  const detail = `${outcome.detail}; unusual: ${unusualWords(findings)}`;
  return { ...outcome, ...usual, detail, unusual: findings.map(({ what }) => what) };
}

/** What an ending says of the health of its sync job, from best to worst. */
export const healths = ["good", "conflicts", "blocked", "missed", "unknown", "failing"] as const;

/** One of the six. `good`: it ended as wanted. */
export type Health = (typeof healths)[number];

/** The health that each ending shows; undefined: it says nothing of it. */
export const healthOfStatus: Readonly<Record<OutcomeStatus, Health | undefined>> = {
  succeeded: "good",
  accepted: "good",
  conflicts: "conflicts",
  failed: "failing",
  "timed-out": "failing",
  "not-started": "failing",
  unknown: "unknown",
  blocked: "blocked",
  missed: "missed",
  skipped: undefined,
};

/** Whether doing the task over may help: it is on the failed list. */
export function isReplayable({ status, reason }: Pick<Outcome, "status" | "reason">): boolean {
  return replayable[status] !== undefined && reason !== "cancelled";
}

/** Endings where doing the task over may help. `may-run`: the first start may still run. */
export const replayable: Readonly<Partial<Record<OutcomeStatus, "surely-over" | "may-run">>> = {
  failed: "surely-over",
  "not-started": "surely-over",
  missed: "surely-over",
  unknown: "may-run",
  "timed-out": "may-run",
};

/** Whether doing the task over may start a second one beside it. A poll only reads. */
export function mayRunBeside({ kind, status }: Pick<Outcome, "kind" | "status">): boolean {
  return kind !== "poll" && replayable[status] === "may-run";
}
