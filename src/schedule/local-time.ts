// Parses a local time of a zone into instants. Pure; called by `explain`, for operators who think
// in their own zone.

const localPattern = /^(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2})(?::(\d{2}))?$/;

/** A local time of a zone. */
export interface WallTime {
  /**
   * Every instant (milliseconds UTC) at which clocks show it: none in a gap, two in a repeated
   * hour.
   */
  readonly instants: readonly number[];
  /** The first instant; in a gap, the instant by the clock from before it. */
  readonly nearMs: number;
}

/**
 * Reads `2027-03-28T02:30` (or with a blank, or seconds) in a zone; undefined when the text is no
 * such date and time.
 */
export function parseWallTime(text: string, timezone: string): WallTime | undefined {
  const match = localPattern.exec(text);
  if (match === null) return undefined;
  const wall = `${match[1]}-${match[2]}-${match[3]} ${match[4]}:${match[5]}:${match[6] ?? "00"}`;
  const asUtcMs = Date.parse(`${wall.replace(" ", "T")}Z`);
  if (Number.isNaN(asUtcMs) || showWall(asUtcMs, "UTC") !== wall) return undefined;
  // The offset of that time also holds a day before or after: zones do not shift twice in two days.
  const offsets = [-86_400_000, 86_400_000].map((aside) => offsetMs(asUtcMs + aside, timezone));
  const candidates = [...new Set(offsets)].map((offset) => asUtcMs - offset).sort((a, b) => a - b);
  const instants = candidates.filter((instantMs) => showWall(instantMs, timezone) === wall);
  return { instants, nearMs: instants[0] ?? asUtcMs - (offsets[0] ?? 0) };
}

function offsetMs(instantMs: number, timezone: string): number {
  return Date.parse(`${showWall(instantMs, timezone).replace(" ", "T")}Z`) - Math.floor(instantMs / 1_000) * 1_000;
}

function showWall(instantMs: number, timezone: string): string {
  return new Date(instantMs).toLocaleString("sv-SE", { timeZone: timezone });
}
