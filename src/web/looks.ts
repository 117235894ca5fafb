// Reads once for all who ask at about the same time: any number of viewers cost Redis no more than
// one. Used by the pages and the API.
import type { Clock } from "../core/clock.ts";
import type { QueryContext } from "../queries/query-context.ts";

const freshMs = 1_500;
/** How long a look ahead or an audit holds: it takes long where there is much. */
export const aheadMs = 30_000;
const keptMax = 500;

/** Answers of the last moments, by what was asked and what the asker may see. */
export class Looks {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #kept = new Map<string, { readonly untilMs: number; readonly answer: Promise<unknown> }>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** The answer of `read`, or the one that it gave just before. `name`: what is asked. */
  async of<Answer>(
    name: string,
    context: QueryContext,
    read: (context: QueryContext) => Promise<Answer>,
    forMs = freshMs,
  ): Promise<Answer> {
    const { set, isNarrowed } = context;
    const key = JSON.stringify([name, set.contentHash, isNarrowed ? [...set.services.keys()] : null]);
    const nowMs = this.#clock.monotonicMs();
    const kept = this.#kept.get(key);
    if (kept !== undefined && nowMs < kept.untilMs) return (await kept.answer) as Answer;
    const answer = read(context);
    this.#kept.delete(key);
    this.#kept.set(key, { untilMs: nowMs + forMs, answer });
    for (const [oldest, { untilMs }] of this.#kept)
      if (this.#kept.size > keptMax || nowMs >= untilMs) this.#kept.delete(oldest);
    return answer;
  }

  /** Something has changed: only looks ahead go on to hold. */
  forget(): void {
    const soonMs = this.#clock.monotonicMs() + freshMs;
    for (const [key, { untilMs }] of this.#kept) if (untilMs <= soonMs) this.#kept.delete(key);
  }
}
