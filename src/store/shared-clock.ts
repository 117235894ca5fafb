// The shared clock for those who ask it all the time: Redis's time, asked once a second and carried on by this machine's own clock.
// Built by app.ts for work/. Whoever compares instants to the millisecond (the reader of a feed) asks Redis itself.
import { type Clock, createDeadline, systemClock } from "../core/clock.ts";

/** For so long an answer is carried on. By either clock, so that a process that slept asks anew. */
const carryOnMs = 1_000;

/**
 * Makes a clock out of `ask`, the time in milliseconds UTC. It lags by the way of the answer, and never runs ahead, unless the clock that
 * is asked steps back: then for a second at most.
 */
export function createSharedClock(
  ask: () => Promise<number>,
  clock: Pick<Clock, "nowMs" | "monotonicMs"> = systemClock,
): () => Promise<number> {
  let known: { readonly now: () => number; readonly isOld: () => boolean } | undefined;
  let asking: Promise<() => number> | undefined;
  const renew = async () => {
    const isOld = createDeadline(carryOnMs, clock);
    const atMs = await ask();
    const sinceMs = clock.monotonicMs();
    const now = () => Math.floor(atMs + clock.monotonicMs() - sinceMs);
    known = { now, isOld };
    return now;
  };
  return async () => {
    if (known !== undefined && !known.isOld()) return known.now();
    asking ??= renew().finally(() => {
      asking = undefined;
    });
    return (await asking)();
  };
}
