// Quiet hours: what is told in them waits until they are over, one notice for each policy or service and sink, the latest. Pure; called by pass.ts.
import * as z from "zod";
import type { TellingSettings } from "../config/policy-set.ts";
import { parseVersioned } from "../core/newer-version.ts";
import { type Notice, parseNotice } from "../tasks/notice.ts";
import type { Telling } from "./notices.ts";

type QuietHours = NonNullable<TellingSettings["quietHours"]>;

/** What waits for the end of quiet hours: a notice, and how many it stands for beside itself. */
export interface Held {
  readonly sink: string;
  readonly notice: Notice;
  readonly leftOut: number;
}

/** Tells whether an instant lies in quiet hours. */
export function isQuiet(hours: TellingSettings["quietHours"], nowMs: number): hours is QuietHours {
  if (hours === undefined) return false;
  const minute = minuteOfDay(nowMs, hours.timezone);
  const { fromMinute, toMinute } = hours;
  if (fromMinute < toMinute) return minute >= fromMinute && minute < toMinute;
  return minute >= fromMinute || minute < toMinute;
}

/** Under which field a notice waits: the newer one of a policy or a service takes the place of the older. A token is a matter of its own. */
export function heldField({ sink, notice }: Telling): string {
  return `${sink}/${notice.kind === "token-expiring" ? "token/" : ""}${notice.orderKey}`;
}

/** What goes out now, and what waits from now on by its field; undefined: nothing waits there any more. */
export interface Sorted {
  readonly now: readonly Telling[];
  readonly held: ReadonlyMap<string, Held | undefined>;
}

/** Sorts notices, in their order, into those that go out and those that wait. `known`: what waits already. */
export function sortTellings(
  tellings: readonly Telling[],
  hours: QuietHours,
  known: ReadonlyMap<string, Held>,
): Sorted {
  const now: Telling[] = [];
  const held = new Map<string, Held | undefined>();
  for (const telling of tellings) {
    const field = heldField(telling);
    const before = held.has(field) ? held.get(field) : known.get(field);
    if (hours.except.includes(telling.notice.kind)) {
      now.push(telling);
      // What waits is older than what has just been told.
      if (before !== undefined) held.set(field, undefined);
      continue;
    }
    const isSame = before?.notice.id === telling.notice.id;
    const leftOut = before === undefined ? 0 : before.leftOut + (isSame ? 0 : 1);
    held.set(field, { ...telling, leftOut });
  }
  return { now, held };
}

/** The notice as it goes out at the end of quiet hours. */
export function releaseHeld({ sink, notice, leftOut }: Held): Telling {
  return leftOut === 0 ? { sink, notice } : { sink, notice: { ...notice, data: { ...notice.data, leftOut } } };
}

const heldSchema = z.object({ v: z.literal(1), sink: z.string(), notice: z.unknown(), leftOut: z.int() });

/** Reads what waits. @throws NewerVersionError or ZodError when this version cannot. */
export function parseHeld(text: string): Held {
  const { sink, notice, leftOut } = parseVersioned("held notice", heldSchema, JSON.parse(text));
  return { sink, notice: parseNotice(notice), leftOut };
}

/** The text of what waits. */
export function heldText(held: Held): string {
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
