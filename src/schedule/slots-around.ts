// The slots around an instant, and why an instant is not a slot. Pure; called by `explain`.
import type { Policy } from "../config/policy-set.ts";
import { formatDuration } from "../core/duration.ts";
import type { WallTime } from "./local-time.ts";
import { createClosedTimes } from "./plan-slots.ts";
import { createChainSource, type SlotSource, spreadOffsetMs } from "./slots.ts";

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

/**
 * The newest slot up to an instant, and the next one: the answer when the operator names no time.
 */
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
  const here = closed === undefined ? [] : [`it lies in a closed time anyway: ${closed.reason} ${closed.note}`];
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
