// How far back the failed list looks, by the clocks of a zone.
import { expect, it } from "vitest";
import { spanBegin } from "../../../src/queries/failed.ts";

it.each([
  ["at half past nine it began yesterday", "2026-11-23T08:30:00Z", "2026-11-22T17:00:00Z"],
  ["at 18:00 it begins anew", "2026-11-23T17:00:00Z", "2026-11-23T17:00:00Z"],
  ["a minute before it did not", "2026-11-23T16:59:00Z", "2026-11-22T17:00:00Z"],
  ["just after midnight of a day of 23 hours", "2026-03-28T23:10:00Z", "2026-03-28T17:00:00Z"],
  ["in the evening after 23 hours", "2026-03-29T15:59:00Z", "2026-03-28T17:00:00Z"],
  ["just after midnight that follows 23 hours", "2026-03-29T22:10:00Z", "2026-03-29T16:00:00Z"],
  ["in the evening after 25 hours", "2026-10-25T16:59:00Z", "2026-10-24T16:00:00Z"],
])("tonight since 18:00 in Vienna: %s", (_, now, begin) => {
  expect(new Date(spanBegin("18:00", Date.parse(now), "Europe/Vienna")).toISOString().slice(0, 19)).toBe(
    begin.slice(0, 19),
  );
});

it("looks back for so long, or to the first", () => {
  expect([spanBegin("24h", 86_400_000, "UTC"), spanBegin("7d", 604_800_001, "UTC")]).toEqual([0, 1]);
  expect(spanBegin("all", 0, "UTC")).toBe(Number.NEGATIVE_INFINITY);
});
