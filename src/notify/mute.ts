// Mute timing: holds notices back until it ends, only the latest for each sink and each policy or
// service. Pure; called by evaluate.ts.
import * as z from "zod";
import type { NotificationSettings } from "../config/policy-set.ts";
import { parseVersioned } from "../core/newer-version.ts";
import { type Notice, parseNotice } from "../model/notice.ts";
import type { AddressedNotice } from "./notices.ts";

type MuteTiming = NonNullable<NotificationSettings["muteTiming"]>;

/** A notice that waits for the end of mute timing, and how many others it stands for. */
export interface MutedNotice {
  readonly sink: string;
  readonly notice: Notice;
  readonly leftOut: number;
}

/** Whether an instant lies in mute timing. */
export function isMuted(hours: NotificationSettings["muteTiming"], nowMs: number): hours is MuteTiming {
  if (hours === undefined) return false;
  const minute = minuteOfDay(nowMs, hours.timezone);
  const { fromMinute, toMinute } = hours;
  if (fromMinute < toMinute) return minute >= fromMinute && minute < toMinute;
  return minute >= fromMinute || minute < toMinute;
}

/**
 * The field under which a notice waits. A newer one of the same policy or service replaces the
 * older; tokens have a field of their own.
 */
export function mutedField({ sink, notice }: AddressedNotice): string {
  return `${sink}/${notice.kind === "token-expiring" ? "token/" : ""}${notice.orderKey}`;
}

/** What goes out now, and what waits by its field; undefined: nothing waits there any more. */
export interface SortedNotices {
  readonly now: readonly AddressedNotice[];
  readonly held: ReadonlyMap<string, MutedNotice | undefined>;
}

/**
 * Sorts notices in order into those that go out and those that wait. `known`: what waits already.
 */
export function sortNotices(
  notices: readonly AddressedNotice[],
  hours: MuteTiming,
  known: ReadonlyMap<string, MutedNotice>,
): SortedNotices {
  const now: AddressedNotice[] = [];
  const held = new Map<string, MutedNotice | undefined>();
  for (const addressed of notices) {
    const field = mutedField(addressed);
    const before = held.has(field) ? held.get(field) : known.get(field);
    if (hours.except.includes(addressed.notice.kind)) {
      now.push(addressed);
      // The waiting notice is older than the one that goes out now.
      if (before !== undefined) held.set(field, undefined);
      continue;
    }
    const isSame = before?.notice.id === addressed.notice.id;
    const leftOut = before === undefined ? 0 : before.leftOut + (isSame ? 0 : 1);
    held.set(field, { ...addressed, leftOut });
  }
  return { now, held };
}

/** The notice as it goes out at the end of mute timing. */
export function releaseMuted({ sink, notice, leftOut }: MutedNotice): AddressedNotice {
  return leftOut === 0 ? { sink, notice } : { sink, notice: { ...notice, data: { ...notice.data, leftOut } } };
}

const mutedSchema = z.object({ v: z.literal(1), sink: z.string(), notice: z.unknown(), leftOut: z.int() });

/**
 * Parses a waiting notice.
 * @throws NewerVersionError or ZodError when this version cannot.
 */
export function parseMuted(text: string): MutedNotice {
  const { sink, notice, leftOut } = parseVersioned("muted notice", mutedSchema, JSON.parse(text));
  return { sink, notice: parseNotice(notice), leftOut };
}

/** The text of a waiting notice. */
export function mutedText(held: MutedNotice): string {
  return JSON.stringify({ v: 1, ...held });
}

function minuteOfDay(instantMs: number, timezone: string): number {
  const text = new Date(instantMs).toLocaleTimeString("sv-SE", {
    timeZone: timezone,
    hour: "2-digit",
    minute: "2-digit",
  });
  const [hours = 0, minutes = 0] = text.split(":").map(Number);
  return hours * 60 + minutes;
}
