// What a time line says of each slot, in words and as data. Pure; called by `syncline plan`, the
// page of the next 24 hours and the API.
import { targetsOf, timezoneOf } from "../config/policy-set.ts";
import { formatRoughly } from "../core/duration.ts";
import { showClock, toIso } from "../core/instant.ts";
import { parseTaskId } from "../model/task-id.ts";
import { deadlineOfSlot } from "../schedule/deadlines.ts";
import type { Clash, SlotRow } from "../simulate/slot-list.ts";
import { endWords } from "./task-words.ts";
import { type RunNow, runsMet, type TimeLine } from "./time-line.ts";

/** When its runs are over: only runs take time, and only some are known. */
export function endOf({ policy, state, endsMs }: SlotRow, { untimed }: TimeLine): number | undefined {
  const isKnown = state === "started" && policy.action.kind === "run" && !untimed.has(policy.name);
  return isKnown ? endsMs : undefined;
}

/** What its runs meet, as far as it is known when they begin. */
export function clashesOf({ policy, clashes }: SlotRow, { untimed }: TimeLine): readonly Clash[] {
  return untimed.has(policy.name) && policy.after !== undefined ? [] : clashes;
}

/** The deadline that a slot misses when its runs end as expected; undefined: none. */
export function deadlineMissed(row: SlotRow, line: TimeLine): number | undefined {
  const endsMs = endOf(row, line);
  const atMs = endsMs === undefined ? undefined : deadlineOfSlot(row.policy, row.slotMs)?.atMs;
  return atMs !== undefined && endsMs !== undefined && endsMs > atMs ? atMs : undefined;
}

/** A run that goes on now, and when it will probably end. */
export function runningWords(run: RunNow, zone: string | undefined, besideMs: number): string {
  return `Sync job ${run.target} of ${run.policy} goes on: ${endWords(run, zone, besideMs)}.`;
}

/** What is expected of a slot: why it falls away, when it begins, what it meets. */
export function expectedWords(row: SlotRow, line: TimeLine, zone: string | undefined): string {
  const { policy, slotMs, plannedMs, state, detail } = row;
  if (state !== "started") return detail;
  const after = policy.after?.policy;
  const begins = line.untimed.has(policy.name) ? "" : `about ${showClock(plannedMs, zone, slotMs)}, `;
  const [first, ...more] = clashesOf(row, line);
  const rest = more.length === 0 ? "" : `, and ${more.length} more`;
  const [met] = runsMet(row, line);
  const deadlineMs = deadlineMissed(row, line);
  const parts = [
    ...(after === undefined ? [] : [`${begins}after ${after}`]),
    ...(first === undefined ? [] : [`${clashWords(first, row, zone)}${rest}`]),
    ...(met === undefined
      ? []
      : [`sync job ${met.target} is still at work for ${met.policy} (overlap: ${policy.overlap})`]),
    ...(deadlineMs === undefined ? [] : [`ends after its deadline, ${showClock(deadlineMs, zone, slotMs)}`]),
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

/** The runs that go on now, for machines. */
export function runningOf({ running }: TimeLine) {
  return running.map(({ id, policy, target, sentAtMs, usualMs, endsMs }) => {
    return { taskId: id, policy, target, sent: toIso(sentAtMs), usualMs, endsAbout: toIso(endsMs) };
  });
}

/** The slots for machines. Instants are ISO 8601. */
export function slotsOf(line: TimeLine) {
  return line.rows.map((row) => {
    const { policy, slotMs, plannedMs, state, detail } = row;
    const isTimed = !line.untimed.has(policy.name);
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
      meetsRunning: runsMet(row, line).map(({ id }) => id),
      deadlineMissed: toIso(deadlineMissed(row, line)),
    };
  });
}
