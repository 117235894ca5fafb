// Shows instants: to machines as ISO 8601, to people with their zone.

/** An instant for machines: ISO 8601 in UTC; null if there is none. */
export function toIso(instantMs: number | undefined): string | null {
  return instantMs === undefined ? null : new Date(instantMs).toISOString();
}

/** An instant as people read it: `2026-11-21 05:30:00Z`, or in a zone `2026-11-21 06:30:00 CET`. */
export function showInstant(instantMs: number, timezone?: string): string {
  if (timezone === undefined) return `${new Date(instantMs).toISOString().slice(0, 19).replace("T", " ")}Z`;
  const date = new Date(instantMs);
  const day = date.toLocaleString("sv-SE", { timeZone: timezone });
  const zone = date.toLocaleString("en-GB", { timeZone: timezone, timeZoneName: "short" }).split(" ").at(-1) ?? "";
  return `${day} ${zone}`;
}
