// The verdict: what the processor tells the queue after a step. The outcome is for people.

/**
 * `done`: the outcome is recorded. `skipped`: the same, and nothing was sent. `snooze`: call again
 * then, no attempt spent. `retry`: it may recover; call again later, one attempt spent. `give-up`:
 * recorded as failed, do not call again.
 */
export type Verdict =
  | { readonly verdict: "done" | "skipped" | "give-up" }
  | { readonly verdict: "snooze"; readonly untilMs: number }
  | { readonly verdict: "retry"; readonly afterMs: number; readonly reason: string };

/** The history has the outcome. */
export const done: Verdict = { verdict: "done" };

/** Nothing was sent; the history says why. */
export const skipped: Verdict = { verdict: "skipped" };

/** The task failed; the history says why. */
export const giveUp: Verdict = { verdict: "give-up" };

/** Call again at this instant. */
export function snooze(untilMs: number): Verdict {
  return { verdict: "snooze", untilMs };
}

/** Call again after this wait, as another attempt. */
export function retry(afterMs: number, reason: string): Verdict {
  return { verdict: "retry", afterMs, reason };
}
