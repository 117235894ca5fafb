// The single door to time: nothing else in src/ calls Date.now, performance.now or a timer. Tests
// pass their own clock. The wall clock gives instants, the monotonic one durations.
import { setTimeout as delay, setImmediate as immediate } from "node:timers/promises";

/** A source of time and of waits. */
export interface Clock {
  /** The wall clock, in milliseconds since 1970-01-01 UTC. May step backwards. */
  nowMs(): number;
  /** Milliseconds since some fixed point; never steps back. */
  monotonicMs(): number;
  /** Waits; resolves early, without an error, when the signal aborts. */
  sleep(durationMs: number, signal?: AbortSignal): Promise<void>;
  /** Calls back at this interval until the returned function is called; keeps no process alive. */
  every(intervalMs: number, callback: () => void): () => void;
}

/** The machine's clock. */
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
 * Makes a check whether a duration has passed by either clock: one stands still during a suspend,
 * the other may step. It may say yes too early, never too late.
 */
export function createDeadline(
  durationMs: number,
  clock: Pick<Clock, "nowMs" | "monotonicMs"> = systemClock,
): () => boolean {
  const [wallMs, monotonicMs] = [clock.nowMs(), clock.monotonicMs()];
  return () => clock.nowMs() - wallMs > durationMs || clock.monotonicMs() - monotonicMs > durationMs;
}

/** The longest wait of a timer: Node ends a longer one at once. */
const timerMsMax = 2 ** 31 - 1;

/** Makes a count-down of a duration, in milliseconds: from 0 up to the longest wait of a timer. */
export function countDown(durationMs: number, clock: Pick<Clock, "monotonicMs"> = systemClock): () => number {
  const startedAtMs = clock.monotonicMs();
  return () => Math.min(Math.max(durationMs - (clock.monotonicMs() - startedAtMs), 0), timerMsMax);
}

/** Yields to the event loop; for long calculations between two batches. */
export function nextTurn(): Promise<void> {
  return immediate();
}

/** A limit is waited for in so many parts: of a time in which nothing ran, one part counts. */
const limitParts = 5;

/**
 * Waits for a promise up to a limit, not counting for how long this process was held up, and
 * reads once more what has come. @throws the error of `onTimeout` when the limit is first.
 */
export function withTimeLimit<T>(promise: Promise<T>, limitMs: number, onTimeout: () => Error): Promise<T> {
  // By hand: each command to Redis waits here, and a race makes several promises for each.
  const { promise: settled, resolve, reject } = Promise.withResolvers<T>();
  let timer: NodeJS.Timeout | undefined;
  const wait = (parts: number) => {
    const next = () => (parts > 1 ? wait(parts - 1) : nextTurn().then(() => reject(onTimeout())));
    timer = setTimeout(next, Math.min(limitMs / limitParts, timerMsMax));
  };
  wait(limitParts);
  promise.then(
    (value) => {
      clearTimeout(timer);
      resolve(value);
    },
    (error: unknown) => {
      clearTimeout(timer);
      reject(error);
    },
  );
  return settled;
}

/**
 * Waits for a promise until the signal aborts. A later rejection of the promise is ignored.
 * @throws Error "aborted" when the signal aborts first.
 */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(new Error("aborted"));
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    promise.catch(() => {});
  }
}

/** The shape of a backoff: the first step and the longest wait, in milliseconds. */
export interface Backoff {
  readonly baseMs: number;
  readonly capMs: number;
}

/** The wait before a retry (1 = the first): a random part of `base · 2^(retry-1)`, capped. */
export function backoffMs(backoff: Backoff, retry: number, random: () => number = Math.random): number {
  const ceiling = Math.min(backoff.capMs, backoff.baseMs * 2 ** Math.min(retry - 1, 30));
  return Math.ceil(random() * ceiling);
}
