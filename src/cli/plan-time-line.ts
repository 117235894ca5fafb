// `syncline plan --to`: the time line as a table and as JSON. Called by plan.ts.

import { showClock, toIso } from "../core/instant.ts";
import { counted, someNames } from "../core/plain-text.ts";
import { actionWords } from "../queries/task-words.ts";
import { runsMet, type TimeLine } from "../queries/time-line.ts";
import {
  clashesOf,
  deadlineMissed,
  endOf,
  expectedWords,
  runningOf,
  runningWords,
  slotsOf,
} from "../queries/time-line-words.ts";
import type { SlotRow } from "../simulate/slot-list.ts";
import type { Interval } from "../simulate/virtual-ticks.ts";
import type { Screen } from "./command-io.ts";
import { paint, toTable } from "./table.ts";
import { showTimes } from "./time-argument.ts";

const runningShownMax = 5;

/** A time line, and the times that were asked for. */
export interface ToldLine {
  readonly line: TimeLine;
  readonly range: Interval;
  /** In which the times were read. */
  readonly timezone: string;
}

/** The time line for people, with what is not known. */
export function timeLineToText({ line, range, timezone }: ToldLine, screen: Screen): string {
  const { rows, cutMs, untimed, running } = line;
  const title = `Planned ${showTimes(range, timezone)}: ${counted(rows.length, "slot")}`;
  if (rows.length === 0) return `${title}.`;
  const policies = new Set(rows.map(({ policy }) => policy.name)).size;
  const zone = timezone === "UTC" ? undefined : timezone;
  const cells = rows.map((row) => cellsOf(row, line, zone, screen));
  const clashing = rows.filter((row) => clashesOf(row, line).length + runsMet(row, line).length > 0).length;
  const late = rows.filter((row) => deadlineMissed(row, line) !== undefined).length;
  const unknown = rows.filter(({ policy }) => untimed.has(policy.name) && policy.action.kind === "run");
  const names = someNames([...new Set(unknown.map(({ policy }) => policy.name))]);
  return [
    `${title} of ${counted(policies, "policy", "policies")}.`,
    ...running.slice(0, runningShownMax).map((run) => runningWords(run, zone, range.fromMs)),
    ...(running.length > runningShownMax
      ? [`And ${running.length - runningShownMax} more go on; --json has all.`]
      : []),
    toTable(["slot", "policy", "starts", "ends about", "expected"], cells, screen),
    ...(cutMs === undefined
      ? []
      : [`From ${showClock(cutMs, zone, range.fromMs)} on slots are left out: --count shows more.`]),
    clashing === 0
      ? "No runs of one sync job meet."
      : `${counted(clashing, "slot meets", "slots meet")} a run of the same sync job.`,
    ...(late === 0 ? [] : [`${counted(late, "slot ends", "slots end")} after the deadline of its policy.`]),
    ...(names === "" ? [] : [`But it is not known how long these take: ${names}. --duration POLICY=20m assumes it.`]),
  ].join("\n");
}

/** All in one zone, that of the title: slots of several zones would not read in their order. */
function cellsOf(row: SlotRow, line: TimeLine, zone: string | undefined, screen: Screen): string[] {
  const { policy, slotMs } = row;
  const utc = zone === undefined ? "" : ` ${showClock(slotMs, undefined, slotMs)}`;
  const endsMs = endOf(row, line);
  return [
    `${showClock(slotMs, zone)}${utc}`,
    policy.name,
    row.state === "started" ? actionWords(policy.action) : paint("gray", row.state, screen.colours),
    endsMs === undefined ? "" : showClock(endsMs, zone, slotMs),
    expectedWords(row, line, zone),
  ];
}

/** The time line for machines. */
export function timeLineToJson({ line, range, timezone }: ToldLine): object {
  const { cutMs, untimed } = line;
  return {
    v: 1,
    from: toIso(range.fromMs),
    to: toIso(range.toMs),
    timezone,
    cutAt: toIso(cutMs),
    slots: slotsOf(line),
    durationsUnknown: [...untimed],
    running: runningOf(line),
  };
}
