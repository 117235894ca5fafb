// Durations in YAML and on the command line ("30s", "10m", "2h"). Used by config/ and cli/. A bare
// number is an error: its unit would be a guess.

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof unitMs;

/** The form of a duration: a whole number and one unit of ms, s, m, h, d. */
export const durationPattern = /^(\d{1,9})(ms|s|m|h|d)$/;

/**
 * Reads a duration such as "90s" into milliseconds.
 * @throws RangeError when the text is not a whole number followed by ms, s, m, h or d.
 */
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
