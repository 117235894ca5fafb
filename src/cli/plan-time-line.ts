// `syncline plan --to`: the time line as a table and as JSON. Called by plan.ts.

import { targetsOf, timezoneOf } from "../config/policy-set.ts";
import { formatRoughly } from "../core/duration.ts";
import { showClock, toIso } from "../core/instant.ts";
import { counted, someNames } from "../core/plain-text.ts";
import { parseTaskId } from "../model/task-id.ts";
import { actionWords } from "../queries/task-words.ts";
import type { TimeLine } from "../queries/time-line.ts";
import type { Clash, SlotRow } from "../simulate/slot-list.ts";
import type { Interval } from "../simulate/virtual-ticks.ts";
import type { Screen } from "./command-io.ts";
import { paint, toTable } from "./table.ts";
import { showTimes } from "./time-argument.ts";

/** A time line, and the times that were asked for. */
export interface ToldLine {
  readonly line: TimeLine;
  readonly range: Interval;
  /** In which the times were read. */
  readonly timezone: string;
}

/** The time line for people, with what is not known. */
export function timeLineToText({ line, range, timezone }: ToldLine, screen: Screen): string {
  const { rows, cutMs, untimed } = line;
  const title = `Planned ${showTimes(range, timezone)}: ${counted(rows.length, "slot")}`;
  if (rows.length === 0) return `${title}.`;
  const policies = new Set(rows.map(({ policy }) => policy.name)).size;
  const cells = rows.map((row) => cellsOf(row, line, screen));
  const clashing = rows.filter((row) => clashesOf(row, line).length > 0).length;
  const unknown = rows.filter(({ policy }) => untimed.has(policy.name) && policy.action.kind === "run");
  const names = someNames([...new Set(unknown.map(({ policy }) => policy.name))]);
  const zone = timezone === "UTC" ? undefined : timezone;
  return [
    `${title} of ${counted(policies, "policy", "policies")}.`,
    toTable(["slot", "policy", "starts", "ends about", "expected"], cells, screen),
    ...(cutMs === undefined
      ? []
      : [`From ${showClock(cutMs, zone, range.fromMs)} on slots are left out: --count shows more.`]),
    clashing === 0
      ? "No runs of one sync job meet."
      : `${counted(clashing, "slot meets", "slots meet")} a run of the same sync job.`,
    ...(names === "" ? [] : [`But it is not known how long these take: ${names}. --duration POLICY=20m assumes it.`]),
  ].join("\n");
}

function cellsOf(row: SlotRow, line: TimeLine, screen: Screen): string[] {
  const { policy, slotMs } = row;
  const timezone = timezoneOf(policy);
  const zone = timezone === "UTC" ? undefined : timezone;
  const utc = zone === undefined ? "" : ` ${showClock(slotMs, undefined, slotMs)}`;
  const endsMs = endOf(row, line);
  return [
    `${showClock(slotMs, zone)}${utc}`,
    policy.name,
    row.state === "started" ? actionWords(policy.action) : paint("gray", row.state, screen.colours),
    endsMs === undefined ? "" : showClock(endsMs, zone, slotMs),
    expectedOf(row, line, zone),
  ];
}

/** When its runs are over: only runs take time, and only some are known. */
function endOf({ policy, state, endsMs }: SlotRow, { untimed }: TimeLine): number | undefined {
  const isKnown = state === "started" && policy.action.kind === "run" && !untimed.has(policy.name);
  return isKnown ? endsMs : undefined;
}

function clashesOf({ policy, clashes }: SlotRow, { untimed }: TimeLine): readonly Clash[] {
  return untimed.has(policy.name) && policy.after !== undefined ? [] : clashes;
}

function expectedOf(row: SlotRow, line: TimeLine, zone: string | undefined): string {
  const { policy, slotMs, plannedMs, state, detail } = row;
  if (state !== "started") return detail;
  const after = policy.after?.policy;
  const begins = line.untimed.has(policy.name) ? "" : `about ${showClock(plannedMs, zone, slotMs)}, `;
  const [first, ...more] = clashesOf(row, line);
  const rest = more.length === 0 ? "" : `, and ${more.length} more`;
  const parts = [
    ...(after === undefined ? [] : [`${begins}after ${after}`]),
    ...(first === undefined ? [] : [`${clashWords(first, row, zone)}${rest}`]),
  ];
  return parts.join("; ");
}

function clashWords(
  { target, what, by, waitMs }: Clash,
  { policy, slotMs }: SlotRow,
  zone: string | undefined,
): string {
  const other = by === undefined ? undefined : parseTaskId(by);
  const run = other === undefined ? "another run" : `${other.policy} of ${showClock(other.slotMs, zone, slotMs)}`;
  const rule = ` (overlap: ${policy.overlap})`;
  const job = `sync job ${target}`;
  if (what === "too-late") return `${job} comes too late to start`;
  if (what === "waits") return `${job} waits ${formatRoughly(waitMs)} for another run${rule}`;
  if (what === "skipped") return `${job} is skipped, as ${run} goes on${rule}`;
  return `${job} runs beside ${run}${policy.overlap === "allow" ? rule : ", which is not followed any more"}`;
}

/** The time line for machines. */
export function timeLineToJson({ line, range, timezone }: ToldLine): object {
  const { rows, cutMs, untimed } = line;
  return {
    v: 1,
    from: toIso(range.fromMs),
    to: toIso(range.toMs),
    timezone,
    cutAt: toIso(cutMs),
    slots: rows.map((row) => {
      const { policy, slotMs, plannedMs, state, detail } = row;
      const isTimed = !untimed.has(policy.name);
      return {
        policy: policy.name,
        service: policy.service,
        timezone: timezoneOf(policy),
        slot: toIso(slotMs),
        begins: policy.after === undefined || isTimed ? toIso(plannedMs) : null,
        ends: toIso(endOf(row, line)),
        state,
        detail,
        kind: policy.action.kind,
        targets: targetsOf(policy.action) ?? null,
        clashes: clashesOf(row, line),
      };
    }),
    durationsUnknown: [...untimed],
  };
}
