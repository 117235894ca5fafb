// The slots of a policy: its calendar, moved by its spread, and those due after a watermark. Pure.
import type { Policy, Schedule } from "../config/policy-set.ts";
import { getOrMake } from "../core/get-or-make.ts";
import { canonicalJson, hashText } from "../core/stable-hash.ts";
import { type Calendar, createCalendar } from "./calendar.ts";

/** The most slots that one round plans of a policy; a longer backlog takes several. */
export const slotsPerRoundMax = 1_000;

/** The slots of one policy. */
export interface SlotSource {
  /** The first slot after this instant, undefined when none will come. */
  next(afterMs: number): number | undefined;
  /** The slots after `afterMs` up to `untilMs`, oldest first, `slotsPerRoundMax` at the most. */
  due(afterMs: number, untilMs: number): number[];
}

/**
 * The slots of a policy's own schedule; undefined without one: it follows another policy, or
 * operators start it.
 */
export function createSlotSource(policy: Pick<Policy, "name" | "schedule">): SlotSource | undefined {
  if (policy.schedule === undefined) return undefined;
  const offsetMs = spreadOffsetMs(policy.name, policy.schedule.spreadMs);
  const calendar = shift(sharedCalendar(policy.schedule, textOf(policy.schedule)), offsetMs);
  return { next: calendar.next, due: (afterMs, untilMs) => dueSlots(calendar, afterMs, untilMs) };
}

const texts = new WeakMap<Schedule, string>();

/** Kept as long as the schedule: pages ask for it again and again. */
function textOf(schedule: Schedule): string {
  return getOrMake(texts, schedule, canonicalJson);
}

/**
 * Whatever decides a policy's slots, in one text, the same on every replica; undefined: it has no
 * slots. Equal texts mean equal slots.
 */
export function scheduleText({ schedule, after }: Pick<Policy, "schedule" | "after">): string | undefined {
  if (after !== undefined) return canonicalJson({ after: after.policy, root: after.root });
  return schedule && textOf(schedule);
}

/** The first policy of a policy's chain, in one text: its name and its schedule. */
export function rootText(policy: Pick<Policy, "name" | "schedule" | "after">): string {
  const { name, schedule } = policy.after?.root ?? policy;
  return `${name} ${schedule === undefined ? "" : textOf(schedule)}`;
}

/** The policy with the schedule of a text instead of its own; undefined: the text is none. */
export function withSchedule({ after: _, ...policy }: Policy, text: string): Policy | undefined {
  try {
    const { after, root, ...schedule } = JSON.parse(text);
    const changed = { ...policy, schedule: root === undefined ? schedule : undefined };
    const before = root === undefined ? changed : { ...changed, after: { policy: after, on: [], withinMs: 0, root } };
    const source = createChainSource(before);
    // A schedule may have no slot at all: clocks never show its one time.
    return source === undefined || Number.isNaN(source.next(0)) ? undefined : before;
  } catch {
    return undefined;
  }
}

/** The slots of a policy, or those of its chain's root. */
export function createChainSource(policy: Policy): SlotSource | undefined {
  return createSlotSource(policy.after?.root ?? policy);
}

/** The slots of a calendar after one instant and up to another, oldest first. */
export function dueSlots(calendar: Calendar, afterMs: number, untilMs: number, slotsMax = slotsPerRoundMax): number[] {
  const slots: number[] = [];
  let slot = calendar.next(afterMs);
  while (slot !== undefined && slot <= untilMs && slots.length < slotsMax) {
    slots.push(slot);
    slot = calendar.next(slot);
  }
  return slots;
}

/** The offset of a policy in its spread: whole seconds, from a hash of its name. */
export function spreadOffsetMs(policyName: string, spreadMs: number): number {
  const seconds = Math.floor(spreadMs / 1_000);
  return seconds === 0 ? 0 : (Number.parseInt(hashText(policyName, 12), 16) % seconds) * 1_000;
}

function shift(calendar: Calendar, offsetMs: number): Calendar {
  if (offsetMs === 0) return calendar;
  return {
    next: (afterMs) => {
      const slot = calendar.next(afterMs - offsetMs);
      return slot === undefined ? undefined : slot + offsetMs;
    },
  };
}

const sharedCalendars = new Map<string, Calendar>();
const sharedCalendarsMax = 20_000;
const gapsMax = 4;

/** One calendar for all policies with the same schedule: a cron calendar takes 50 µs an answer. */
function sharedCalendar(schedule: Schedule, text: string): Calendar {
  const known = sharedCalendars.get(text);
  if (known !== undefined) return known;
  const calendar = schedule.kind === "every" ? createCalendar(schedule) : remembering(createCalendar(schedule));
  if (sharedCalendars.size >= sharedCalendarsMax) sharedCalendars.clear();
  sharedCalendars.set(text, calendar);
  return calendar;
}

/** Remembers the latest gaps between two slots: inside a gap, the slot at its end is next. */
function remembering(calendar: Calendar): Calendar {
  const gaps: { readonly fromMs: number; readonly next: number | undefined }[] = [];
  return {
    next: (afterMs) => {
      for (const gap of gaps)
        if (afterMs >= gap.fromMs && (gap.next === undefined || afterMs < gap.next)) return gap.next;
      const next = calendar.next(afterMs);
      gaps.unshift({ fromMs: afterMs, next });
      gaps.length = Math.min(gaps.length, gapsMax);
      return next;
    },
  };
}
