// What a processor tells the queue: five words for every ending. The outcome, which the world sees, is another thing.

/**
 * `done`: the outcome is recorded. `skipped`: recorded too, nothing was sent. `snooze`: call again at that instant, no attempt spent.
 * `retry`: a failure that may heal; call again later, one attempt spent. `give-up`: recorded as failed, never call again.
 */
export type Verdict =
  | { readonly verdict: "done" | "skipped" | "give-up" }
  | { readonly verdict: "snooze"; readonly untilMs: number }
  | { readonly verdict: "retry"; readonly afterMs: number; readonly reason: string };

/** The outcome stands in the history. */
export const done: Verdict = { verdict: "done" };

/** Nothing was sent, and the history says why. */
export const skipped: Verdict = { verdict: "skipped" };

/** The history says why it failed. */
export const giveUp: Verdict = { verdict: "give-up" };

/** Call again at this instant. */
export function snooze(untilMs: number): Verdict {
  return { verdict: "snooze", untilMs };
}

/** Call again after this wait, as another attempt. */
export function retry(afterMs: number, reason: string): Verdict {
  return { verdict: "retry", afterMs, reason };
}
