// What the teller reads: an outcome, or a slot that was missed. Written in the same step as the outcome or the slot's record (store/), so
// that nothing is lost between recording and telling. Only of policies that somebody is told of.
import type { Outcome } from "./outcome.ts";

/** One event, in the order in which they were recorded. `id`: its place in the stream. */
export type TellingEvent =
  | { readonly id: string; readonly kind: "outcome"; readonly outcome: Outcome }
  | {
      readonly id: string;
      readonly kind: "slot-missed";
      readonly policy: string;
      readonly slotMs: number;
      readonly detail: string;
    };

/** How many events wait for the teller at the most; the oldest go when it is away for so long. About 900 bytes each. */
export const tellingEventsMax = 100_000;

/** What decides whether an outcome of a policy becomes an event. */
interface Told {
  readonly notify?: readonly unknown[];
  readonly heartbeat?: unknown;
}

/** Whether somebody wants to hear of a policy's outcomes; undefined, a policy that is not known, is not told of. */
export function isToldOf(policy: Told | undefined): boolean {
  return policy?.notify !== undefined || policy?.heartbeat !== undefined;
}
