import { describe, expect, it } from "vitest";
import type { ItemMapping } from "../../../src/config/policy-set.ts";
import { createItemMapper } from "../../../src/feeds/mapping.ts";

const reader = createItemMapper("activities", { startedAt: "item.begun" });
const startedAt = (begun: unknown) => reader.read({ begun }).startedAtMs;

describe("whether an activity has ended", () => {
  it("is not known without its id: the item that ended is another one then", () => {
    const knows = (mapping: ItemMapping) => createItemMapper("activities", mapping).knows("finished");
    expect(knows({ finished: "item.done" })).toBe(false);
    expect(knows({ finished: "item.done", id: "item.id" })).toBe(true);
  });
});

describe("when an activity began", () => {
  it.each([
    ["2026-11-21T02:30:00Z", 1_795_228_200_000],
    ["2026-11-21T03:30:00.500+01:00", 1_795_228_200_500],
    [1_795_228_200, 1_795_228_200_000],
    [1_795_228_200_123, 1_795_228_200_123],
  ])("is read from %s", (text, instantMs) => {
    expect(startedAt(text)).toBe(instantMs);
  });

  it.each(["2026-11-21T02:30:00", "2026-11-21", "yesterday", "", 7, -1_795_228_200, 1e20, true, null, { at: 1 }])(
    "is not known from %s: there is no zone, or it is no instant",
    (value) => {
      expect(startedAt(value)).toBeUndefined();
    },
  );

  it.each(["0001-01-01T00:00:00Z", "1900-01-01T00:00:00+00:00", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])(
    "is not known yet from %s, the date of what has not begun, and nothing failed",
    (date) => {
      const mapping = createItemMapper("activities", { startedAt: "item.begun" });
      expect(mapping.read({ begun: date }).startedAtMs).toBeUndefined();
      expect(mapping.failures().count).toBe(0);
      const cel = createItemMapper("activities", { startedAt: "timestamp(item.begun)" });
      expect(cel.read({ begun: date }).startedAtMs).toBeUndefined();
      expect(cel.failures().count).toBe(0);
    },
  );

  it("may be a CEL timestamp", () => {
    const cel = createItemMapper("activities", { startedAt: "timestamp(item.begun)" });
    expect(cel.read({ begun: "2026-11-21T02:30:00Z" }).startedAtMs).toBe(1_795_228_200_000);
  });
});
