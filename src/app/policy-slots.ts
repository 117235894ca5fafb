// Where each policy stands on its calendar, for metrics: its next slot, and from when on it is stale. Any replica can say it, since
// the calendar is the same everywhere. Asked by metric-gauges.ts; plans nothing.
import type { Policy } from "../config/policy-set.ts";
import { createChainSource, type SlotSource } from "../schedule/slots.ts";

/** A success covers its own slot; with this many later ones due, two whole intervals have passed. */
const staleAfterSlots = 3;

interface Known {
  readonly source: SlotSource | undefined;
  next?: { readonly fromMs: number; readonly atMs: number | undefined };
  stale?: { readonly sinceMs: number; readonly fromMs: number | undefined };
}

/** The slots of policies, each looked up again only when it has passed. */
export class PolicySlots {
  readonly #known = new WeakMap<Policy, Known>();

  /** The first slot after now; undefined when none will come. */
  nextMs(policy: Policy, nowMs: number): number | undefined {
    const known = this.#of(policy);
    const { next } = known;
    if (next !== undefined && next.fromMs <= nowMs && (next.atMs === undefined || next.atMs > nowMs)) return next.atMs;
    const atMs = known.source?.next(nowMs);
    known.next = { fromMs: nowMs, atMs };
    return atMs;
  }

  /** From when on a policy is stale that last succeeded, or began, at `sinceMs`; undefined when never. */
  staleFromMs(policy: Policy, sinceMs: number): number | undefined {
    const known = this.#of(policy);
    if (known.stale?.sinceMs === sinceMs) return known.stale.fromMs;
    let fromMs: number | undefined = sinceMs;
    for (let slot = 0; slot < staleAfterSlots && fromMs !== undefined; slot += 1) fromMs = known.source?.next(fromMs);
    known.stale = { sinceMs, fromMs };
    return fromMs;
  }

  #of(policy: Policy): Known {
    const known = this.#known.get(policy) ?? { source: createChainSource(policy) };
    this.#known.set(policy, known);
    return known;
  }
}
