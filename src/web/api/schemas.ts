// What the API answers: every answer goes through one of these, and openapi.ts describes them.
// Instants are ISO 8601 in UTC; null: there is none, or it is not known.
import * as z from "zod";
import { outcomeSchema } from "../../model/outcome.ts";
import { policyHealths } from "../../queries/policy-lines.ts";
import { hiddenWhenNarrowed } from "./operation.ts";

const instant = z.iso.datetime();

/** An object under a name: openapi.ts describes it once, and refers to it. */
function named(id: string, shape: z.ZodRawShape): z.ZodObject {
  return z.object(shape).meta({ id });
}

/** A pause or quarantine. */
export const pauseSchema = named("Pause", {
  scope: z.enum(["policy", "service", "label", "all"]),
  name: z.string(),
  note: z.string(),
  actor: z.string(),
  since: instant,
  until: instant.nullable(),
  isQuarantine: z.boolean(),
});

const lastSchema = named("LastOutcome", {
  taskId: z.string(),
  target: z.string(),
  status: outcomeSchema.shape.status,
  evidence: outcomeSchema.shape.evidence,
  confidence: z.string().nullable(),
  reason: z.string(),
  slot: instant,
  finished: instant,
});

/** Who knows of what is wrong with a policy, and what they say of it. */
export const acknowledgedSchema = named("Acknowledged", { actor: z.string(), note: z.string(), since: instant });

/** A policy as it is now. */
export const policySchema = named("Policy", {
  name: z.string(),
  service: z.string(),
  repository: z.string().nullable(),
  kind: z.string(),
  targets: z.array(z.string()).nullable(),
  labels: z.record(z.string(), z.string()),
  owner: z.string().nullable(),
  health: z.enum(policyHealths),
  needsPerson: z.boolean().meta({
    description: "by its health alone; listAttention's healsByItself says what gets well without one",
  }),
  acknowledged: acknowledgedSchema.nullable(),
  since: instant.nullable(),
  inARow: z.int(),
  last: lastSchema.nullable(),
  lastGood: instant.nullable(),
  usualDurationMs: z.number().nullable(),
  unusual: z.string().nullable(),
  next: instant.nullable(),
  late: z.object({ deadline: instant, since: instant, why: z.string() }).nullable(),
  openConflicts: z.int().nullable().meta({ description: "by the last whole reading of their list; null: not known" }),
  pause: pauseSchema.nullable(),
  file: z.string(),
  line: z.int(),
});

/** A slot and what became of it. */
export const slotSchema = named("Slot", {
  slot: instant,
  ending: z.string(),
  durationMs: z.number().nullable(),
  note: z.string(),
});

/** A policy with its newest slots. */
export const policyDetailSchema = named("PolicyDetail", {
  policy: policySchema,
  slots: z.array(slotSchema),
  isAll: z.boolean().meta({ description: "these are all that are kept: otherwise listSlots has the older ones" }),
});

/** What a policy did on a day. Durations are those of runs that ended well. */
export const daySchema = named("Day", {
  date: z.iso.date(),
  statuses: z.record(z.string(), z.int()),
  skippedSlots: z.int(),
  missedSlots: z.int(),
  newConflicts: z.int(),
  longestMs: z.number().nullable(),
  medianMs: z.number().nullable(),
  p95Ms: z.number().nullable(),
});

/** A slot ahead. `closed`: what will skip it. `dst`: what clocks do. */
export const comingSlotSchema = named("ComingSlot", {
  slot: instant,
  closed: z.string().nullable(),
  dst: z.string().nullable(),
});

const taskStorySchema = named("TaskStory", {
  taskId: z.string(),
  name: z.string(),
  target: z.string(),
  journal: z.string(),
  queue: z.string().nullable(),
  due: instant,
  queued: instant.nullable(),
  sent: instant.nullable(),
  sentAgain: instant.nullable(),
  answered: instant.nullable(),
  confirmed: instant.nullable(),
  finished: instant.nullable(),
  outcome: z
    .object({
      status: outcomeSchema.shape.status,
      evidence: outcomeSchema.shape.evidence,
      reason: z.string(),
      detail: z.string(),
      confidence: z.string().optional(),
      sends: z.int().optional(),
    })
    .nullable(),
  isInFlight: z.boolean(),
  now: z.string().nullable().meta({ description: "what it does and waits for; null: the queue does not hold it" }),
  droppedUpTo: instant.nullable(),
  waitsFor: z.string().nullable(),
  lost: z.string().nullable(),
  cancelled: z.string().nullable().meta({ description: "who cancelled it, and why" }),
});

