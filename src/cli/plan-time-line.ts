// `syncline plan --to`: the time line as a table and as JSON. Called by plan.ts.
import { type Interval, showClock, toIso } from "../core/instant.ts";
import { counted, someNames } from "../core/plain-text.ts";
import { actionWords } from "../queries/task-words.ts";
import {
  clashesOf,
  deadlineMissed,
  endOf,
  expectedWords,
  runningOf,
  runningWords,
  runsMet,
  slotsOf,
  type TimeLine,
} from "../queries/time-line.ts";
import type { SlotRow } from "../simulate/slot-list.ts";
import type { Screen } from "./command-io.ts";
import { paint, toTable } from "./table.ts";
import { showTimes } from "./time-argument.ts";

const runningShownMax = 5;

/** A policy with more slots than this is one line, where there are several policies. */
const foldedFrom = 24;
/** Slots that meet a run, below the table, of those that it leaves out. */
const hiddenMax = 5;

/** A time line, the times that were asked for, and how many lines the table may have. */
export interface ToldLine {
  readonly line: TimeLine;
  readonly range: Interval;
  /** In which the times were read. */
  readonly timezone: string;
  readonly count: number;
}

/** The time line for people, with what is not known. Its sums are also of slots left out. */
export function timeLineToText({ line, range, timezone, count }: ToldLine, screen: Screen): string {
  const { rows, cutMs, untimed, running } = line;
  const title = `Planned ${showTimes(range, timezone)}: ${counted(rows.length, "slot")}`;
  if (rows.length === 0) return `${title}.`;
  const byPolicy = Map.groupBy(rows, ({ policy }) => policy.name);
  // Slots that meet a planned run of the same sync job, or one that goes on now.
  const clashing = new Set(rows.filter((row) => clashesOf(row, line).length > 0 || runsMet(row, line).length > 0));
  const late = new Set(rows.filter((row) => deadlineMissed(row, line) !== undefined));
  const folded = new Set(
    byPolicy.size === 1 ? [] : [...byPolicy].flatMap(([name, its]) => (its.length > foldedFrom ? [name] : [])),
  );
  const listed = rows.filter(({ policy }) => !folded.has(policy.name));
  const cutAt = listed[count];
  const hidden = listed.slice(count).filter((row) => clashing.has(row));
  const unknown = rows.filter(({ policy }) => untimed.has(policy.name) && policy.action.kind === "run");
  const names = someNames([...new Set(unknown.map(({ policy }) => policy.name))]);
  const zone = timezone === "UTC" ? undefined : timezone;
  const clockOf = (instantMs: number) => showClock(instantMs, zone, range.fromMs);
  return [
    `${title} of ${counted(byPolicy.size, "policy", "policies")}.`,
    ...running.slice(0, runningShownMax).map((run) => runningWords(run, zone, range.fromMs)),
    ...(running.length > runningShownMax
      ? [`And ${running.length - runningShownMax} more go on; --json has all.`]
      : []),
    toTable(
      ["slot", "policy", "starts", "ends about", "expected"],
      [
        ...[...folded].map((name) =>
          foldedCells(byPolicy.get(name) ?? [], { clashing, late, fromMs: range.fromMs, zone }),
        ),
        ...listed.slice(0, count).map((row) => cellsOf(row, line, zone, screen)),
      ],
      screen,
    ),
    ...(cutAt !== undefined ? [`From ${clockOf(cutAt.plannedMs)} on slots are not shown: --count shows more.`] : []),
    ...(cutMs === undefined ? [] : [`There are too many: those from ${clockOf(cutMs)} on were not looked at.`]),
    clashing.size === 0
      ? "No runs of one sync job meet."
      : `${counted(clashing.size, "slot meets", "slots meet")} a run of the same sync job.`,
    ...hidden
      .slice(0, hiddenMax)
      .map((row) => `  ${clockOf(row.slotMs)} ${row.policy.name}: ${expectedWords(row, line, zone)}`),
    ...(late.size === 0 ? [] : [`${counted(late.size, "slot ends", "slots end")} after the deadline of its policy.`]),
    ...(rows.some(({ policy }) => policy.needs !== undefined)
      ? ["What policies need is taken as fresh at the beginning."]
      : []),
    ...(names === "" ? [] : [`But it is not known how long these take: ${names}. --duration POLICY=20m assumes it.`]),
  ].join("\n");
}

function foldedCells(
  rows: readonly SlotRow[],
  known: {
    readonly clashing: ReadonlySet<SlotRow>;
    readonly late: ReadonlySet<SlotRow>;
    readonly fromMs: number;
    readonly zone: string | undefined;
  },
): string[] {
  const [first, last] = [rows[0], rows.at(-1)];
  if (first === undefined || last === undefined) return [];
  const { policy } = first;
  const { zone } = known;
  const count = (some: ReadonlySet<SlotRow>) => rows.filter((row) => some.has(row)).length;
  const about = [
    [rows.filter(({ state }) => state !== "started").length, "start nothing"],
    [count(known.clashing), "meet another run"],
    [count(known.late), "end late"],
  ] as const;
  const words = about.flatMap(([slots, what]) => (slots === 0 ? [] : [`${slots} ${what}`]));
  return [
    `${showClock(first.slotMs, zone, known.fromMs)} to ${showClock(last.slotMs, zone, known.fromMs)}`,
    policy.name,
    `${actionWords(policy.action)}, ${counted(rows.length, "slot")}`,
    "",
    words.length === 0 ? "" : `${words.join(", ")}: plan ${policy.name} shows them`,
  ];
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
export function timeLineToJson({ line, range, timezone, count }: ToldLine): object {
  const { cutMs, untimed, rows } = line;
  return {
    v: 1,
    from: toIso(range.fromMs),
    to: toIso(range.toMs),
    timezone,
    cutAt: toIso(rows[count]?.plannedMs ?? cutMs),
    slots: slotsOf({ ...line, rows: rows.slice(0, count) }),
    durationsUnknown: [...untimed],
    running: runningOf(line),
  };
}
