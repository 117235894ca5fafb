// Reads once for all who ask at about the same time: any number of viewers cost Redis no more than
// one. Used by the pages and the API; web-server.ts reads the time ahead before it is asked for.
import { type Clock, nextTurn } from "../core/clock.ts";
import { type NextDay, readNextDay } from "../queries/next-day.ts";
import type { QueryContext } from "../queries/query-context.ts";
import { readPausesInForce } from "../queries/records.ts";

/**
 * How long an answer is kept: `forMs`, or so many `times` what it took, up to `mostMs`.
 * `outlivesChanges`: also when something has changed. `renewsMs`: so long after that it still
 * serves, while it is read anew at leisure.
 */
interface Hold {
  readonly forMs: number;
  readonly times: number;
  readonly mostMs: number;
  readonly outlivesChanges: boolean;
  readonly renewsMs: number;
  /** Not set: a caller waits for it. Otherwise it is read at leisure until one does. */
  readonly isBeforehand?: true;
}

/** Viewers may cost Redis and the process little, however many policies there are. */
const paced: Hold = { forMs: 1_500, times: 30, mostMs: 10_000, outlivesChanges: false, renewsMs: 0 };
/** What is made of other answers must not be much older than they are. */
export const heldBriefly: Hold = { ...paced, times: 0 };
/** What takes long where there is much. */
export const heldLong: Hold = { forMs: 30_000, times: 0, mostMs: 300_000, outlivesChanges: true, renewsMs: 0 };
/** The time ahead: 100,000 slots take two seconds of CPU, and viewers must cost little. */
const heldAhead: Hold = { ...heldLong, times: 100, renewsMs: 60_000 };
/** After so long without a caller the time ahead is not renewed: it takes seconds of CPU. */
const renewedForMs = 3_600_000;
/** What is read at leisure rests so many times as long as it has worked. */
const restTimes = 3;
const entriesMax = 500;
/** What is made of one answer: callers ask with filters of their own. */
const madeMax = 100;
/** So long a page waits for what takes long. */
const patienceMs = 200;
/** So long a failure is told of that no page waited for: pages come back after two seconds. */
const toldForMs = 3_000;

/** An answer that is read. `asked` aborts when a caller waits for it. */
interface Reading {
  readonly answer: Promise<unknown>;
  readonly asked: AbortController;
}

/** `untilMs`: endless while it is read. `renewAtMs`: who asks from then on has it renewed. */
interface CacheEntry extends Reading, Pick<Hold, "outlivesChanges"> {
  untilMs: number;
  renewAtMs: number;
}

/** A caller waits for it from now on. Each `abort` makes an exception, with its stack. */
function hurry({ asked }: Reading): void {
  if (!asked.signal.aborted) asked.abort();
}

/** Lets others go first, between two parts of a long calculation. */
type Rest = () => Promise<void>;

/** Answers of the last moments, by what was asked and what the caller may see. */
export class AnswerCache {
  readonly #clock: Pick<Clock, "monotonicMs" | "sleep">;
  readonly #onRead: () => void;
  readonly #made = new WeakMap<object, Map<string, unknown>>();
  readonly #entries = new Map<string, CacheEntry>();
  /** When open pages last heard of a change, and how long the answers since then are kept. */
  #toldMs = Number.NEGATIVE_INFINITY;
  #restMs = 0;
  /** When a caller last asked for a shared answer; what is read beforehand has none. */
  #askedMs: number;

  /** `onRead` hears of each reading. */
  constructor(clock: Pick<Clock, "monotonicMs" | "sleep">, onRead: () => void) {
    this.#clock = clock;
    this.#onRead = onRead;
    this.#askedMs = clock.monotonicMs();
  }

  /** Whether a caller has asked within this time, or the process is as young. */
  isInUse(withinMs: number): boolean {
    return this.#clock.monotonicMs() - this.#askedMs < withinMs;
  }