/** What became of a slot and its tasks. */
export const storySchema = named("SlotStory", {
  policy: z.string(),
  origin: outcomeSchema.shape.origin,
  isSlot: z.boolean(),
  reasons: z.array(z.string()),
  previous: instant.nullable(),
  next: instant.nullable(),
  slot: instant.nullable(),
  verdict: z.string(),
  deadline: z.string().nullable().meta({ description: "what its deadline came to" }),
  covers: z.array(instant),
  tasks: z.array(taskStorySchema),
  held: z.string().nullable(),
  missingRoles: z
    .array(z.string())
    .meta({ description: "roles that no process has now, and what that stops; empty where no task is in flight" }),
});

/** How a task ended. */
export const outcomeAnswerSchema = outcomeSchema.meta({ id: "Outcome" });

/** A task that was started by hand. */
export const handRunSchema = named("HandRun", {
  id: z.string(),
  policy: z.string(),
  kind: outcomeSchema.shape.kind,
  target: z.string(),
  given: instant,
  actor: z.string().nullable(),
  reason: z.string().nullable(),
  outcome: outcomeAnswerSchema.nullable(),
});

/** What is not well. */
export const attentionSchema = named("Attention", {
  about: z.enum(["installation", "service", "sink", "list", "policy"]),
  name: z.string(),
  state: z.string(),
  what: z.string(),
  since: instant.nullable(),
  lastGood: instant.nullable(),
  slot: instant.nullable(),
  acknowledged: acknowledgedSchema.nullable(),
  policies: z.array(z.string()),
  policiesCount: z.int(),
  owner: z.string().nullable(),
  healsByItself: z.boolean(),
  nextStep: z.string(),
});

/** A service as the limiter knows it. */
export const serviceSchema = named("Service", {
  name: z.string(),
  baseUrl: z.string(),
  breaker: z.enum(["closed", "open"]),
  openSince: instant.nullable(),
  nextProbe: instant.nullable(),
  failures: z.int(),
  lastFailure: z.string().nullable(),
  throttledUntil: instant.nullable(),
  inFlight: z.int().meta({ description: "counted only where limits.concurrency is set; else 0" }),
  policies: z.int(),
});

/** A service with its policies, worst first. */
export const serviceDetailSchema = named("ServiceDetail", {
  service: serviceSchema,
  policies: z.array(z.object({ name: z.string(), health: z.enum(policyHealths) })),
});

/** A receiver of notices. */
export const sinkSchema = named("Sink", {
  sink: z.string(),
  waiting: z.int(),
  oldest: instant.nullable(),
  failed: z.int(),
  dropped: z.int(),
});

/** Who asks. `services` null: all. */
export const callerSchema = named("Caller", {
  ...{ name: z.string(), scope: z.string(), services: z.array(z.string()).nullable() },
  labels: z.record(z.string(), z.string()).nullable(),
});

const isNewSinceYesterdayAtLeast = z
  .boolean()
  .meta({ description: "there may be more than newSinceYesterday: only the newest items are looked at" });

/** A followed list. */
export const feedSchema = named("Feed", {
  service: z.string(),
  repository: z.string().nullable(),
  list: z.string(),
  items: z.int(),
  newSinceYesterday: z.int(),
  isNewSinceYesterdayAtLeast,
  lastRead: instant.nullable(),
  tookMs: z.number().nullable(),
  lastReadWhole: instant.nullable(),
  readWholeBecause: z.string().nullable(),
  failingSince: instant.nullable(),
  failure: z.string().nullable(),
  fieldsChanged: instant.nullable(),
  fieldChanges: z.string().nullable(),
});

/** An item of a list, as the mapping reads it. */
export const feedItemSchema = named("FeedItem", {
  id: z.string(),
  firstSeen: instant.nullable(),
  syncJobId: z.string().optional(),
  started: instant.nullable(),
  finished: z.boolean().optional(),
  succeeded: z.boolean().optional(),
  label: z.string().optional(),
});

/** What is open of a sync job. `syncJobId` null: of items that name none. */
export const openSchema = named("Open", {
  service: z.string(),
  repository: z.string().nullable(),
  syncJobId: z.string().nullable(),
  open: z.int(),
  newSinceYesterday: z.int(),
  isNewSinceYesterdayAtLeast,
  oldestSinceAtLeast: instant.nullable(),
  counted: instant,
});

/** The audit of a policy; without slots, `notes` say why. */
export const auditSchema = named("Audit", {
  policy: z.string(),
  after: instant.nullable().optional(),
  to: instant.nullable().optional(),
  slots: z.int(),
  recorded: z.int().optional(),
  pending: z.int().optional(),
  waiting: z.int().optional(),
  states: z.record(z.string(), z.int()).optional(),
  outcomesKeptSince: instant.nullable().optional(),
  missed: z.array(z.object({ slot: instant.nullable(), why: z.string() })).optional(),
  inFlight: z.int().optional(),
  off: z.int().optional(),
  notes: z.array(z.string()),
  findings: z.array(z.object({ slot: instant, problem: z.string(), taskId: z.string().nullable() })),
});

