// What to say of a slot: its record in one sentence, why it has none, and why an instant is no
// slot. Pure.
import type { Policy } from "../config/policy-set.ts";
import { policyLimits } from "../config/rules/policy-limits.ts";
import { formatDuration, formatRoughly } from "../core/duration.ts";
import type { SlotRecord } from "../model/slot-record.ts";
import { createClosedTimes, describeSkip } from "./closed-times.ts";
import { latenessMaxMs, onTimeMs } from "./plan-slots.ts";
import { createChainSource, type SlotSource, spreadOffsetMs } from "./slots.ts";
import type { WallTime } from "./zone.ts";

/** Describes what became of a slot. */
export function describeRecord(policy: Policy, { state, detail, note }: SlotRecord): string {
  const because = note === undefined ? "" : `: ${note}`;
  switch (state) {
    case "started":
      if (detail === "followed") return `started${because}`;
      if (detail !== "caught-up" && detail !== "released") return "started";
      return `skipped ${detail === "released" ? "in quarantine" : "by a pause"} at first, then started by resume --catch-up${because}`;
    case "coalesced":
      return `not started by itself: the newer slot ${detail} covers it (catchUp: ${policy.catchUp})`;
    case "missed":
      if (detail === "catch-up-cap")
        return `not started: catchUp is all, and ${policyLimits.catchUpSlotsMax} newer slots were late as well`;
      if (detail === "after-within")
        return `not started: later than ${formatDuration(policy.catchUpWindowMs)} after its slot (after.within)${because}`;
      if (detail === "redis-loss") return "may have started: Redis lost what was written then; not started again";
      if (detail === "left-out") return "not started: its predecessor's slot was planned without it";
      return detail === "catch-up-none"
        ? `not started: noticed more than ${formatDuration(onTimeMs)} late, and catchUp is none`
        : `not started: noticed later than its catch-up window allows (now ${formatDuration(latenessMaxMs(policy))})`;
    case "skipped":
      return detail === "blackout" || detail === "holiday"
        ? `not started: it fell ${detail === "holiday" ? "on a holiday" : "into a blackout"} (${note})`
        : `not started: ${skipWord(detail)}${because}`;
  }
}

function skipWord(reason: string): string {
  if (reason === "stale-input") return "its input was not fresh";
  if (reason === "quarantine") return "its policy was in quarantine";
  if (reason === "predecessor") return "its predecessor did not end as after.on asks";
  if (reason === "removed") return "its policy was removed, or left the chain, while it waited";
  return reason;
}

/** A slot without a record, and the state of the ledger. Instants are milliseconds UTC. */
export interface RecordlessSlot {
  readonly slotMs: number;
  readonly nowMs: number;
  readonly watermarkMs: number | undefined;
  readonly keptSinceMs: number | undefined;
  /** Whether a scheduler is alive. */
  readonly hasScheduler: boolean;
}

/** Describes why a slot has no record. */
export function describeNoRecord({ slotMs, nowMs, watermarkMs, keptSinceMs, hasScheduler }: RecordlessSlot): string {
  if (slotMs > nowMs)
    return `not due yet: in ${formatRoughly(slotMs - nowMs)}${hasScheduler ? "" : ", if a scheduler is alive then: none is now"}`;
  if (watermarkMs === undefined)
    return "no scheduler plans this policy here: is one running, with these policies, this prefix and Redis?";
  if (keptSinceMs !== undefined && slotMs <= keptSinceMs) {
    const since = new Date(keptSinceMs).toISOString();
    return `nothing is known: records are kept since ${since}, when the policy or its schedule began here or older ones were dropped`;
  }
  if (slotMs > watermarkMs) {
    if (!hasScheduler) return "due, and not planned: no scheduler is alive";
    return nowMs - slotMs > onTimeMs
      ? "due, and not planned: no scheduler has planned since, though one is alive. Does it have these policies?"
      : "due just now: a scheduler that has this policy plans it within seconds";
  }
  return "there is no record, though later slots have one: it was lost or deleted, or the schedule was another one then";
}

const lookBackMs = 10 * 366 * 86_400_000;

/** The slots around an instant (milliseconds UTC), and the one that the operator probably meant. */
export interface SlotsAround {
  readonly previousMs: number | undefined;
  readonly nextMs: number | undefined;
  /** The slot at this time, or else the nearest; undefined when the policy has none. */
  readonly slotMs: number | undefined;
  /** Whether there is a slot at this time. */
  readonly isSlot: boolean;
  /** Why there is none, or other remarks about this time. */
  readonly reasons: readonly string[];
}

