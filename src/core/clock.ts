// The single door to time: nothing else in src/ calls Date.now, performance.now or a timer.
// Tests pass a clock of their own; the wall clock is for instants, the monotonic one for how long something took.
import { setTimeout as delay, setImmediate as immediate } from "node:timers/promises";

/** Where code gets the time from and how it waits. */
export interface Clock {
  /** The wall clock, in milliseconds since 1970-01-01 UTC. May step backwards. */
  nowMs(): number;
  /** Milliseconds since some fixed point; never steps back. */
  monotonicMs(): number;
  /** Waits; resolves early, without an error, when the signal aborts. */
  sleep(durationMs: number, signal?: AbortSignal): Promise<void>;
  /** Calls back again and again until the returned function is called. Does not keep the process alive. */
  every(intervalMs: number, callback: () => void): () => void;
}

/** The machine's own clock. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: async (durationMs, signal) => {
    try {
      await delay(durationMs, undefined, signal === undefined ? {} : { signal });
    } catch {
      // An aborted wait is an early end, not a failure.
    }
  },
  every: (intervalMs, callback) => {
    const timer = setInterval(callback, intervalMs);
    timer.unref();
    return () => clearInterval(timer);
  },
};

/**
 * Makes the question whether a duration has passed, by either clock: the monotonic one stands still while a machine is suspended,
 * the wall clock may step. So it may say yes too early, never too late.
 */
export function createDeadline(
  durationMs: number,
  clock: Pick<Clock, "nowMs" | "monotonicMs"> = systemClock,
): () => boolean {
  const [wallMs, monotonicMs] = [clock.nowMs(), clock.monotonicMs()];
  return () => clock.nowMs() - wallMs > durationMs || clock.monotonicMs() - monotonicMs > durationMs;
}

/** The longest wait of a timer: a longer one would end at once. */
const timerMsMax = 2 ** 31 - 1;

/** Makes the question how much of a duration is left, in milliseconds: never more than a timer can wait, never less than 0. */
export function countDown(durationMs: number, clock: Pick<Clock, "monotonicMs"> = systemClock): () => number {
  const startedAtMs = clock.monotonicMs();
  return () => Math.min(Math.max(durationMs - (clock.monotonicMs() - startedAtMs), 0), timerMsMax);
}

/** Lets everything else that is due have its turn; for long calculations between two portions. */
export function nextTurn(): Promise<void> {
  return immediate();
}

/**
 * Waits for a promise no longer than the deadline.
 * @throws the error that `onTimeout` makes, when the deadline passes first. The promise itself goes on.
 */
export async function withDeadline<T>(promise: Promise<T>, deadlineMs: number, onTimeout: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(onTimeout()), deadlineMs);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
