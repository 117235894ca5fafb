// Reads a calendar file (iCalendar, RFC 5545) into plain times, two years back and ten ahead. Pure.
// Called by config/calendars.ts through the policy checks. The one door of ical.js, of which only
// the parser is used: its recurrences are wrong for some rules and endless for others.
import ICAL from "ical.js";
import type { CalendarEvent } from "../config/policy-set.ts";
import type { CalendarText } from "../config/rules/policy-rules.ts";
import { dayMs, parseWallText } from "../core/duration.ts";
import { errorText } from "../core/errors.ts";
import { cutText } from "../core/plain-text.ts";
import { type DayRule, type DaySpan, daysOf } from "./calendar-recurrence.ts";
import { parseWallTime } from "./zone.ts";

const yearsBack = 2;
const yearsAhead = 10;
const eventsMax = 2_000;
const occurrencesMax = 5_000;
const nameCharactersMax = 80;
/** No event ends later: a text of a date has four digits for its year. */
const lastWallMs = Date.UTC(9999, 11, 31);
/** A yearly rule looks at 31 days a year. */
const looksMax = 3_000_000;

/** What is wrong with a property of an event. */
class Unreadable extends Error {
  readonly property: string;
  readonly hint: string | undefined;

  constructor(property: string, message: string, hint?: string) {
    super(message);
    this.property = property;
    this.hint = hint;
  }
}

/** A local time as written. `tzid` undefined: of any zone. */
interface Wall {
  readonly wallMs: number;
  readonly isDate: boolean;
  readonly tzid: string | undefined;
}

/** Reads the text of a file. Every event that cannot be read is a problem. */
export function readCalendar(text: string, nowMs: number): CalendarText {
  const lines = text.split(/\r?\n/);
  let events: readonly ICAL.Component[];
  try {
    events = parseEvents(text);
  } catch (error) {
    const line = lines.findIndex((one) => one.trim() !== "" && !/^\s|^[\w-]+[;:]/.test(one)) + 1;
    return {
      problems: [{ line, message: `this is no calendar: ${errorText(error)}`, hint: "export it again as .ics" }],
    };
  }
  const begins = lines.flatMap((line, index) => (/^BEGIN:VEVENT\s*$/i.test(line) ? [index] : []));
  if (events.length > eventsMax)
    return { problems: [{ line: (begins[eventsMax] ?? 0) + 1, message: `more than ${eventsMax} events stand in it` }] };
  const year = new Date(nowMs).getUTCFullYear();
  const [first, last] = [year - yearsBack, year + yearsAhead];
  const span = {
    fromDay: Date.UTC(first, 0, 1) / dayMs,
    untilDay: Date.UTC(last, 11, 31) / dayMs,
    looks: { left: looksMax },
  };
  const families = Map.groupBy(events, (event) => textOf(event, "uid"));
  const found: CalendarEvent[] = [];
  const problems: { line: number; message: string; hint?: string | undefined }[] = [];
  let timed: { line: number; name: string } | undefined;
  for (const [index, event] of events.entries()) {
    const begin = begins[index] ?? 0;
    try {
      const own = occurrencesOf(event, families.get(textOf(event, "uid")) ?? [], span);
      found.push(...own);
      if (own.some(({ from }) => from.length > 10)) timed ??= { line: begin + 1, name: nameOf(event) };
      if (found.length <= occurrencesMax) continue;
      const hint = "give its rule an end (UNTIL), or put it into a file of its own";
      throw new Unreadable(
        "RRULE",
        `more than ${occurrencesMax} events from ${first} to ${last}, with those above`,
        hint,
      );
    } catch (error) {
      const { property = "BEGIN", hint } = error instanceof Unreadable ? error : {};
      const offset = lines
        .slice(begin)
        .findIndex((line) => new RegExp(`^(${property}[;:]|END:VEVENT)`, "i").test(line));
      const line = begin + 1 + (/^END/i.test(lines[begin + offset] ?? "END") ? 0 : offset);
      problems.push({ line, message: `event "${nameOf(event)}": ${errorText(error)}`, hint });
      if (found.length > occurrencesMax || span.looks.left < 0) break;
    }
  }
  if (problems.length > 0) return { problems };
  return { events: found.toSorted((a, b) => (a.from < b.from ? -1 : 1)), ...(timed && { timed }) };
}

