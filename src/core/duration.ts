// Durations ("30s", "10m", "2h") and wall-clock times ("2026-12-01T06:00") as people write them.
// A bare number is no duration: its unit would be a guess.

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof unitMs;

/** A day of 24 hours, in milliseconds. */
export const dayMs = unitMs.d;

/** The form of a duration: a whole number and one unit of ms, s, m, h, d. */
export const durationPattern = /^(\d{1,9})(ms|s|m|h|d)$/;

/** Reads a duration such as "90s" into milliseconds. @throws RangeError for another text. */
export function parseDuration(text: string): number {
  const match = durationPattern.exec(text);
  if (match === null) throw new RangeError(`"${text}" is not a duration: write a whole number and ms, s, m, h or d`);
  return Number(match[1]) * unitMs[match[2] as Unit];
}

/** Writes milliseconds in the largest unit without a fraction: 90000 → "90s", 7200000 → "2h". */
export function formatDuration(durationMs: number): string {
  const whole = Math.round(durationMs);
  for (const unit of ["d", "h", "m", "s"] as const) {
    if (whole >= unitMs[unit] && whole % unitMs[unit] === 0) return `${whole / unitMs[unit]}${unit}`;
  }
  return `${whole}ms`;
}

/** Writes a duration for people: in the largest unit of which there are at least two. */
export function formatRoughly(durationMs: number, round: (units: number) => number = Math.ceil): string {
  const unit = [unitMs.d, unitMs.h, unitMs.m].find((one) => durationMs >= 2 * one) ?? unitMs.s;
  return formatDuration(Math.max(0, round(durationMs / unit)) * unit);
}

/** Writes how long something took: `850ms`, `41s`, `2m30s`, `3h05m`. */
export function formatTook(durationMs: number): string {
  if (durationMs < unitMs.s) return `${Math.round(durationMs)}ms`;
  const seconds = Math.round(durationMs / unitMs.s);
  if (seconds < 120) return `${seconds}s`;
  const two = (number: number) => String(number).padStart(2, "0");
  if (seconds < 7_200) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3_600)}h${two(Math.floor((seconds % 3_600) / 60))}m`;
}

/** To what usual durations are rounded: seconds, and minutes from ten minutes on. */
export function coarseUnitMs(durationMs: number): number {
  return durationMs < 10 * unitMs.m ? unitMs.s : unitMs.m;
}

const wallPattern = /^(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2})(?::(\d{2}))?$/;

/** Reads a wall-clock time as the UTC instant of the same text, ms; undefined for a wrong one. */
export function parseWallText(text: string): number | undefined {
  const match = wallPattern.exec(text);
  if (match === null) return undefined;
  const shown = `${match[1]}-${match[2]}-${match[3]}T${match[4]}:${match[5]}:${match[6] ?? "00"}`;
  const wallMs = Date.parse(`${shown}Z`);
  return Number.isNaN(wallMs) || new Date(wallMs).toISOString().slice(0, 19) !== shown ? undefined : wallMs;
}
