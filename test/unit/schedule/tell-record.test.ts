import { describe, expect, it } from "vitest";
import { tellNoRecord, tellRecord } from "../../../src/schedule/tell-record.ts";
import { testPolicy } from "../../support/policies.ts";

const tell = (state: "started" | "skipped" | "missed" | "coalesced", detail: string, note?: string) =>
  tellRecord(testPolicy(), { slotMs: 0, state, detail, ...(note === undefined ? {} : { note }) });

describe("what a record means", () => {
  it("is said in one sentence", () => {
    expect(tell("started", "")).toBe("started");
    expect(tell("started", "caught-up", "release; resumed by ada@desk")).toBe(
      "skipped by a pause at first, then started by resume --catch-up: release; resumed by ada@desk",
    );
    expect(tell("skipped", "holiday", "2026-12-25")).toBe("not started: it fell on a holiday: 2026-12-25");
    expect(tell("skipped", "paused", "release (ada@desk)")).toBe("not started: paused: release (ada@desk)");
    expect(tell("missed", "outside-window")).toBe(
      "not started: noticed later than its catch-up window allows (now 5s)",
    );
  });
});

describe("a slot without a record", () => {
  const minute = 60_000;
  const known = { slotMs: 100 * minute, nowMs: 200 * minute, markMs: 150 * minute, keptSinceMs: 0 };

  it("is not due, not known, not planned or lost", () => {
    expect(tellNoRecord({ ...known, nowMs: 0 })).toBe("not due yet: in 100m");
    expect(tellNoRecord({ ...known, nowMs: 99.5 * minute })).toBe("not due yet: in 30s");
    expect(tellNoRecord({ ...known, slotMs: 200 * 86_400_000 })).toBe("not due yet: in 200d");
    expect(tellNoRecord({ ...known, markMs: undefined })).toContain("no scheduler plans this policy");
    expect(tellNoRecord({ ...known, keptSinceMs: 100 * minute })).toContain("kept since 1970-01-01T01:40:00.000Z");
    expect(tellNoRecord({ ...known, markMs: 99 * minute })).toContain("no scheduler has looked since");
    expect(tellNoRecord({ ...known, markMs: 99 * minute, nowMs: 100.5 * minute })).toContain("within seconds");
    expect(tellNoRecord(known)).toContain("lost or deleted");
  });
});
