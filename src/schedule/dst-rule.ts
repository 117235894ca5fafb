// The DST rule: the instants of a cron expression's wall times in a zone whose clocks shift. Pure;
// docs/time.md has examples. calendar.ts fires and dst-days.ts previews by it, so both agree.
//
//                     fixed (hour field 2 or 2,14)               sub-daily (hour field *, a step, a range)
//   gap               next: first instant after it; skip: none   as if the old clock went on: elapsed time is kept
//   repeated hour     first, second or both                      both
import type { DstRule } from "../config/policy-set.ts";
import type { WallPattern } from "./cron-pattern.ts";
import type { ClockShift, Zone } from "./zone.ts";

/** One cron expression in one zone under one rule. */
export interface ZonedPattern {
  readonly pattern: WallPattern;
  readonly zone: Zone;
  readonly dst: DstRule;
}

/** No clock shift moves further: Samoa left out 30 December 2011. */
const shiftMsMax = 86_400_000;
/** Each round passes a shift or its hours: more rounds than any zone needs before the year 3000. */
const roundsMax = 20_000;

/**
 * The first slot after an instant (ms UTC), undefined when none comes before the year 3000.
 * @throws Error when the search does not end: a bug, never the policy's fault.
 */
export function nextZonedSlot(zoned: ZonedPattern, afterMs: number): number | undefined {
  const shown = nextShown(zoned, afterMs);
  if (shown === undefined) return undefined;
  for (const shift of zoned.zone.shifts(afterMs - shiftMsMax, shown)) {
    const moved = movedOutOfGap(zoned, shift, afterMs);
    if (moved !== undefined && moved < shown) return moved;
  }
  return shown;
}

/** The slot after `afterMs` that replaces a wall time inside a gap, if any. */
function movedOutOfGap(zoned: ZonedPattern, shift: ClockShift, afterMs: number): number | undefined {
  const { pattern, dst } = zoned;
  const { atMs, beforeMs, afterMs: offsetAfterMs } = shift;
  if (offsetAfterMs <= beforeMs) return undefined;
  const gapEndsMs = atMs + offsetAfterMs;
  if (pattern.isSubDaily) {
    const wallMs = pattern.next(Math.max(afterMs, atMs - 1) + beforeMs);
    return wallMs === undefined || wallMs >= gapEndsMs ? undefined : wallMs - beforeMs;
  }
  if (dst.gap === "skip" || atMs <= afterMs) return undefined;
  const wallMs = pattern.next(atMs + beforeMs - 1);
  return wallMs === undefined || wallMs >= gapEndsMs ? undefined : atMs;
}

/** The first instant at which clocks show a wall time, and the overlap rule keeps it. */
function nextShown(zoned: ZonedPattern, afterMs: number): number | undefined {
  const { pattern, zone } = zoned;
  let offsetMs = zone.offsetMs(afterMs);
  let fromMs = afterMs;
  let passedMs = afterMs;
  for (let round = 0; round < roundsMax; round += 1) {
    const wallMs = pattern.next(fromMs + offsetMs);
    if (wallMs === undefined) return undefined;
    const slotMs = wallMs - offsetMs;
    const shift = zone.shifts(passedMs, slotMs)[0];
    const resumeMs = shift === undefined ? overlapResumesAt(zoned, slotMs) : undefined;
    if (shift !== undefined) {
      offsetMs = shift.afterMs;
      passedMs = shift.atMs;
      fromMs = shift.atMs - 1;
    } else if (resumeMs === undefined) return slotMs;
    else fromMs = resumeMs - 1;
  }
  throw new Error(`no slot found in ${roundsMax} rounds after ${afterMs}`);
}

/** From when slots count again, if the overlap rule drops this one; undefined if it stays. */
function overlapResumesAt({ pattern, zone, dst }: ZonedPattern, slotMs: number): number | undefined {
  if (pattern.isSubDaily || dst.overlap === "both") return undefined;
  if (dst.overlap === "first") {
    const over = zone.shifts(slotMs - shiftMsMax, slotMs).find((shift) => slotMs < shift.atMs + repeatedMs(shift));
    return over === undefined ? undefined : over.atMs + repeatedMs(over);
  }
  const coming = zone.shifts(slotMs, slotMs + shiftMsMax).find((shift) => slotMs >= shift.atMs - repeatedMs(shift));
  return coming?.atMs;
}

function repeatedMs({ beforeMs, afterMs }: ClockShift): number {
  return Math.max(0, beforeMs - afterMs);
}

/** The slots of a wall time that a shift leaves out or repeats: none, one or two, in order. */
export function slotsOfShiftedWall({ pattern, dst }: ZonedPattern, shift: ClockShift, wallMs: number): number[] {
  const oldClockMs = wallMs - shift.beforeMs;
  const newClockMs = wallMs - shift.afterMs;
  if (repeatedMs(shift) > 0) {
    if (pattern.isSubDaily || dst.overlap === "both") return [oldClockMs, newClockMs];
    return [dst.overlap === "first" ? oldClockMs : newClockMs];
  }
  if (pattern.isSubDaily) return [oldClockMs];
  return dst.gap === "next" ? [shift.atMs] : [];
}
