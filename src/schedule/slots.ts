// What happens when a slot is due? First this: which slots lie between a policy's mark and now. Pure.
import type { Policy, Schedule } from "../config/policy-set.ts";
import { canonicalJson, hashText } from "../core/stable-hash.ts";
import { type Calendar, createCalendar } from "./calendar.ts";

/** The most slots that one look yields; a longer backlog is worked off in several. */
export const slotsPerLookMax = 1_000;

/** The slots of one policy: its calendar, moved by its spread. */
export interface SlotSource {
  /** The schedule in one text, the same on every replica; two schedules with one text have the same slots. */
  readonly text: string;
  /** The first slot after this instant, undefined when none will come. */
  next(afterMs: number): number | undefined;
  /** The slots after `afterMs` up to and including `untilMs`, oldest first, `slotsPerLookMax` at the most. */
  due(afterMs: number, untilMs: number): number[];
}

/** The slots of a policy, or undefined when it is only run by hand. */
export function createSlotSource(policy: Pick<Policy, "name" | "schedule">): SlotSource | undefined {
  if (policy.schedule === undefined) return undefined;
  const text = canonicalJson(policy.schedule);
  const offsetMs = spreadOffsetMs(policy.name, policy.schedule.spreadMs);
  const calendar = shift(sharedCalendar(policy.schedule, text), offsetMs);
  return { text, next: calendar.next, due: (afterMs, untilMs) => dueSlots(calendar, afterMs, untilMs) };
}

/** The slots of a policy, or of the one at which its chain begins; for looking, since the scheduler plans a chain by its first policy. */
export function createChainSource(policy: Policy): SlotSource | undefined {
  return createSlotSource(policy.after?.root ?? policy);
}

/** The slots after `afterMs` up to and including `untilMs`, oldest first, `slotsPerLookMax` at the most. */
export function dueSlots(calendar: Calendar, afterMs: number, untilMs: number): number[] {
  const slots: number[] = [];
  let slot = calendar.next(afterMs);
  while (slot !== undefined && slot <= untilMs && slots.length < slotsPerLookMax) {
    slots.push(slot);
    slot = calendar.next(slot);
  }
  return slots;
}

/** Where in its spread a policy stands: whole seconds from 0 to below the spread, from a hash of its name. */
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

/** One calendar for all policies with the same schedule. Asking a cron calendar costs about 50 µs, remembering its answer nothing. */
function sharedCalendar(schedule: Schedule, text: string): Calendar {
  const known = sharedCalendars.get(text);
  if (known !== undefined) return known;
  const calendar = schedule.kind === "every" ? createCalendar(schedule) : remembering(createCalendar(schedule));
  if (sharedCalendars.size >= sharedCalendarsMax) sharedCalendars.clear();
  sharedCalendars.set(text, calendar);
  return calendar;
}

/** Remembers the latest gaps between two slots: whoever asks from inside a gap gets the slot at its end. */
function remembering(calendar: Calendar): Calendar {
  const gaps: { readonly fromMs: number; readonly next: number | undefined }[] = [];
  return {
    next: (afterMs) => {
      const gap = gaps.find(({ fromMs, next }) => afterMs >= fromMs && (next === undefined || afterMs < next));
      if (gap !== undefined) return gap.next;
      const next = calendar.next(afterMs);
      gaps.unshift({ fromMs: afterMs, next });
      gaps.length = Math.min(gaps.length, gapsMax);
      return next;
    },
  };
}
