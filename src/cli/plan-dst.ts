// `syncline plan --dst`: on which dates of the next 12 months a clock change affects the slots of a
// policy. Called by plan.ts.
import type { Policy } from "../config/policy-set.ts";
import { showInstant, toIso } from "../core/instant.ts";
import { type DstDay, dstDays } from "../schedule/dst-days.ts";
import type { Screen } from "./command-io.ts";
import { toTable } from "./table.ts";

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
    shiftAt: toIso(shift.atMs),
    wouldBe: { count: walls.length, first: localText(walls[0]), last: localText(walls.at(-1)) },
    is: { count: slots.length, first: toIso(slots[0]), last: toIso(slots.at(-1)) },
  }));
}

/** Affected dates for people: the expected and the actual time, local and UTC. */
export function dstDaysToText(
  plans: readonly { readonly policy: Policy; readonly dstDays: readonly DstDay[] }[],
  screen: Screen,
): string {
  const rows = plans.flatMap(({ policy, dstDays }) => {
    const zone = policy.closed.timezone;
    return dstDays.map(({ date, shift, kind, walls, slots }) => [
      policy.name,
      date,
      `${clock(shift.atMs + shift.beforeMs)} → ${clock(shift.atMs + shift.afterMs)}`,
      `${several(walls, clock)}${kind === "overlap" ? " twice" : ""}`,
      slots.length === 0 ? "dropped" : several(slots, (slotMs) => showInstant(slotMs, zone)),
      several(slots, (slotMs) => showInstant(slotMs)),
    ]);
  });
  if (rows.length === 0) return "No clock change of the next 12 months affects a slot.";
  return toTable(["policy", "date", "clocks", "would be", "is (local)", "is (utc)"], rows, screen);
}

/** One, two, or the first and the last of many. */
function several(instants: readonly number[], show: (instantMs: number) => string): string {
  if (instants.length <= 2) return instants.map(show).join(", ");
  return `${show(instants[0] ?? 0)} … ${show(instants.at(-1) ?? 0)} (${instants.length})`;
}

/** `02:30`, with seconds only where there are some. */
function clock(wallMs: number): string {
  const text = new Date(wallMs).toISOString().slice(11, 19);
  return text.endsWith(":00") ? text.slice(0, 5) : text;
}

function localText(wallMs: number | undefined): string | null {
  return toIso(wallMs)?.slice(0, 19) ?? null;
}
