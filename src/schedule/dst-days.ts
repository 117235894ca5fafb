// The local dates on which a clock shift affects a policy: the local times, and the slots they
// become. Pure; called by `syncline plan --dst`. The rule is dst-rule.ts, the same as for firing.
import type { Policy } from "../config/policy-set.ts";
import { zonedPatterns } from "./calendar.ts";
import { slotsOfShiftedWall, type ZonedPattern } from "./dst-rule.ts";
import { dueSlots, spreadOffsetMs } from "./slots.ts";
import { type ClockShift, zoneOf } from "./zone.ts";

/** The most local times of one expression at one shift: every second of three hours. */
const wallsMax = 10_800;

/** One local date on which one expression of a policy is affected. */
export interface DstDay {
  /** The local date, `2027-03-28`. */
  readonly date: string;
  readonly expression: string;
  readonly shift: ClockShift;
  /** Whether its local times are left out, or come twice. */
  readonly kind: "gap" | "overlap";
  /** Those local times, each written as the UTC instant that shows the same; at least one. */
  readonly walls: readonly number[];
  /** The slots that they become, in order and each once; empty when all are dropped. */
  readonly slots: readonly number[];
}

/** The affected dates of all shifts after `fromMs` up to `untilMs`, in order; none of intervals. */
export function dstDays(policy: Policy, fromMs: number, untilMs: number): DstDay[] {
  const { schedule } = policy;
  if (schedule === undefined || schedule.kind === "every") return [];
  const zone = zoneOf(schedule.timezone);
  const patterns = zonedPatterns(schedule);
  const spreadMs = spreadOffsetMs(policy.name, schedule.spreadMs);
  return zone.shifts(fromMs, untilMs).flatMap((shift) =>
    patterns.flatMap(({ expression, zoned }) => {
      const kind = shift.afterMs > shift.beforeMs ? ("gap" as const) : ("overlap" as const);
      return [...Map.groupBy(affectedWalls(zoned, shift), dateOf)].map(([date, walls]) => ({
        date,
        expression,
        shift,
        kind,
        walls: walls.map((wallMs) => wallMs + spreadMs),
        slots: slotsOf(walls, zoned, shift).map((slotMs) => slotMs + spreadMs),
      }));
    }),
  );
}

function affectedWalls({ pattern }: ZonedPattern, { atMs, beforeMs, afterMs }: ClockShift): number[] {
  return dueSlots(pattern, atMs + Math.min(beforeMs, afterMs) - 1, atMs + Math.max(beforeMs, afterMs) - 1, wallsMax);
}

function dateOf(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, 10);
}

function slotsOf(walls: readonly number[], zoned: ZonedPattern, shift: ClockShift): number[] {
  const slots = new Set(walls.flatMap((wallMs) => slotsOfShiftedWall(zoned, shift, wallMs)));
  return [...slots].sort((a, b) => a - b);
}
