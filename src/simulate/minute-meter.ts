// The minutes with the most starts, and their policies. Fed in the order of time, so it keeps only
// the present minute and the busiest ones. Used by `simulate` and `plan`.

const minuteMs = 60_000;

/** One busy minute. `policies`: those with the most starts in it, at most `policiesNamedMax`. */
export interface BusyMinute {
  readonly fromMs: number;
  readonly starts: number;
  readonly policiesCount: number;
  readonly policies: readonly { readonly policy: string; readonly starts: number }[];
}

/** How many policies of a busy minute are named. */
const policiesNamedMax = 5;

/** Keeps the busiest minutes of UTC; the earlier one first where two are equal. */
export class MinuteMeter {
  readonly #keep: number;
  readonly #best: BusyMinute[] = [];
  #minute = Number.NEGATIVE_INFINITY;
  #starts = 0;
  #byPolicy = new Map<string, number>();

  /** `keep`: how many minutes are remembered. */
  constructor(keep: number) {
    this.#keep = keep;
  }

  /** Notes a start. Instants never go back. */
  add(atMs: number, policy: string): void {
    const minute = Math.floor(atMs / minuteMs);
    if (minute !== this.#minute) {
      this.#close();
      this.#minute = minute;
    }
    this.#starts += 1;
    this.#byPolicy.set(policy, (this.#byPolicy.get(policy) ?? 0) + 1);
  }

  /** The busiest minutes so far, busiest first. */
  busiest(): readonly BusyMinute[] {
    this.#close();
    return [...this.#best];
  }

  #close(): void {
    const [starts, byPolicy] = [this.#starts, this.#byPolicy];
    if (starts === 0) return;
    this.#starts = 0;
    this.#byPolicy = new Map();
    if (this.#best.length >= this.#keep && starts <= (this.#best.at(-1)?.starts ?? 0)) return;
    const policies = [...byPolicy]
      .map(([policy, count]) => ({ policy, starts: count }))
      .sort((a, b) => b.starts - a.starts)
      .slice(0, policiesNamedMax);
    const fromMs = this.#minute * minuteMs;
    const later = this.#best.findIndex((one) => one.starts < starts);
    this.#best.splice(later === -1 ? this.#best.length : later, 0, {
      fromMs,
      starts,
      policiesCount: byPolicy.size,
      policies,
    });
    this.#best.length = Math.min(this.#best.length, this.#keep);
  }
}
