// The next 24 hours: a lane a policy, or counts where there are many; what falls away, which runs
// meet, and about how many requests each service gets an hour.
import { html } from "hono/html";
import type { Policy } from "../../config/policy-set.ts";
import { showClock } from "../../core/instant.ts";
import { counted, someNames } from "../../core/plain-text.ts";
import { isAbout, isInForce, type Pause } from "../../model/pause.ts";
import { hoursOf, type NextDay, type ServiceAhead } from "../../queries/next-day.ts";
import { actionWords } from "../../queries/task-words.ts";
import { clashesOf, endOf, expectedWords, runningWords, type TimeLine } from "../../queries/time-line.ts";
import { type Html, mark, tag } from "./marks.ts";
import { policyLink, scheduleText, section, table } from "./parts.ts";
import { countLane, type LaneBar, slotLane } from "./pictures.ts";

/** How many hours the page looks ahead. */
export const hoursAhead = 24;
/** A lane begins with the hour that goes on. */
const laneMs = (hoursAhead + 1) * 3_600_000;
const lanesMax = 25;
const slotsOfLaneMax = 300;
const runningShownMax = 10;
const runningOpen = 3;
const rowsShown = 200;
/** More lines than these are a click away. */
const linesOpen = 20;
/** A policy with so many slots has one line. */
export const frequentFrom = 7;

type SlotRow = TimeLine["rows"][number];

/** The slots of the hour from `fromMs`, or of all the time, with the pauses that may skip them. */
export interface ListedSlots {
  readonly slots: readonly { readonly policy: Policy; readonly slotMs: number }[];
  readonly isCut: boolean;
  readonly fromMs: number | undefined;
  readonly pauses: readonly Pause[];
}

/** Says that the time ahead is not known yet. */
export function nextDayToCome(policies: number): Html {
  return html`<h1>Next ${hoursAhead} hours</h1>
<p class="notice" role="status">${tag("calm", "clock", "in work")} The slots of ${counted(policies, "policy", "policies")} are being worked out, which takes a few seconds. This page shows them then.</p>`;
}

/** Shows the time ahead. */
export function nextDayPage(day: NextDay, listed: ListedSlots): Html {
  const { services, line, nowMs, timezone, peaks } = day;
  const sum = (of: "slots" | "away" | "meets") => services.reduce((total, { all }) => total + all[of], 0);
  const policies = services.reduce((total, one) => total + one.policies.size, 0);
  const slots = `${counted(sum("slots"), "slot")} of ${counted(policies, "policy", "policies")}`;
  const facts = [
    html`<li>${mark("started", slots)}</li>`,
    sum("away") === 0 ? "" : html`<li>${mark("skipped", `${sum("away")} more will not start`)}</li>`,
    sum("meets") === 0 ? "" : html`<li>${tag("warn", "merge", `${sum("meets")} meet a run of their sync job`)}</li>`,
  ];
  const until = line.seenUntilMs;
  const cut =
    until === undefined
      ? ""
      : html`<p class="notice">${tag("warn", "triangle", "cut")} There are so many slots that the pictures and numbers end at ${showClock(until, timezone, nowMs)}.</p>`;
  const unknown = [...line.untimed];
  const untimed =
    unknown.length === 0
      ? ""
      : html`<p class="quiet">Not known yet how long these take, so it is not known either whether their runs meet: ${someNames(unknown)}.</p>`;
  return html`<h1>Next ${hoursAhead} hours</h1>
<ul class="facts-row">${facts}</ul>
${cut}
<p class="quiet">Planned as the scheduler will, with pauses in force and the usual durations, as of ${showClock(nowMs, timezone, nowMs)}. Times are in ${timezone}.</p>
${runningNow(day)}
${line.rows.length === 0 ? "" : slotTable(day, listed)}
${services.length === 0 ? html`<p class="none">No policy has a slot in this time.</p>` : services.map((one) => serviceSection(one, day))}
${untimed}
${(peaks[0]?.starts ?? 0) > 1 ? peakTable(day) : ""}`;
}

/** The runs that go on: many are a click away. */
function runningNow({ line: { running }, timezone, nowMs }: NextDay): Html | "" {
  const words = running.slice(0, runningShownMax).map((run) => html`<p>${runningWords(run, timezone, nowMs)}</p>`);
  if (running.length <= runningOpen) return html`<div class="quiet">${words}</div>`;
  const more = running.length > words.length ? html`<p>and ${running.length - words.length} more</p>` : "";
  return html`<details class="quiet"><summary>${running.length} runs go on now</summary>${words}${more}</details>`;
}

