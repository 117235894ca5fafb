// How many tasks of a service are worked on at a time: `limits.concurrency`, for its actions and for its polls apart, as the
// consumers of its two queues do it in one replica. Called by simulation.ts.
//
// A run holds a worker for its requests only, not while it is followed, so this delays bursts and never a long run.

/** One lane: so many workers, first come first served. */
export class Lane {
  /** When each worker is free again. */
  readonly #freeAtMs: number[];

  constructor(workers: number) {
    this.#freeAtMs = Array.from({ length: workers }, () => Number.NEGATIVE_INFINITY);
  }

  /** Takes the worker that is free first, from then on for a while. Answers when that is. Call it in the order of time. */
  take(nowMs: number, forMs: number): number {
    let first = 0;
    for (let worker = 1; worker < this.#freeAtMs.length; worker += 1) {
      if ((this.#freeAtMs[worker] ?? 0) < (this.#freeAtMs[first] ?? 0)) first = worker;
    }
    const atMs = Math.max(nowMs, this.#freeAtMs[first] ?? nowMs);
    this.#freeAtMs[first] = atMs + forMs;
    return atMs;
  }
}
