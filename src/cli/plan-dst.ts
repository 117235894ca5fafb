// `syncline plan --dst`: how the affected dates of the next 12 months are shown. Called by plan.ts.
import type { Policy } from "../config/policy-set.ts";
import { type DstDay, dstDays } from "../schedule/dst-days.ts";
import { showInstant, toTable } from "./table.ts";

/** The dates of the 12 months after an instant on which a clock change affects a policy's slots. */
export function comingDstDays(policy: Policy, fromMs: number): DstDay[] {
  const until = new Date(fromMs);
  until.setUTCFullYear(until.getUTCFullYear() + 1);
  return dstDays(policy, fromMs, until.getTime());
}

/** Affected dates for machines. Local times carry no zone; slots are UTC. */
export function dstDaysToJson(days: readonly DstDay[]): object[] {
  return days.map(({ date, expression, kind, shift, walls, slots }) => ({
    date,
    expression,
    kind,
    shiftAt: new Date(shift.atMs).toISOString(),
    wouldBe: { count: walls.length, first: localText(walls[0]), last: localText(walls.at(-1)) },
    is: { count: slots.length, first: utcText(slots[0]), last: utcText(slots.at(-1)) },
  }));
}

/** Affected dates for people: what would have been, and what is, local and UTC. */
export function dstDaysToText(
  plans: readonly { readonly policy: Policy; readonly dstDays: readonly DstDay[] }[],
  colours: boolean,
): string {
  const rows = plans.flatMap(({ policy, dstDays }) => {
    const zone = policy.schedule === undefined || policy.schedule.kind === "every" ? "UTC" : policy.schedule.timezone;
    return dstDays.map(({ date, shift, kind, walls, slots }) => [
      policy.name,
      date,
      `${clock(shift.atMs + shift.beforeMs)} → ${clock(shift.atMs + shift.afterMs)}`,
      `${several(walls, clock)}${kind === "overlap" ? " twice" : ""}`,
      slots.length === 0 ? "dropped" : several(slots, (slotMs) => showInstant(slotMs, zone)),
      slots.length === 0 ? "" : several(slots, (slotMs) => showInstant(slotMs)),
    ]);
  });
  if (rows.length === 0) return "No clock change of the next 12 months affects a slot.";
  return toTable(["policy", "date", "clocks", "would be", "is (local)", "is (utc)"], rows, colours);
}

/** One, two, or the first and the last of many. */
function several(instants: readonly number[], show: (instantMs: number) => string): string {
  const [first] = instants;
  const last = instants.at(-1);
  if (first === undefined || last === undefined) return "";
  if (instants.length === 1) return show(first);
  return instants.length === 2
    ? `${show(first)}, ${show(last)}`
    : `${show(first)} … ${show(last)} (${instants.length})`;
}

/** `02:30`, with seconds only where there are some. */
function clock(wallMs: number): string {
  const text = new Date(wallMs).toISOString().slice(11, 19);
  return text.endsWith(":00") ? text.slice(0, 5) : text;
}

function localText(wallMs: number | undefined): string | null {
  return wallMs === undefined ? null : new Date(wallMs).toISOString().slice(0, 19);
}

function utcText(instantMs: number | undefined): string | null {
  return instantMs === undefined ? null : new Date(instantMs).toISOString();
}