/** A declared object, and how it was applied last; null: never. */
export const declaredSchema = named("Declared", {
  policy: z.string(),
  service: z.string(),
  repository: z.string().nullable(),
  object: z.string(),
  last: z.object({ status: z.string(), reason: z.string(), finished: instant }).nullable(),
});

/** An entry of the failed list that is a task. */
export const failedSchema = named("FailedTask", {
  id: z.string(),
  isCorrected: z.boolean(),
  outcome: outcomeAnswerSchema,
});

/** A change by hand. */
export const changeSchema = named("Change", {
  at: instant,
  actor: z.string(),
  what: z.string(),
  subject: z.string(),
  reason: z.string().nullable(),
  before: z.unknown(),
  after: z.unknown(),
  isBegun: z.literal(true).optional().meta({ description: "it was begun, and its end is not known" }),
  from: z.object({ address: z.string(), requestId: z.string() }).optional(),
});

/** Which policies are in force, and what each process runs. */
export const configSchema = named("Config", {
  version: z.string(),
  hash: z.string(),
  files: z.array(z.string()).meta({ description: hiddenWhenNarrowed }),
  policies: z.int(),
  services: z.array(z.string()),
  processes: z.array(
    z.object({
      where: z.string(),
      roles: z.array(z.string()),
      version: z.string(),
      hash: z.string(),
      since: instant,
      rejected: z
        .object({
          since: instant,
          where: z.string().meta({ description: hiddenWhenNarrowed }),
          message: z.string().meta({ description: hiddenWhenNarrowed }),
        })
        .nullable(),
    }),
  ),
});

/** What a start has put into the queue. `workers`: how many were alive for it. */
export const startedSchema = named("Started", { tasks: z.array(z.string()), workers: z.int() });

/** What became of entries of the failed list. `into`: the new task. */
export const failedListResultSchema = named("FailedListResult", {
  done: z.array(z.object({ id: z.string(), into: z.string().optional() })),
  left: z.array(z.object({ id: z.string(), why: z.string() })),
  isAll: z.boolean().meta({
    description: "the whole list was looked at: otherwise name its older tasks by id, or discard these first",
  }),
});

/** What is wrong with policy files. `line`: 0 for what is about a whole file. */
export const validatedSchema = named("Validated", {
  ok: z.boolean(),
  policies: z.int(),
  problems: z.array(
    z.object({
      file: z.string(),
      line: z.int(),
      column: z.int(),
      message: z.string(),
      hint: z.string().nullable(),
    }),
  ),
});

const stretchShape = { slots: z.int(), away: z.int(), meets: z.int(), requests: z.int() };

/**
 * What is planned, as of `asOf`. `away`: will not start; `meets`: tasks that meet a run of their
 * sync job; `slots`: the first ones; `cutAt`, `countedUntil`: from when on slots, and numbers, are
 * left out.
 */
export const planSchema = named("Plan", {
  asOf: instant,
  from: instant,
  to: instant,
  cutAt: instant.nullable(),
  countedUntil: instant.nullable(),
  services: z.array(
    z.object({
      service: z.string(),
      policies: z.int(),
      ...stretchShape,
      hours: z.array(z.object({ from: instant, ...stretchShape })),
    }),
  ),
  peaks: z.array(z.object({ from: instant, starts: z.int(), policies: z.array(z.string()) })),
  slots: z.array(
    z.object({
      policy: z.string(),
      service: z.string(),
      timezone: z.string(),
      slot: instant,
      begins: instant.nullable(),
      ends: instant.nullable(),
      state: z.string(),
      detail: z.string(),
      kind: z.string(),
      targets: z.array(z.string()).nullable(),
      clashes: z.array(
        z.object({ target: z.string(), what: z.string(), by: z.string().optional(), waitMs: z.number() }),
      ),
      meetsRunning: z.array(z.string()),
      deadlineMissed: instant.nullable(),
    }),
  ),
  durationsUnknown: z.array(z.string()),
  running: z.array(
    z.object({
      taskId: z.string(),
      policy: z.string(),
      target: z.string(),
      sent: instant,
      usualMs: z.number(),
      endsAbout: instant,
    }),
  ),
});

/** A problem, as RFC 9457 has it. */
export const problemSchema = named("Problem", {
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  hint: z.string().optional(),
  instance: z.string(),
  errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).optional(),
});
