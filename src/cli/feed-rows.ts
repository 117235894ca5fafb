// What `syncline feed` prints of an item: the facts that the feed book keeps, in one order for people, JSON lines and CSV. Pure.
import type { SeenItem } from "../store/seen-item.ts";
import { showInstant } from "./table.ts";

/** The columns of an export of facts. */
export const factColumns = ["firstSeen", "id", "syncJobId", "startedAt", "finished", "succeeded", "label"] as const;

/** An item's facts by column; null where nothing is known. Instants as ISO 8601 in UTC. */
export function toFactRow(item: SeenItem): Readonly<Record<(typeof factColumns)[number], string | boolean | null>> {
  const instant = (ms: number | undefined) =>
    ms === undefined || Number.isNaN(new Date(ms).getTime()) ? null : new Date(ms).toISOString();
  return {
    firstSeen: instant(item.seenAtMs),
    id: item.id,
    syncJobId: item.syncJobId ?? null,
    startedAt: instant(item.startedAtMs),
    finished: item.finished ?? null,
    succeeded: item.succeeded ?? null,
    label: item.label ?? null,
  };
}

/** One line for people: when it was discovered, what it is, whose, and how it stands. */
export function toFactLine(item: SeenItem): string {
  const { id, syncJobId, finished, succeeded, label, seenAtMs } = item;
  const state =
    finished === undefined
      ? ""
      : finished
        ? succeeded === false
          ? "failed"
          : succeeded
            ? "succeeded"
            : "finished"
        : "open";
  const parts = [
    seenAtMs === undefined ? "-".padEnd(20) : showInstant(seenAtMs),
    id,
    syncJobId === undefined ? "" : `sync job ${syncJobId}`,
    state,
    label ?? "",
  ];
  return parts
    .filter((part) => part !== "")
    .join("  ")
    .replaceAll(/[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu, " ");
}
