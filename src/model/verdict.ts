// The verdict: what one step says of its item, in one of four words. A task's step adds the ending
// to record; the queue gets its status as a text. Deliveries have words of their own
// (DeliveryVerdict).
import { systemClock } from "../core/clock.ts";

/**
 * `complete`: over. `fail`: over, and its job counts as failed. `retry`: call again after
 * `afterMs`, one attempt spent. `snooze`: call again at `untilMs` by Redis, no attempt spent.
 */
export type Verdict<Ending = string> =
  | { readonly verdict: "complete" | "fail"; readonly ending: Ending }
  | { readonly verdict: "retry"; readonly ending: Ending; readonly afterMs: number }
  | { readonly verdict: "snooze"; readonly untilMs: number };

/** The item is over. */
export function complete<Ending>(ending: Ending): Verdict<Ending> {
  return { verdict: "complete", ending };
}

/** The item is over, since no attempt is left or would help. */
export function fail<Ending>(ending: Ending): Verdict<Ending> {
  return { verdict: "fail", ending };
}

/** Call again after this wait, as another attempt; `ending` if no attempt is left. */
export function retry<Ending>(afterMs: number, ending: Ending): Verdict<Ending> {
  return { verdict: "retry", ending, afterMs };
}

/** Call again at this instant. */
export function snooze(untilMs: number): Verdict<never> {
  return { verdict: "snooze", untilMs };
}

/** Call again after so long. `clockAheadMs`: how far this machine's clock is ahead of Redis's. */
export function snoozeFor(durationMs: number, clockAheadMs: number): Verdict<never> {
  return snooze(systemClock.nowMs() - clockAheadMs + durationMs);
}

/** Over, with nothing to say of it. */
export const done: Verdict = complete("done");
