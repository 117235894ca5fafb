// Token buckets, one a caller: each request takes one; they fill again with time. Used by
// admission.ts for requests, changes and records of refusals, and by sign-in.ts.
import type { Clock } from "../core/clock.ts";

/** Callers that are remembered; beyond, the one that asked least lately is forgotten. */
const bucketsMax = 10_000;

/** Buckets of `burst` requests that fill with `perSecond`. */
export class RateLimit {
  readonly #burst: number;
  readonly #perSecond: number;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #buckets = new Map<string, { readonly left: number; readonly atMs: number }>();

  constructor(limits: { readonly burst: number; readonly perSecond: number }, clock: Pick<Clock, "monotonicMs">) {
    this.#burst = limits.burst;
    this.#perSecond = limits.perSecond;
    this.#clock = clock;
  }

  /** Takes one of a caller's requests; answers 0, or the seconds until there is one again. */
  take(caller: string): number {
    const nowMs = this.#clock.monotonicMs();
    const { left, atMs } = this.#buckets.get(caller) ?? { left: this.#burst, atMs: nowMs };
    const filled = Math.min(this.#burst, left + ((nowMs - atMs) / 1_000) * this.#perSecond);
    const isEmpty = filled < 1;
    // Set anew, so that the oldest stand first.
    this.#buckets.delete(caller);
    this.#buckets.set(caller, { left: isEmpty ? filled : filled - 1, atMs: nowMs });
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size <= bucketsMax) break;
      this.#buckets.delete(oldest);
    }
    return isEmpty ? Math.ceil((1 - filled) / this.#perSecond) : 0;
  }
}