function parseEvents(text: string): readonly ICAL.Component[] {
  // One component, or a list of them.
  const parsed: unknown[] = ICAL.parse(text);
  const roots = (typeof parsed[0] === "string" ? [parsed] : parsed).map((one) => new ICAL.Component(one as unknown[]));
  if (!roots.some(({ name }) => name === "vcalendar")) throw new Error("no VCALENDAR stands in it");
  return roots.flatMap((root) => root.getAllSubcomponents("vevent"));
}

/** The times of an event. `family`: all events of its UID, of which some move one time of it. */
function occurrencesOf(event: ICAL.Component, family: readonly ICAL.Component[], span: DaySpan): CalendarEvent[] {
  const [start] = wallsOf(event, "dtstart");
  if (start === undefined) throw new Unreadable("BEGIN", "it has no DTSTART");
  const zones = event.parent;
  const { clockMs, exactMs, endZone } = lengthOf(event, start);
  const lengthMs = clockMs + exactMs;
  if (lengthMs <= 0) throw new Unreadable("DTEND", "it ends when it begins", "give it a DTEND");
  if (textOf(event, "status") === "CANCELLED") return [];
  if (event.getFirstProperty("recurrence-id")?.getParameter("range") !== undefined)
    throw new Unreadable("RECURRENCE-ID", "RANGE is not understood", "end the series, and begin another");
  // Outlook writes a whole day as midnights of its own zone.
  const isMidnights = start.wallMs % dayMs === 0 && lengthMs % dayMs === 0;
  const isDay = start.isDate || (isMidnights && textOf(event, "x-microsoft-cdo-alldayevent") === "TRUE");
  const isSingle = event.hasProperty("recurrence-id");
  const excluded = isSingle
    ? []
    : [...wallsOf(event, "exdate"), ...family.flatMap((one) => (one === event ? [] : wallsOf(one, "recurrence-id")))];
  const isExcluded = exclusion(excluded, zones);
  const fromDay = span.fromDay - Math.ceil(lengthMs / dayMs);
  const starts = isSingle ? [start] : startsOf(event, start, { ...span, fromDay });
  const name = nameOf(event);
  const show = (wall: Wall) => (isDay ? dateOf(wall.wallMs) : showWall(wall, zones));
  const showEnd = (wall: Wall) => {
    const latest = (ms: number) => Math.min(ms, lastWallMs);
    if (isDay) return dateOf(latest(wall.wallMs + lengthMs));
    const text = showWall({ ...wall, wallMs: latest(wall.wallMs + clockMs), tzid: endZone ?? wall.tzid }, zones);
    return exactMs === 0 ? text : new Date(latest(Date.parse(text) + exactMs)).toISOString();
  };
  return starts.flatMap((wall) => {
    const { wallMs } = wall;
    const [from, to] = [show(wall), showEnd(wall)];
    const isOutside = (wallMs + lengthMs) / dayMs < span.fromDay || wallMs / dayMs > span.untilDay + 1;
    return isOutside || isExcluded(wall) ? [] : [{ from, to, name }];
  });
}

/**
 * When an event begins: at its start, by its rules and on its further dates, in order. A further
 * date may have a zone of its own.
 */
function startsOf(event: ICAL.Component, start: Wall, span: DaySpan): Wall[] {
  const further = wallsOf(event, "rdate").map(({ wallMs, tzid = start.tzid }) => ({ ...start, wallMs, tzid }));
  const byRule = event.getAllProperties("rrule").flatMap((rule) => wallsOfRule(rule, start, span, event.parent));
  const all = [start, ...further, ...byRule.map((wallMs) => ({ ...start, wallMs }))];
  const once = new Map(all.map((wall) => [`${wall.wallMs} ${wall.tzid}`, wall]));
  return [...once.values()].toSorted((a, b) => a.wallMs - b.wallMs);
}

