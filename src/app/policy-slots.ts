// Finds a policy's next slot, and when it becomes stale, for metrics. Any replica can tell, since
// all have the same calendar. Called by metric-gauges.ts.
import type { Policy } from "../config/policy-set.ts";
import { createChainSource, type SlotSource } from "../schedule/slots.ts";

/** An ending covers its own slot. With three later slots due, two whole intervals have passed. */
const slotsAfter = 3;

/** What the third slot is used for. Each is cached by its own instant, which seldom changes. */
type Asked = "stale" | "failing" | "conflicts";

interface Known {
  readonly source: SlotSource | undefined;
  next?: { readonly fromMs: number; readonly atMs: number | undefined };
  third: Partial<Record<Asked, { readonly sinceMs: number; readonly atMs: number | undefined }>>;
}

/** Caches the slots of policies; looks one up again only when it has passed. */
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

  /** The third slot after an instant, such as the last success; undefined when none will come. */
  thirdSlotMs(policy: Policy, asked: Asked, sinceMs: number): number | undefined {
    const known = this.#of(policy);
    const before = known.third[asked];
    if (before?.sinceMs === sinceMs) return before.atMs;
    let atMs: number | undefined = sinceMs;
    for (let slot = 0; slot < slotsAfter && atMs !== undefined; slot += 1) atMs = known.source?.next(atMs);
    known.third[asked] = { sinceMs, atMs };
    return atMs;
  }

  #of(policy: Policy): Known {
    const known = this.#known.get(policy) ?? { source: createChainSource(policy), third: {} };
    this.#known.set(policy, known);
    return known;
  }
}
