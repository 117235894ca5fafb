// How often the reader of a repository's two followed lists would walk them, for the runs of a simulation. It keeps the pace of the
// real one (feeds/pace.ts); what the lists would show is assumed: something new when a run begins and when it ends, else nothing.
//
//   a run begins ─▶ a fresh walk before its request ─▶ walks at the reader's pace ─▶ one that shows the end ─▶ one more at once, for its conflicts
//
// The two lists have a reader each; they keep the same pace here, so one walk stands for both.
import { MinHeap } from "../core/min-heap.ts";
import { defaultPace, walkGapMs, walkPaceMs } from "../feeds/pace.ts";

/** The walks of one (service, repository). Runs are told in the order of time. */
export class FeedWalks {
  /** Walks so far, of each list. */
  walks = 0;
  readonly #walkMs: number;
  readonly #ends = new MinHeap<undefined>();
  #startedAtMs = Number.NEGATIVE_INFINITY;
  #nextMs = Number.POSITIVE_INFINITY;
  #freshAtMs = 0;

  /** `walkMs`: how long one walk takes. */
  constructor(walkMs: number) {
    this.#walkMs = walkMs;
  }

  /** A run begins. `endsAtMs`: how long it is followed; undefined when it only needs to know where the lists stand. */
  begin(nowMs: number, endsAtMs: number | undefined): void {
    this.advance(nowMs);
    if (this.#startedAtMs < nowMs) this.#walk(Math.max(nowMs, this.#earliestMs()));
    this.#freshAtMs = nowMs;
    if (endsAtMs !== undefined) this.#ends.push(endsAtMs, undefined);
    this.#pace();
  }

  /** Does the walks that come up to this instant. */
  advance(untilMs: number): void {
    while (this.#nextMs <= untilMs) {
      this.#walk(this.#nextMs);
      let ended = 0;
      for (; (this.#ends.leastRank ?? Number.POSITIVE_INFINITY) <= this.#startedAtMs; ended += 1) this.#ends.pop();
      if (ended > 0) {
        this.#freshAtMs = this.#startedAtMs;
        this.#walk(this.#earliestMs());
      }
      this.#pace();
    }
  }

  #walk(atMs: number): void {
    this.walks += 1;
    this.#startedAtMs = atMs;
  }

  #earliestMs(): number {
    return this.#startedAtMs + this.#walkMs + walkGapMs(defaultPace, this.#walkMs);
  }

  #pace(): void {
    const endedAtMs = this.#startedAtMs + this.#walkMs;
    const waitMs = walkPaceMs(defaultPace, Math.max(0, endedAtMs - this.#freshAtMs), this.#walkMs);
    this.#nextMs = this.#ends.leastRank === undefined ? Number.POSITIVE_INFINITY : endedAtMs + waitMs;
  }
}
