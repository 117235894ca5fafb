// The scheduler's ticks on a virtual clock: the same calendar and planPolicy, without ledger and
// waiting. A heap says which policies are next. Pure.
import type { Policy } from "../config/policy-set.ts";
import type { Interval } from "../core/instant.ts";
import { MinHeap } from "../core/min-heap.ts";
import type { Pause } from "../model/pause.ts";
import { planPolicy } from "../schedule/plan-batches.ts";
import type { SlotPlan } from "../schedule/plan-slots.ts";
import { createChainSource, createSlotSource, type SlotSource } from "../schedule/slots.ts";

/** The virtual time: slots after `fromMs`, up to and including `toMs`. */
export interface VirtualTime extends Interval {
  /** When no scheduler runs: slots due then are planned at its end. None may end after `toMs`. */
  readonly outages: readonly Interval[];
  readonly pauses: readonly Pause[];
}

/** One tick, with the plans of one policy. */
export interface VirtualTick {
  readonly nowMs: number;
  readonly policy: Policy;
  readonly plans: readonly SlotPlan[];
}

/** Every tick with due slots, in the order of time, then of the policies. */
export function* virtualTicks(
  policies: readonly Policy[],
  time: VirtualTime,
  inputsAt: (nowMs: number) => ReadonlyMap<string, number>,
): Generator<VirtualTick, void, void> {
  const tickAt = tickTimes(time.outages);
  // Of thousands of policies many share a tick: the heap has each once, the map its policies.
  const heap = new MinHeap<undefined>();
  const byTick = new Map<number, WaitingPolicy[]>();
  const wait = (planned: WaitingPolicy, watermarkMs: number) => {
    planned.watermarkMs = watermarkMs;
    const slotMs = planned.source.next(watermarkMs);
    if (slotMs === undefined || slotMs > time.toMs) return;
    const tickMs = tickAt(slotMs);
    const others = byTick.get(tickMs);
    if (others !== undefined) others.push(planned);
    else {
      heap.push(tickMs, undefined);
      byTick.set(tickMs, [planned]);
    }
  };
  const names = new Set(policies.map(({ name }) => name));
  for (const [place, policy] of policies.entries()) {
    // A follower without its predecessor here is due with its chain.
    const isAlone = policy.after !== undefined && !names.has(policy.after.policy);
    const source = isAlone ? createChainSource(policy) : createSlotSource(policy);
    if (source !== undefined) wait({ place, policy, source, watermarkMs: 0 }, time.fromMs);
  }
  for (let nowMs = heap.leastRank; nowMs !== undefined; nowMs = heap.leastRank) {
    const moment = { nowMs, pauses: time.pauses };
    const together = byTick.get(nowMs) ?? [];
    heap.pop();
    byTick.delete(nowMs);
    // In the order of the files: the first policy gets a sync job that several want.
    for (const planned of together.sort((a, b) => a.place - b.place)) {
      const { policy } = planned;
      const inputs = policy.needs === undefined ? undefined : inputsAt(nowMs);
      const due = planPolicy(planned, inputs === undefined ? moment : { ...moment, inputs });
      if (due === undefined) continue;
      yield { nowMs, policy, plans: due.plans };
      wait(planned, due.newWatermarkMs);
    }
  }
}

/** A policy with its next slot ahead; `place`: its place in the files. */
interface WaitingPolicy {
  readonly place: number;
  readonly policy: Policy;
  readonly source: SlotSource;
  watermarkMs: number;
}

/** The tick of a slot: its own instant, or the end of the outage that it falls into. */
function tickTimes(outages: readonly Interval[]): (slotMs: number) => number {
  const inOrder = outages.toSorted((a, b) => a.fromMs - b.fromMs);
  return (slotMs) => {
    let atMs = slotMs;
    // In order: an outage that begins before another one ends prolongs it.
    for (const { fromMs, toMs } of inOrder) if (fromMs <= atMs && atMs < toMs) atMs = toMs;
    return atMs;
  };
}