/** How long an event is: first by the clock, then exactly. */
interface Length {
  readonly clockMs: number;
  readonly exactMs: number;
  /** The zone of the end of an event that begins in no zone. */
  readonly endZone?: string | undefined;
}

/** The hours of a duration, and what lies between two zones, pass exactly: days by the clock. */
function lengthOf(event: ICAL.Component, start: Wall): Length {
  const [end] = wallsOf(event, "dtend");
  if (end !== undefined) {
    const instant = (wall: Wall) => Date.parse(showWall({ ...wall, isDate: false }, event.parent));
    if (start.tzid === undefined) return { clockMs: end.wallMs - start.wallMs, exactMs: 0, endZone: end.tzid };
    if (end.tzid === undefined || end.tzid === start.tzid) return { clockMs: end.wallMs - start.wallMs, exactMs: 0 };
    return { clockMs: 0, exactMs: instant(end) - instant(start) };
  }
  const duration = textOf(event, "duration");
  if (duration === "") return { clockMs: start.isDate ? dayMs : 0, exactMs: 0 };
  const length = ICAL.Duration.fromString(duration);
  const allMs = length.toSeconds() * 1_000;
  const daysMs = (length.weeks * 7 + length.days) * dayMs * (length.isNegative ? -1 : 1);
  return start.tzid === undefined ? { clockMs: allMs, exactMs: 0 } : { clockMs: daysMs, exactMs: allMs - daysMs };
}

/** Tells whether one time of an event is left out, or moved. A date stands for all of its day. */
function exclusion(walls: readonly Wall[], zones: ICAL.Component | null): (wall: Wall) => boolean {
  const instants = new Set(walls.map((wall) => showWall(wall, zones)));
  const dates = new Set(walls.map(({ wallMs }) => dateOf(wallMs)));
  const days = new Set(walls.flatMap(({ isDate, wallMs }) => (isDate ? [dateOf(wallMs)] : [])));
  return (wall) => instants.has(showWall(wall, zones)) || (wall.isDate ? dates : days).has(dateOf(wall.wallMs));
}

/** The times of a property. @throws Unreadable */
function wallsOf(component: ICAL.Component, name: string): Wall[] {
  return component.getAllProperties(name).flatMap((property) => {
    const [, , , ...values] = property.jCal as [string, object, string, ...unknown[]];
    const tzid = property.getParameter("tzid");
    return values.map((value) => {
      const text = typeof value === "string" ? value : "";
      const isDate = text.length === 10;
      const wallMs = parseWallText(isDate ? `${text}T00:00:00` : text.replace(/Z$/, ""));
      if (wallMs === undefined) throw new Unreadable(name, `${name.toUpperCase()} is no date that is understood here`);
      return { wallMs, isDate, tzid: text.endsWith("Z") ? "UTC" : typeof tzid === "string" ? tzid : undefined };
    });
  });
}

const frequencies = ["DAILY", "WEEKLY", "MONTHLY", "YEARLY"] as const;
const weekdays = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"];
const parts = ["freq", "interval", "until", "count", "byday", "bymonth", "bymonthday", "bysetpos", "wkst"];

