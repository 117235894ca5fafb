// Wall-clock times in text, without a zone: `2026-12-01T06:00`. Used by config/ for `once` and by
// schedule/. Pure.

const wallPattern = /^(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2})(?::(\d{2}))?$/;

/**
 * Reads `2026-12-01T06:00` (or with a blank, or seconds) as the UTC instant of the same text, ms;
 * undefined for another text, a wrong date or a leap second.
 */
export function parseWallText(text: string): number | undefined {
  const match = wallPattern.exec(text);
  if (match === null) return undefined;
  const shown = `${match[1]}-${match[2]}-${match[3]}T${match[4]}:${match[5]}:${match[6] ?? "00"}`;
  const wallMs = Date.parse(`${shown}Z`);
  return Number.isNaN(wallMs) || new Date(wallMs).toISOString().slice(0, 19) !== shown ? undefined : wallMs;
}