  /**
   * The answer of `read`, or the one that it gave just before. `name`: what is asked. `rest` is for
   * what takes seconds.
   */
  async of<Answer>(
    name: string,
    context: QueryContext,
    read: (context: QueryContext, rest: Rest) => Promise<Answer>,
    hold = paced,
  ): Promise<Answer> {
    const { set, view } = context;
    const key = JSON.stringify([name, set.contentHash, view.key]);
    const nowMs = this.#clock.monotonicMs();
    if (!hold.isBeforehand) this.#askedMs = nowMs;
    const kept = this.#entries.get(key);
    const begin = () => {
      this.#onRead();
      const asked = new AbortController();
      return { answer: read(context, this.#leisure(asked.signal)), asked };
    };
    if (kept !== undefined && nowMs < kept.untilMs) {
      if (nowMs >= kept.renewAtMs) void this.#renew(key, kept, begin(), hold);
      if (!hold.isBeforehand) hurry(kept);
      return (await kept.answer) as Answer;
    }
    const fresh = this.#keep(key, begin(), hold);
    if (!hold.isBeforehand) hurry(fresh);
    try {
      const found = (await fresh.answer) as Answer;
      this.#hold(fresh, nowMs, hold);
      return found;
    } catch (error) {
      const failedMs = this.#clock.monotonicMs();
      // The next one asks again. A page that did not wait comes back, and must be told once.
      if (failedMs - nowMs >= patienceMs) fresh.untilMs = failedMs + toldForMs;
      else if (this.#entries.get(key) === fresh) this.#entries.delete(key);
      throw error;
    }
  }

  /** The old answer serves until then, or until its end: who asks after that is told what fails. */
  async #renew(key: string, old: CacheEntry, reading: Reading, hold: Hold): Promise<void> {
    old.renewAtMs = Number.POSITIVE_INFINITY;
    const beganMs = this.#clock.monotonicMs();
    const isRead = await reading.answer.then(
      () => true,
      () => false,
    );
    if (isRead && this.#entries.get(key) === old) this.#hold(this.#keep(key, reading, hold), beganMs, hold);
  }

  #keep(key: string, reading: Reading, { outlivesChanges }: Hold): CacheEntry {
    const nowMs = this.#clock.monotonicMs();
    const [untilMs, renewAtMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    const fresh = { ...reading, untilMs, renewAtMs, outlivesChanges };
    this.#entries.delete(key);
    this.#entries.set(key, fresh);
    for (const [oldest, entry] of this.#entries)
      if (this.#entries.size > entriesMax || nowMs >= entry.untilMs) this.#entries.delete(oldest);
    return fresh;
  }

  #hold(entry: CacheEntry, beganMs: number, { forMs, times, mostMs, renewsMs, outlivesChanges }: Hold): void {
    const heldMs = Math.min(times * (this.#clock.monotonicMs() - beganMs), mostMs);
    const endMs = beganMs + Math.max(forMs, heldMs);
    entry.untilMs = endMs + renewsMs;
    if (renewsMs > 0) entry.renewAtMs = endMs;
    if (!outlivesChanges) this.#restMs = Math.max(this.#restMs, heldMs);
  }

  /** A rest after each part, at most a fourth of a core, until it is asked for. */
  #leisure(asked: AbortSignal): Rest {
    let resumedMs = this.#clock.monotonicMs();
    return async () => {
      if (asked.aborted) return nextTurn();
      await this.#clock.sleep(restTimes * (this.#clock.monotonicMs() - resumedMs), asked);
      resumedMs = this.#clock.monotonicMs();
    };
  }

  /** What is made of an answer, once as long as the answer is kept. `name`: what is made of it. */
  made<Made>(answer: object, name: string, make: () => Made): Made {
    const all = this.#made.get(answer) ?? new Map<string, unknown>();
    this.#made.set(answer, all);
    if (!all.has(name)) {
      for (const oldest of all.keys()) if (all.size >= madeMax) all.delete(oldest);
      all.set(name, make());
    }
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

  /** Something was changed, here or elsewhere: what does not outlive it is read anew. */
  forget(): void {
    for (const [key, { outlivesChanges }] of this.#entries) if (!outlivesChanges) this.#entries.delete(key);
  }

  /**
   * Whether open pages may hear of a change now; then all is read anew. Not while the answers of
   * the last time are kept, but for what is `urgent`.
   */
  mayTell(isUrgent: boolean): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (!isUrgent && nowMs < this.#toldMs + this.#restMs) return false;
    [this.#toldMs, this.#restMs] = [nowMs, 0];
    this.forget();
    return true;
  }
}

/** The time ahead, until a pause or a policy changes. */
export async function readTimeAhead(
  cache: AnswerCache,
  context: QueryContext,
  hours: number,
  hold = heldAhead,
): Promise<NextDay> {
  const { isBeforehand } = hold;
  const briefly = { ...paced, ...(isBeforehand && { isBeforehand }) };
  const pauses = await cache.of("pauses", context, readPausesInForce, briefly);
  const name = `next ${JSON.stringify([hours, ...pauses.map(({ scope, name: of, untilMs }) => [scope, of, untilMs])])}`;
  return cache.of(name, context, (at, rest) => readNextDay(at, hours, rest), hold);
}

/** Works the time ahead out before it is asked for, and renews it while there are callers. */
export async function readAhead(cache: AnswerCache, context: QueryContext, hours: number): Promise<void> {
  if (cache.isInUse(renewedForMs)) await readTimeAhead(cache, context, hours, { ...heldAhead, isBeforehand: true });
}