/** The time that the operator asked for, as precise as `widthMs`. */
export interface AskedTime extends WallTime {
  readonly text: string;
  readonly widthMs: number;
}

/** The newest slot up to an instant, and the next one. */
export function slotsUpTo(policy: Policy, nowMs: number): SlotsAround {
  const { previousMs, nextMs } = around(createChainSource(policy), nowMs);
  return { previousMs, nextMs, slotMs: previousMs ?? nextMs, isSlot: true, reasons: [] };
}

/** The slots around a time, and why it is none of them. */
export function slotsAround(policy: Policy, asked: AskedTime): SlotsAround {
  const source = createChainSource(policy);
  const instants = asked.instants.length === 0 ? [asked.nearMs] : asked.instants;
  const hits = instants
    .map((instantMs) => slotWithin(source, instantMs, asked))
    .filter((slotMs) => slotMs !== undefined);
  const atMs = hits[0] ?? asked.nearMs;
  const { previousMs, nextMs } = around(source, atMs);
  const isSlot = hits[0] !== undefined && asked.instants.length > 0;
  const reasons = [...clockReasons(policy, asked), ...(isSlot ? [] : noSlotReasons(policy, asked))];
  const slotMs = hits[0] ?? spreadSlot(policy, source, asked) ?? nearest(asked.nearMs, previousMs, nextMs);
  return { previousMs, nextMs, slotMs, isSlot, reasons };
}

function slotWithin(source: SlotSource | undefined, instantMs: number, { widthMs }: AskedTime): number | undefined {
  const slotMs = source?.next(instantMs - 1);
  return slotMs !== undefined && slotMs < instantMs + widthMs ? slotMs : undefined;
}

/** Finds the newest slot by bisection: a calendar only knows the next one. */
function around(source: SlotSource | undefined, atMs: number): Pick<SlotsAround, "previousMs" | "nextMs"> {
  const nextMs = source?.next(atMs);
  let afterMs = atMs - lookBackMs;
  let beforeMs = atMs;
  let previousMs: number | undefined;
  while (source !== undefined && beforeMs - afterMs > 1) {
    const middleMs = Math.floor((afterMs + beforeMs) / 2);
    const slotMs = source.next(middleMs);
    if (slotMs !== undefined && slotMs <= atMs) [afterMs, previousMs] = [slotMs, slotMs];
    else beforeMs = middleMs;
  }
  return { previousMs, nextMs };
}

function clockReasons(policy: Policy, { text, instants }: AskedTime): string[] {
  const { schedule } = policy.after?.root ?? policy;
  if (schedule === undefined || schedule.kind === "every" || instants.length === 1) return [];
  const { timezone, dst } = schedule;
  if (instants.length === 0)
    return [`clocks in ${timezone} never show ${text}: they go forward then (dst.gap is ${dst.gap})`];
  const shown = instants.map((instantMs) => new Date(instantMs).toISOString()).join(" and ");
  return [`clocks in ${timezone} show ${text} twice, at ${shown} (dst.overlap is ${dst.overlap})`];
}

function noSlotReasons(policy: Policy, asked: AskedTime): string[] {
  const moved = spreadSlot(policy, createChainSource(policy), asked);
  if (moved !== undefined) return [`its spread moves the slot of this time by ${formatDuration(moved - asked.nearMs)}`];
  const closed = createClosedTimes(policy)(asked.nearMs);
  const here = closed === undefined ? [] : [`it lies in a closed time anyway: ${describeSkip(closed)}`];
  if (asked.instants.length === 0) return here;
  return ["its schedule has no slot at this time", ...here];
}

function spreadSlot(policy: Policy, source: SlotSource | undefined, asked: AskedTime): number | undefined {
  const { name, schedule } = policy.after?.root ?? policy;
  const offsetMs = spreadOffsetMs(name, schedule?.spreadMs ?? 0);
  return offsetMs === 0 ? undefined : slotWithin(source, asked.nearMs + offsetMs, { ...asked, widthMs: 1 });
}

function nearest(atMs: number, previousMs: number | undefined, nextMs: number | undefined): number | undefined {
  if (previousMs === undefined || nextMs === undefined) return previousMs ?? nextMs;
  return atMs - previousMs <= nextMs - atMs ? previousMs : nextMs;
}
