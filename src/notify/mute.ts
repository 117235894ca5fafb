// Mute timing: notices wait until it ends, only the latest for each sink and each matter of a
// policy or service. Also the text of a notice that waits in Redis. Pure; called by notifier.ts.
import * as z from "zod";
import type { NotificationSettings } from "../config/policy-set.ts";
import { parseVersioned } from "../core/newer-version.ts";
import { type AddressedNotice, type Notice, parseNotice } from "../model/notice.ts";

type MuteTiming = NonNullable<NotificationSettings["muteTiming"]>;

/** A notice that waits in Redis. `leftOut`: how many older ones it stands for. */
interface WaitingNotice extends AddressedNotice {
  readonly leftOut: number;
}

/** Whether an instant lies in mute timing. */
export function isMuted(timing: MuteTiming | undefined, nowMs: number): timing is MuteTiming {
  if (timing === undefined) return false;
  const minute = minuteOfDay(nowMs, timing.timezone);
  const { fromMinute, toMinute } = timing;
  if (fromMinute < toMinute) return minute >= fromMinute && minute < toMinute;
  return minute >= fromMinute || minute < toMinute;
}

/** Where a notice waits, and where else older ones wait that it ends. */
export function waitingFields({ sink, notice }: AddressedNotice): [string, ...string[]] {
  const fieldOf = (matter: string) => `${sink}/${matter}/${notice.orderKey}`;
  const { kind, data } = notice;
  const matter = matterOf(notice);
  // A success ends staleness, too; that masks could be read is none.
  const isSuccess = kind === "recovered" && matter === "failing" && data["status"] !== "started";
  return [fieldOf(matter), ...(isSuccess ? [fieldOf("stale")] : [])];
}

/** What a notice is about: an end stands for its beginning. */
function matterOf({ kind, policy, data: { before, target } }: Notice): string {
  // One sync job's says nothing of another one's.
  if (kind === "drift" || kind === "unusual") return `${kind}/${String(target)}`;
  if (kind === "recovered" && (before === "late" || before === "stale")) return before;
  if (kind === "service-up" || (kind === "removed" && policy === null)) return "service-down";
  return kind === "recovered" || kind === "removed" ? "failing" : kind;
}

/** Sorts notices in order into those that go out and those that wait. `known`: what waits. */
export function sortNotices(
  notices: readonly AddressedNotice[],
  timing: MuteTiming,
  known: ReadonlyMap<string, string>,
): { readonly now: readonly AddressedNotice[]; readonly muted: ReadonlyMap<string, string | undefined> } {
  const now: AddressedNotice[] = [];
  const muted = new Map<string, string | undefined>();
  for (const addressed of notices) {
    const fields = waitingFields(addressed);
    const [field] = fields;
    const older = fields.flatMap((name) => {
      const text = muted.has(name) ? muted.get(name) : known.get(name);
      return text !== undefined && (name === field || isStale(text)) ? [[name, text] as const] : [];
    });
    for (const [name] of older) muted.set(name, undefined);
    if (timing.except.includes(addressed.notice.kind)) {
      now.push(addressed);
      continue;
    }
    // One that cannot be read is replaced as any other.
    const counts = readWaiting(older).waiting.map(({ notice, leftOut }) =>
      notice.id === addressed.notice.id ? leftOut - 1 : leftOut,
    );
    const leftOut = counts.reduce((sum, count) => sum + count, older.length);
    muted.set(field, waitingText({ ...addressed, leftOut }));
  }
  return { now, muted };
}

/** Whether it is a notice of staleness, not of its end. */
function isStale(text: string): boolean {
  return readWaiting([["", text]]).waiting[0]?.notice.kind === "stale";
}

/** The notice as it goes out. */
export function releaseWaiting({ sink, notice, leftOut }: WaitingNotice): AddressedNotice {
  return leftOut === 0 ? { sink, notice } : { sink, notice: { ...notice, data: { ...notice.data, leftOut } } };
}

const waitingSchema = z.object({ v: z.literal(1), sink: z.string(), notice: z.unknown(), leftOut: z.int() });

/** Parses a waiting notice. @throws NewerVersionError or ZodError when this version cannot. */
export function parseWaiting(text: string): WaitingNotice {
  const { sink, notice, leftOut } = parseVersioned("waiting notice", waitingSchema, JSON.parse(text));
  return { sink, notice: parseNotice(notice), leftOut };
}

/** A text that this version cannot read, and why. */
export interface UnreadableText {
  readonly field: string;
  readonly text: string;
  readonly error: unknown;
}

/** Reads what waits, by field. */
export function readWaiting(texts: Iterable<readonly [string, string]>) {
  const waiting: (WaitingNotice & { readonly field: string })[] = [];
  const unreadable: UnreadableText[] = [];
  for (const [field, text] of texts) {
    try {
      waiting.push({ field, ...parseWaiting(text) });
    } catch (error) {
      unreadable.push({ field, text, error });
    }
  }
  return { waiting, unreadable };
}

/** The text of a waiting notice. */
export function waitingText({ sink, notice, leftOut }: WaitingNotice): string {
  return JSON.stringify({ v: 1, sink, notice, leftOut });
}

function minuteOfDay(instantMs: number, timeZone: string): number {
  const text = new Date(instantMs).toLocaleTimeString("sv-SE", { timeZone, hour: "2-digit", minute: "2-digit" });
  const [hours = 0, minutes = 0] = text.split(":").map(Number);
  return hours * 60 + minutes;
}