function serviceSection(one: ServiceAhead, day: NextDay): Html {
  const { service, policies, all } = one;
  const rows = day.line.rows.filter(({ policy }) => policy.service === service);
  const isWhole = day.line.cutMs === undefined && policies.size <= lanesMax;
  const hours = hoursOf(one);
  const most = Math.max(...hours.map(({ requests }) => requests));
  const why = isWhole
    ? ""
    : html`<p class="quiet">${counted(policies.size, "policy", "policies")}: too much to draw each slot, so a bar counts the slots of a quarter of an hour.</p>`;
  const meets = all.meets === 0 ? "" : `, ${all.meets} meet another`;
  const away = all.away === 0 ? "" : `, ${all.away} more will not start`;
  const id = `service-${service}`;
  return html`<section aria-labelledby="${id}"><h2 id="${id}"><a href="/policies?service=${service}">${service}</a></h2>${why}
<div class="lanes">${axis(day)}
${
  isWhole
    ? policyLanes(rows, day)
    : laneRow(
        "slots",
        countLane(
          one.quarters.map(({ slots, away: gone, meets: met }) => ({ count: slots, away: gone, isMarked: met > 0 })),
          { title: `${service}: ${counted(all.slots, "slot")}${away}${meets}`, ...placeOf(day) },
        ),
      )
}
${laneRow(
  "requests an hour",
  countLane(
    hours.map(({ requests }) => ({ count: requests, away: 0, isMarked: false })),
    { title: `${service}: about ${all.requests} requests, at most ${most} an hour`, ...placeOf(day) },
  ),
)}
</div>
<p class="quiet">About ${all.requests} requests, at most ${most} an hour.</p>
${hourTable(one, hours, day)}</section>`;
}

/** Where now is, from 0 to 1. */
function placeOf({ range, nowMs }: NextDay): { readonly now: number } {
  return { now: (nowMs - range.fromMs) / laneMs };
}

function axis({ range, timezone, nowMs }: NextDay): Html {
  const labels = Array.from({ length: hoursAhead / 3 }, (_, index) => {
    const atMs = range.fromMs + index * 3 * 3_600_000;
    return html`<span>${showClock(atMs, timezone, atMs).slice(0, 5)}</span>`;
  });
  return html`<div class="axis" aria-hidden="true"><span></span><div data-now="${showClock(nowMs, timezone, nowMs)}">${labels}</div></div>`;
}

function laneRow(name: Html | string, picture: Html): Html {
  return html`<div class="lane"><span>${name}</span>${picture}</div>`;
}

function policyLanes(rows: readonly SlotRow[], day: NextDay): Html[] {
  const { range, line } = day;
  const at = (ms: number) => (ms - range.fromMs) / laneMs;
  const byPolicy = [...Map.groupBy(rows, ({ policy }) => policy)].toSorted(([a], [b]) => (a.name < b.name ? -1 : 1));
  return byPolicy.map(([policy, own]) => {
    const bars = own.map((row): LaneBar => {
      const kind = row.state !== "started" ? "away" : clashesOf(row, line).length > 0 ? "meets" : "due";
      return { from: at(row.plannedMs), to: at(endOf(row, line) ?? row.plannedMs), kind, title: barTitle(row, day) };
    });
    const isDense = own.length > slotsOfLaneMax;
    const title = `${policy.name}: ${counted(own.length, "slot")}`;
    const name = html`${policyLink(policy.name)}${isDense ? html`<span class="under">${own.length} slots, a bar an hour</span>` : ""}`;
    return laneRow(name, slotLane(isDense ? hourBars(bars) : bars, { title, ...placeOf(day) }));
  });
}

/** One bar for all slots of an hour, where there are too many to draw each. */
function hourBars(bars: readonly LaneBar[]): LaneBar[] {
  const hours = [...Map.groupBy(bars, ({ from }) => Math.floor(from * (hoursAhead + 1) + 1e-9))];
  return hours.map(([hour, own]) => {
    const kinds = new Set(own.map(({ kind }) => kind));
    const kind = kinds.has("meets") ? "meets" : kinds.has("due") ? "due" : "away";
    const [first, last] = [own[0], own.at(-1)];
    const to = Math.max(last?.to ?? 0, ((last?.from ?? 0) + (hour + 1) / (hoursAhead + 1)) / 2);
    return { from: first?.from ?? 0, to, kind, title: `${counted(own.length, "slot")} from ${first?.title ?? ""}` };
  });
}

function barTitle(row: SlotRow, { line, timezone, nowMs }: NextDay): string {
  const words = expectedWords(row, line, timezone);
  return `${showClock(row.slotMs, timezone, nowMs)}${row.state === "started" ? "" : ` ${row.state}`}${words === "" ? "" : `: ${words}`}`;
}

function hourTable(one: ServiceAhead, hours: ReturnType<typeof hoursOf>, { timezone, nowMs }: NextDay): Html {
  const rows = hours.map(({ fromMs, slots, away, meets, requests }) => [
    showClock(fromMs, timezone, nowMs),
    ...[slots, away, meets, requests].map((count) => (count === 0 ? html`<span class="none">0</span>` : `${count}`)),
  ]);
  const columns = [
    "hour",
    ["slots", "num"],
    ["will not start", "num"],
    ["meet another", "num"],
    ["requests", "num"],
  ] as const;
  return html`<details><summary>The same as a table</summary>${table(`${one.service} by the hour`, columns, rows)}</details>`;
}

