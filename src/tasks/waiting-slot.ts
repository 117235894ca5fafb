// A slot of a policy that follows another: it waits until the slot of its predecessor has ended, and then gets its one record.
// Opened by the slot ledger together with the record of the chain's first policy, resolved by schedule/chains.ts.
import * as z from "zod";
import type { OutcomeStatus } from "./outcome.ts";
import type { SlotRecord } from "./slot-record.ts";
import type { Task, TaskKind } from "./task.ts";

const waitingSlotSchema = z.object({
  v: z.literal(1),
  after: z.string().min(1),
  followers: z.int(),
  openedMs: z.int(),
});

/**
 * A slot that waits (version 1). `after`: the predecessor when it was opened; `followers`: how many policies follow this one
 * directly; `openedMs`: when it was opened. Instants are milliseconds UTC.
 */
export type WaitingSlot = Readonly<z.infer<typeof waitingSlotSchema>> & {
  readonly policy: string;
  readonly slotMs: number;
};

/** Reads what is kept of a waiting slot; undefined when this version cannot: it waits for one that can. */
export function readWaitingSlot(policy: string, slotMs: number, text: string): WaitingSlot | undefined {
  const fields = waitingSlotSchema.safeParse(JSON.parse(text)).data;
  return fields === undefined ? undefined : { ...fields, policy, slotMs };
}

/** How far the slot of a predecessor has come. `nothing`: neither a record of it nor its tasks are known. */
export type PredecessorState =
  | { readonly state: "open" | "nothing" }
  | { readonly state: "not-started"; readonly record: SlotRecord }
  | {
      readonly state: "ended";
      readonly kind: TaskKind;
      /** The latest end of all its tasks. */
      readonly endedMs: number;
      /** True when every task has given back what it held. */
      readonly isReleased: boolean;
      readonly endings: readonly { readonly target: string; readonly status: OutcomeStatus }[];
    };

/** How a waiting slot ends: its record, and what follows from it. */
export interface FollowStep {
  readonly slot: WaitingSlot;
  readonly record: SlotRecord;
  readonly tasks: readonly Task[];
  /** Whether it is told to somebody when it was missed. */
  readonly isTold?: true;
}