/** The local times of a rule. @throws Unreadable */
function wallsOfRule(property: ICAL.Property, start: Wall, span: DaySpan, zones: ICAL.Component | null): number[] {
  const raw = (property.jCal as [string, object, string, Readonly<Record<string, unknown>>])[3];
  const list = (key: string) => [raw[key] ?? []].flat();
  const freq = frequencies.find((one) => one === raw["freq"]);
  const other = Object.keys(raw).find((key) => !parts.includes(key));
  if (freq === undefined || other !== undefined) {
    const what = other === undefined ? `FREQ=${raw["freq"] ?? ""}` : other.toUpperCase();
    throw new Unreadable("RRULE", `${what} is not understood`, "rules by day, week, month and year are");
  }
  const byDay = list("byday").map((text) => {
    const [, nth, weekday = ""] = /^([+-]?\d+)?([A-Z]{2})$/.exec(String(text)) ?? [];
    return { nth: Number(nth ?? 0), weekday: weekdays.indexOf(weekday) };
  });
  const rule: DayRule = {
    freq,
    interval: Math.max(1, Number(raw["interval"] ?? 1)),
    // ical.js counts from Sunday, 1.
    weekStart: Number(raw["wkst"] ?? 2) - 1,
    byDay,
    byMonth: list("bymonth").map(Number),
    byMonthDay: list("bymonthday").map(Number),
    bySetPos: list("bysetpos").map(Number),
    count: raw["count"] === undefined ? undefined : Number(raw["count"]),
  };
  const startDay = Math.floor(start.wallMs / dayMs);
  const clockMs = start.wallMs - startDay * dayMs;
  const until = String(raw["until"] ?? "");
  const isOver = (wallMs: number) => {
    if (until.length <= 10) return until !== "" && dateOf(wallMs) > until;
    const text = showWall({ ...start, wallMs }, zones);
    return text.endsWith("Z") ? Date.parse(text) > Date.parse(until) : text > until.replace(/Z$/, "");
  };
  const untilDay = Math.min(span.untilDay, until === "" ? Infinity : Date.parse(until.slice(0, 10)) / dayMs + 1);
  const days = [...daysOf(rule, startDay, { ...span, untilDay })].map((day) => day * dayMs + clockMs);
  return days.filter((wallMs) => !isOver(wallMs));
}

/** `2026-12-25` of a date, `2026-12-25T10:00:00` in any zone, else an instant with Z. */
function showWall({ wallMs, isDate, tzid }: Wall, zones: ICAL.Component | null): string {
  if (isDate) return dateOf(wallMs);
  const text = new Date(wallMs).toISOString();
  if (tzid === undefined || tzid === "UTC") return tzid === undefined ? text.slice(0, 19) : text;
  return new Date(instantOf(wallMs, tzid, zones)).toISOString();
}

/** A zone is IANA's of this name, or else the one that the file describes. @throws Unreadable */
function instantOf(wallMs: number, tzid: string, zones: ICAL.Component | null): number {
  try {
    const found = parseWallTime(new Date(wallMs).toISOString().slice(0, 19), tzid);
    if (found !== undefined) return found.instants[0] ?? found.nearMs;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  const zone = zones?.getAllSubcomponents("vtimezone").find((one) => textOf(one, "tzid") === tzid);
  const onsets = (zone?.getAllSubcomponents() ?? []).flatMap((one) => onsetOf(one, wallMs));
  const [last] = onsets.toSorted((a, b) => b.wallMs - a.wallMs);
  if (last !== undefined) return wallMs - last.offsetMs;
  throw new Unreadable("DTSTART", `the zone "${tzid}" is neither IANA's nor described in the file by a VTIMEZONE`);
}

/** When one part of a described zone, standard or daylight, last began. */
function onsetOf(part: ICAL.Component, wallMs: number): { readonly wallMs: number; readonly offsetMs: number }[] {
  const [start] = wallsOf(part, "dtstart");
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)/.exec(textOf(part, "tzoffsetto")) ?? [];
  if (start === undefined || sign === undefined) return [];
  const offsetMs = (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
  const day = Math.floor(wallMs / dayMs);
  const begins = startsOf(part, start, { fromDay: day - 400, untilDay: day, looks: { left: looksMax } });
  const last = begins.findLast((one) => one.wallMs <= wallMs);
  return last === undefined ? [] : [{ wallMs: last.wallMs, offsetMs }];
}

/** The text of a property, empty when it has none. */
function textOf(component: ICAL.Component, name: string): string {
  const value: unknown = (component.getFirstProperty(name)?.jCal as unknown[] | undefined)?.[3];
  return typeof value === "string" ? value : "";
}

function nameOf(event: ICAL.Component): string {
  return cutText(
    textOf(event, "summary")
      .replaceAll(/[\p{C}\s]+/gu, " ")
      .trim() || "no title",
    nameCharactersMax,
  );
}

function dateOf(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, 10);
}
