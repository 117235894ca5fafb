import { describe, expect, it } from "vitest";
import { describeNoRecord, describeRecord } from "../../../src/schedule/explain-slot.ts";
import { testPolicy } from "../../support/policies.ts";

const tell = (state: "started" | "skipped" | "missed" | "coalesced", detail: string, note?: string) =>
  describeRecord(testPolicy(), { slotMs: 0, state, detail, ...(note === undefined ? {} : { note }) });

describe("what a record means", () => {
  it("is said in one sentence", () => {
    expect(tell("started", "")).toBe("started");
    expect(tell("started", "caught-up", "release; resumed by ada@desk")).toBe(
      "skipped by a pause at first, then started by resume --catch-up: release; resumed by ada@desk",
    );
    expect(tell("started", "released", "resumed by ada@desk")).toBe(
      "skipped in quarantine at first, then started by resume --catch-up: resumed by ada@desk",
    );
    expect(tell("skipped", "holiday", "2026-12-25")).toBe("not started: it fell on a holiday (2026-12-25)");
    expect(tell("skipped", "paused", "release (ada@desk)")).toBe("not started: paused: release (ada@desk)");
    // The window of this policy is 5 s; a slot may be 30 s late in any case.
    expect(tell("missed", "outside-window")).toBe(
      "not started: noticed later than its catch-up window allows (now 30s)",
    );
    expect(tell("missed", "redis-loss")).toBe("may have started: Redis lost what was written then; not started again");
    expect(tell("missed", "left-out")).toBe("not started: its predecessor's slot was planned without it");
  });
});

describe("a slot without a record", () => {
  const minute = 60_000;
  const known = {
    slotMs: 100 * minute,
    nowMs: 200 * minute,
    watermarkMs: 150 * minute,
    keptSinceMs: 0,
    hasScheduler: true,
  };

  it("is not due, not known, not planned or lost", () => {
    expect(describeNoRecord({ ...known, nowMs: 0 })).toBe("not due yet: in 100m");
    expect(describeNoRecord({ ...known, nowMs: 99.5 * minute })).toBe("not due yet: in 30s");
    expect(describeNoRecord({ ...known, slotMs: 200 * 86_400_000 })).toBe("not due yet: in 200d");
    expect(describeNoRecord({ ...known, watermarkMs: undefined })).toContain("no scheduler plans this policy");
    expect(describeNoRecord({ ...known, keptSinceMs: 100 * minute })).toContain("kept since 1970-01-01T01:40:00.000Z");
    expect(describeNoRecord({ ...known, watermarkMs: 99 * minute })).toContain("no scheduler has planned since");
    expect(describeNoRecord({ ...known, watermarkMs: 99 * minute, nowMs: 100.5 * minute })).toContain("within seconds");
    expect(describeNoRecord(known)).toContain("lost or deleted");
  });

  it("promises nothing while no scheduler is alive", () => {
    const alone = { ...known, watermarkMs: 99 * minute, hasScheduler: false };
    expect(describeNoRecord({ ...alone, nowMs: 100.5 * minute })).toBe("due, and not planned: no scheduler is alive");
    expect(describeNoRecord(alone)).toBe("due, and not planned: no scheduler is alive");
    expect(describeNoRecord({ ...alone, nowMs: 99.5 * minute })).toBe(
      "not due yet: in 30s, if a scheduler is alive then: none is now",
    );
  });
});
