// Reads once for all who ask at about the same time: any number of viewers cost Redis no more than
// one. Used by the pages and the API.
import type { Clock } from "../core/clock.ts";
import { type NextDay, readNextDay } from "../queries/next-day.ts";
import type { QueryContext } from "../queries/query-context.ts";
import { readPausesInForce } from "../queries/records.ts";

const freshMs = 1_500;
/**
 * A look holds for so many times what it took, up to so long: all viewers together may cost Redis
 * and the process a small share of their time, however many policies there are.
 */
const [pace, pacedMsMax] = [30, 10_000];
const aheadMsMax = 300_000;
/** What takes long where there is much holds for so long. */
export const heldLong = { forMs: 30_000 };
const keptMax = 500;
/** So long a page waits for what takes long. */
const patienceMs = 200;
/** So long a failure is told of that no page waited for: pages come back after two seconds. */
const toldForMs = 3_000;

/** `isAhead`: it tells of what comes, and holds also when something has changed. */
interface Kept {
  untilMs: number;
  readonly isAhead: boolean;
  readonly answer: Promise<unknown>;
}

/** Answers of the last moments, by what was asked and what the asker may see. */
export class Looks {
  readonly #clock: Pick<Clock, "monotonicMs" | "sleep">;
  readonly #onRead: () => void;
  readonly #made = new WeakMap<object, Map<string, unknown>>();
  readonly #kept = new Map<string, Kept>();

  /** `onRead` hears of each reading. */
  constructor(clock: Pick<Clock, "monotonicMs" | "sleep">, onRead: () => void) {
    this.#clock = clock;
    this.#onRead = onRead;
  }

  /**
   * The answer of `read`, or the one that it gave just before. `name`: what is asked. `ahead`: how
   * long it holds whatever changes, and at least so many times what it took.
   */
  async of<Answer>(
    name: string,
    context: QueryContext,
    read: (context: QueryContext) => Promise<Answer>,
    ahead?: { readonly forMs: number; readonly times?: number },
  ): Promise<Answer> {
    const { set, view } = context;
    const key = JSON.stringify([name, set.contentHash, view.key]);
    const nowMs = this.#clock.monotonicMs();
    const kept = this.#kept.get(key);
    if (kept !== undefined && nowMs < kept.untilMs) return (await kept.answer) as Answer;
    this.#onRead();
    const answer = read(context);
    const fresh = { untilMs: nowMs + (ahead?.forMs ?? freshMs), isAhead: ahead !== undefined, answer };
    this.#kept.delete(key);
    this.#kept.set(key, fresh);
    for (const [oldest, { untilMs }] of this.#kept)
      if (this.#kept.size > keptMax || nowMs >= untilMs) this.#kept.delete(oldest);
    try {
      const found = await answer;
      const tookMs = this.#clock.monotonicMs() - nowMs;
      const [times, mostMs] = ahead === undefined ? [pace, pacedMsMax] : [ahead.times ?? 0, aheadMsMax];
      fresh.untilMs = Math.max(fresh.untilMs, nowMs + Math.min(times * tookMs, mostMs));
      return found;
    } catch (error) {
      const failedMs = this.#clock.monotonicMs();
      // The next one asks again. A page that did not wait comes back, and must be told once.
      if (failedMs - nowMs >= patienceMs) fresh.untilMs = failedMs + toldForMs;
      else if (this.#kept.get(key) === fresh) this.#kept.delete(key);
      throw error;
    }
  }

  /** What is made of an answer, once as long as the answer is kept. `name`: what is made of it. */
  made<Made>(answer: object, name: string, make: () => Made): Made {
    const all = this.#made.get(answer) ?? new Map<string, unknown>();
    this.#made.set(answer, all);
    if (!all.has(name)) all.set(name, make());
    return all.get(name) as Made;
  }

  /** The answer, if it comes while a page may wait; undefined: it is still being worked out. */
  async soon<Answer>(answer: Promise<Answer>): Promise<Answer | undefined> {
    const enough = new AbortController();
    try {
      return await Promise.race([answer, this.#clock.sleep(patienceMs, enough.signal).then(() => undefined)]);
    } finally {
      enough.abort();
    }
  }

  /** Something was changed here: only looks ahead go on to hold. */
  forget(): void {
    for (const [key, { isAhead }] of this.#kept) if (!isAhead) this.#kept.delete(key);
  }

  /** Something has changed elsewhere: forgets the same once none of them is to hold; did it? */
  forgetWhenDue(): boolean {
    const nowMs = this.#clock.monotonicMs();
    for (const { untilMs, isAhead } of this.#kept.values()) if (!isAhead && untilMs > nowMs + freshMs) return false;
    this.forget();
    return true;
  }
}

/**
 * The time ahead. Until a pause or a policy changes, it holds for a hundred times what it
 * took: 100,000 slots take two seconds of CPU, and viewers must cost the process little.
 */
export async function lookAhead(looks: Looks, context: QueryContext, hours: number): Promise<NextDay> {
  const pauses = await looks.of("pauses", context, readPausesInForce);
  const name = `next ${JSON.stringify([hours, ...pauses.map(({ scope, name: of, untilMs }) => [scope, of, untilMs])])}`;
  return looks.of(name, context, (at) => readNextDay(at, hours), { ...heldLong, times: 100 });
}
