import { describe, expect, it } from "vitest";
import type { SlotRecord } from "../../../src/model/slot-record.ts";
import { newestPaused } from "../../../src/schedule/plan-slots.ts";
import { testPolicy } from "../../support/policies.ts";

const policy = testPolicy({ catchUpWindowMs: 60_000 });
const record = (slotMs: number, state: SlotRecord["state"], detail = ""): SlotRecord => ({ slotMs, state, detail });

describe("the slot that resume --catch-up makes up for", () => {
  it("is the newest that a pause skipped, inside the catch-up window", () => {
    const records = [record(1, "skipped", "paused"), record(2, "skipped", "paused")];
    expect(newestPaused(policy, records, 60_002)).toEqual(records[1]);
    expect(newestPaused(policy, records, 60_003)).toBeUndefined();
  });

  it("is none when a later slot started, and is not hidden by a blackout", () => {
    const paused = record(1, "skipped", "paused");
    expect(newestPaused(policy, [paused, record(2, "started")], 10)).toBeUndefined();
    expect(newestPaused(policy, [paused, record(2, "skipped", "blackout")], 10)).toEqual(paused);
    expect(newestPaused(policy, [record(1, "skipped", "holiday")], 10)).toBeUndefined();
    expect(newestPaused(policy, [], 10)).toBeUndefined();
  });
});
