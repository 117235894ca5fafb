// The ledger's record of one slot, the planned slots that the scheduler hands to it, and the slot
// of a follower, which waits for the end of its predecessor's slot before it gets its one record.
import * as z from "zod";
import { isJsonObject } from "../core/json.ts";
import { parseVersioned, refuseNewer } from "../core/newer-version.ts";
import type { OutcomeStatus } from "./outcome.ts";
import { type Task, type TaskKind, taskId, taskKinds } from "./task.ts";

const slotRecordSchema = z.object({
  slotMs: z.int(),
  state: z.enum(["started", "skipped", "missed", "coalesced"]),
  detail: z.string(),
  note: z.string().exactOptional(),
  schedule: z.string().exactOptional(),
  kind: z.enum(taskKinds).exactOptional(),
  targets: z.array(z.string()).exactOptional(),
});

/**
 * `detail`: the reason of a skip or miss; of a coalesced slot, the one that stands for it; of a
 * started one, `followed`, `caught-up`, `released` or ''. `schedule`: hash of the schedule that
 * made the slot. `kind`, `targets`: the parts of a started slot's task ids.
 * An outcome calls its `detail` a reason, and its `note` a detail.
 */
export type SlotRecord = Readonly<z.infer<typeof slotRecordSchema>>;

/** The tasks of a started slot by its record, with their ids; none of any other slot. */
export function tasksOfSlot(policy: string, { kind, targets = [], slotMs }: SlotRecord) {
  if (kind === undefined) return [];
  const identities = targets.map((target) => ({ policy, kind, target, slotMs, origin: "schedule" }) as const);
  return identities.map((identity) => ({ ...identity, id: taskId(identity) }));
}

/** Reads a record. @throws NewerVersionError, so that `audit` does not call it lost. */
export function readSlotRecord(value: unknown): SlotRecord | undefined {
  refuseNewer("slot record", isJsonObject(value) ? value["v"] : undefined);
  return slotRecordSchema.safeParse(value).data;
}

/** The slots of one policy from the expected watermark to the new one, as planned. */
export interface PlannedSlots {
  readonly policy: string;
  readonly expectedWatermarkMs: number;
  readonly newWatermarkMs: number;
  readonly records: readonly SlotRecord[];
  readonly tasks: readonly Task[];
  /** The policies that follow this one, directly or not: each gets a slot that waits. */
  readonly followers?: readonly Follower[];
  /** Whether a missed slot becomes an event for the notifier. */
  readonly isNotified?: true;
  /** The schedule that has these slots; nothing is recorded while another is in force. */
  readonly schedule?: string;
  /** The zone of the policy's days; default UTC. */
  readonly timezone?: string | undefined;
  /** When the scheduler planned it, by Redis; default: at the new watermark. */
  readonly plannedAtMs?: number;
}

/** What tells the tasks of planned slots in the outbox from others. */
export type OutboxPlace = Pick<PlannedSlots, "policy" | "newWatermarkMs" | "plannedAtMs">;

/** Planned slots whose tasks lie in the outbox. */
export type UnqueuedSlots = OutboxPlace & Pick<PlannedSlots, "tasks">;

/** What became of planned slots: recorded or not, and the watermark that stands. */
export interface RecordAnswer {
  readonly recorded: boolean;
  readonly watermarkMs: number | undefined;
  /** Why these slots were refused for ever: a mistake, and not another replica. */
  readonly fault?: string;
  /** Another replica has put another schedule of the policy into force. */
  readonly isSuperseded?: true;
  /** The followers for which it has done so: none of these slots was opened for them. */
  readonly supersededFollowers?: readonly string[];
}

/** A policy whose slots are those of `after`. `followers`: how many follow it directly. */
export interface Follower {
  readonly policy: string;
  readonly after: string;
  readonly followers: number;
  /** The text of its schedule; a follower with another one in force gets no slot. */
  readonly schedule: string;
}

/**
 * A policy and the text of its schedule; another text means a changed schedule. `from`: given when
 * the schedule changes: the text in force until now, all of whose slots are recorded. `beginsMs`:
 * its watermark where Redis has none; default: now.
 */
export interface ScheduledPolicy {
  readonly policy: string;
  readonly schedule: string;
  readonly from?: string;
  readonly beginsMs?: number | undefined;
}

/** Up to where the slots of a policy are recorded, and the text of the schedule in force. */
export interface Watermark {
  readonly watermarkMs: number;
  readonly schedule: string;
}

const waitingSlotSchema = z.object({
  v: z.literal(1),
  after: z.string().min(1),
  followers: z.int(),
  openedMs: z.int(),
  isLeftOut: z.literal(true).exactOptional(),
});

/**
 * `after`: the policy that this one followed when the slot was opened. `followers`: policies that
 * follow this directly.
 * `isLeftOut`: a replica with other policies had planned the predecessor's slot without this one.
 */
export type WaitingSlot = Readonly<z.infer<typeof waitingSlotSchema>> & {
  readonly policy: string;
  readonly slotMs: number;
};

/** Reads a waiting slot. @throws NewerVersionError or ZodError, so that `audit` says so. */
export function readWaitingSlot(policy: string, slotMs: number, text: string): WaitingSlot {
  return { ...parseVersioned("waiting slot", waitingSlotSchema, JSON.parse(text)), policy, slotMs };
}

/** The state of the predecessor's slot. `nothing`: Redis does not tell how its tasks ended. */
export type PredecessorState =
  | { readonly state: "nothing" }
  /** `isUnreadable`: a newer version has written what became of it. */
  | { readonly state: "open"; readonly isUnreadable?: true }
  | { readonly state: "not-started"; readonly record: SlotRecord }
  | {
      readonly state: "ended";
      readonly kind: TaskKind;
      /** The latest end of its tasks. */
      readonly endedMs: number;
      /** Whether every task has released its lease. */
      readonly isReleased: boolean;
      readonly endings: readonly { readonly target: string; readonly status: OutcomeStatus }[];
    };

/** How a waiting slot ends: its record and its tasks. */
export interface WaitingSlotEnd {
  readonly slot: WaitingSlot;
  readonly record: SlotRecord;
  readonly tasks: readonly Task[];
  /** Whether the policy's sinks hear of it when it was missed. */
  readonly isNotified?: true;
  /** The zone of the policy's days; default UTC. */
  readonly timezone?: string | undefined;
}

/** A gap in Redis's memory: starts that went out then may be forgotten. Milliseconds UTC. */
export interface Loss {
  readonly fromMs: number;
  readonly untilMs: number;
}