function peakTable({ peaks, timezone, nowMs }: NextDay): Html {
  const rows = peaks.map(({ fromMs, starts, policies, policiesCount }) => [
    showClock(fromMs, timezone, nowMs),
    `${starts}`,
    html`${policies.map(({ policy }) => html`${policyLink(policy)} `)}${policiesCount > policies.length ? `and ${policiesCount - policies.length} more` : ""}`,
  ]);
  const columns = ["minute", ["starts", "num"], ["of", "wide"]] as const;
  return section("peaks", "Busiest minutes", table("Busiest minutes", columns, rows));
}

/** Slots in order, one line for frequent ones; what is expected of those near. */
function slotTable({ line, range, timezone, nowMs }: NextDay, { slots, isCut, pauses, fromMs }: ListedSlots): Html {
  const key = (policy: Policy, slotMs: number) => `${slotMs} ${policy.name}`;
  const foreseen = new Map(line.rows.map((row) => [key(row.policy, row.slotMs), row]));
  const byPolicy = [...Map.groupBy(slots, ({ policy }) => policy)];
  const frequent = new Map(
    byPolicy.flatMap(([policy, own]) => (own.length < frequentFrom ? [] : [[policy, own[0]?.slotMs] as const])),
  );
  const lastMs = (fromMs === undefined ? range.toMs : fromMs + 3_600_000) - 1;
  const lines = slots.filter(({ policy, slotMs }) => (frequent.get(policy) ?? slotMs) === slotMs);
  const rows = lines.slice(0, rowsShown).map(({ policy, slotMs }) => {
    const many = frequent.has(policy);
    const row = foreseen.get(key(policy, slotMs));
    // One line stands for all of many slots: skipped only where a pause lasts to the end.
    const heldMs = many ? lastMs : slotMs;
    const isPaused = pauses.some(
      (pause) => isAbout(pause, policy) && isInForce(pause, slotMs) && isInForce(pause, heldMs),
    );
    const away = row === undefined || many ? (isPaused ? "skipped" : "started") : row.state;
    const endsMs = row === undefined || many ? undefined : endOf(row, line);
    const expected = row === undefined ? "" : expectedWords(row, line, timezone);
    const first = row === undefined || row.state === away ? expected : `${row.state}, ${expected}`;
    return [
      showClock(slotMs, timezone, nowMs),
      many
        ? html`${policyLink(policy.name)}<span class="under">${scheduleText(policy)}</span>`
        : policyLink(policy.name),
      away === "started" ? actionWords(policy.action) : mark(away),
      endsMs === undefined ? "" : showClock(endsMs, timezone, nowMs),
      many && first !== "" && away === "started" ? `the first: ${first}` : expected,
    ];
  });
  const columns = ["due", "policy", "starts", "ends about", ["expected", "wide"]] as const;
  const rest =
    fromMs === undefined
      ? "the API has more"
      : "a later quarter of an hour has those of later instants, the page of a policy its own";
  const more = lines.length > rowsShown ? html`<p class="quiet">The first ${rowsShown} lines; ${rest}.</p>` : "";
  const from = fromMs === undefined ? "" : showClock(fromMs, timezone, fromMs);
  const sharp = slots.filter(({ slotMs }) => slotMs === fromMs).length;
  const words =
    fromMs === undefined
      ? `${lines.length > rowsShown ? "The first" : "All"} in order; policies with ${frequentFrom} slots or more once, at their next: choose an hour to see what else starts then`
      : `${isCut ? "More than " : ""}${counted(slots.length, "slot")} in the hour from ${from}, ${sharp} of them at ${from.slice(0, 5)} itself`;
  const form = html`<form class="filters" method="get" action="/next#slots"><label>The hour from <input type="time" name="at" step="900" value="${from.slice(0, 5)}" required></label><button>Show</button></form>`;
  const all = table("Slots ahead, in order", columns, rows, { none: "No slot comes due then." });
  const open = html`<details${fromMs === undefined && lines.length > linesOpen ? "" : html` open`}><summary>${words}</summary>${all}${more}</details>`;
  return section("slots", "Slots", html`${form}${open}`);
}

/**
 * When a clock of the zone next shows this quarter of an hour; undefined: not within a day, or no
 * time was given.
 */
export function instantAt(
  { range, timezone, nowMs }: Pick<NextDay, "range" | "timezone" | "nowMs">,
  clock: string,
): number | undefined {
  if (clock === "") return undefined;
  const [, hour = "", minute = ""] = /^(\d\d):(\d\d)$/.exec(clock) ?? [];
  const quarter = `${hour}:${String(Math.floor(Number(minute) / 15) * 15).padStart(2, "0")}`;
  const wallMs = (ms: number) => Date.parse(showClock(ms, timezone).replace(/^(\S+) (\d\d:\d\d).*$/, "$1T$2Z"));
  // The first hour of the range has begun: what of it has passed comes again a day later, which by
  // the clocks is up to two hours more or less.
  const endMs = wallMs(range.fromMs) + (hoursAhead + 1) * 3_600_000;
  const quarters = Array.from({ length: (hoursAhead + 3) * 4 }, (_, index) => range.fromMs + index * 900_000);
  return quarters.find((ms) => ms >= nowMs && showClock(ms, timezone, ms).startsWith(quarter) && wallMs(ms) < endMs);
}
