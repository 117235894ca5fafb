// Finds a policy's next slot, and when the policy becomes stale. Any replica can tell, since all
// have the same calendar. Called by metric-gauges.ts and create-notifier.ts.
import type { Policy } from "../config/policy-set.ts";
import { getOrMake } from "../core/get-or-make.ts";
import { isAbout, isInForce, type Pause } from "../model/pause.ts";
import { thirdOpenSlot } from "../schedule/closed-times.ts";
import { createChainSource, type SlotSource } from "../schedule/slots.ts";
import { readLastSuccesses } from "../store/policy-states.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { SlotLedger } from "../store/slot-ledger.ts";

/** What Redis knows of policies, to tell which are stale. */
export interface SuccessFacts {
  readonly nowMs: number;
  readonly successes: ReadonlyMap<string, number>;
  readonly keptSince: ReadonlyMap<string, number>;
  readonly begun: ReadonlyMap<string, number>;
  readonly pauses: readonly Pause[];
}

/** Reads what Redis knows of these policies. */
export async function readSuccesses(
  policies: readonly Policy[],
  store: Store,
  pauses: () => Promise<readonly Pause[]>,
): Promise<SuccessFacts> {
  const names = policies.map(({ name }) => name);
  const ledger = new SlotLedger(store);
  const [nowMs, successes, keptSince, begun, all] = await Promise.all([
    redisTimeMs(store),
    readLastSuccesses(store, names),
    ledger.keptSince(names),
    ledger.begun(names),
    pauses(),
  ]);
  return { nowMs, successes, keptSince, begun, pauses: all };
}

/** Since when a policy had no success: the last one, or where its schedule began after that. */
export function noSuccessSinceMs(name: string, facts: Omit<SuccessFacts, "nowMs" | "pauses">): number | undefined {
  const [lastMs, begunMs] = [facts.successes.get(name), facts.begun.get(name)];
  return begunMs === undefined ? (lastMs ?? facts.keptSince.get(name)) : Math.max(lastMs ?? 0, begunMs);
}

/** What the third slot is used for. Each is cached by its own instant, which seldom changes. */
type ThirdSlotUse = "stale" | "failing" | "conflicts";

interface SlotCache {
  readonly source: SlotSource | undefined;
  next?: { readonly fromMs: number; readonly atMs: number | undefined };
  third: Partial<Record<ThirdSlotUse, { readonly sinceMs: number; readonly atMs: number | undefined }>>;
}

/** Caches the slots of policies; looks one up again only when it has passed. */
export class PolicySlots {
  readonly #known = new WeakMap<Policy, SlotCache>();

  /** The first slot after now; undefined when none will come. */
  nextMs(policy: Policy, nowMs: number): number | undefined {
    const known = this.#of(policy);
    const { next } = known;
    if (next !== undefined && next.fromMs <= nowMs && (next.atMs === undefined || next.atMs > nowMs)) return next.atMs;
    const atMs = known.source?.next(nowMs);
    known.next = { fromMs: nowMs, atMs };
    return atMs;
  }

  /** The third slot after an instant, from the cache. */
  thirdSlotMs(policy: Policy, asked: ThirdSlotUse, sinceMs: number): number | undefined {
    const known = this.#of(policy);
    const before = known.third[asked];
    if (before?.sinceMs === sinceMs) return before.atMs;
    const atMs = thirdOpenSlot(policy, known.source, sinceMs);
    known.third[asked] = { sinceMs, atMs };
    return atMs;
  }

  /**
   * When two whole intervals have passed without a success. Slots that a pause or an outage up
   * to `floorMs` blocked do not count.
   */
  staleFromMs(policy: Policy, facts: SuccessFacts, floorMs = 0): number | undefined {
    const { nowMs, pauses } = facts;
    const sinceMs = noSuccessSinceMs(policy.name, facts);
    if (sinceMs === undefined) return undefined;
    // A quarantine delays nothing: the policy failed.
    const byPeople = pauses.filter((pause) => pause.cause === undefined && isAbout(pause, policy));
    const ended = byPeople.filter((pause) => !isInForce(pause, nowMs));
    const ends = ended.map(({ untilMs }) => (untilMs === null || untilMs > nowMs ? 0 : untilMs));
    return this.thirdSlotMs(policy, "stale", Math.max(sinceMs, floorMs, ...ends));
  }

  #of(policy: Policy): SlotCache {
    return getOrMake(this.#known, policy, () => ({ source: createChainSource(policy), third: {} }));
  }
}
