// A slot of a policy that follows another: it waits for the end of its predecessor's slot, then
// gets its one record.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";
import type { OutcomeStatus } from "./outcome.ts";
import type { SlotRecord } from "./slot-record.ts";
import type { Task, TaskKind } from "./task.ts";

const waitingSlotSchema = z.object({
  v: z.literal(1),
  after: z.string().min(1),
  followers: z.int(),
  openedMs: z.int(),
});

/** `after`: the predecessor when it was opened. `followers`: policies that follow this directly. */
export type WaitingSlot = Readonly<z.infer<typeof waitingSlotSchema>> & {
  readonly policy: string;
  readonly slotMs: number;
};

/** Reads a waiting slot. @throws NewerVersionError or ZodError, so that `audit` says so. */
export function readWaitingSlot(policy: string, slotMs: number, text: string): WaitingSlot {
  return { ...parseVersioned("waiting slot", waitingSlotSchema, JSON.parse(text)), policy, slotMs };
}

/** The state of the predecessor's slot. `nothing`: neither its record nor its tasks are known. */
export type PredecessorState =
  | { readonly state: "open" | "nothing" }
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
export interface FollowStep {
  readonly slot: WaitingSlot;
  readonly record: SlotRecord;
  readonly tasks: readonly Task[];
  /** Whether the policy's sinks hear of it when it was missed. */
  readonly isNotified?: true;
  /** The zone of the policy's days; default UTC. */
  readonly timezone?: string | undefined;
}
