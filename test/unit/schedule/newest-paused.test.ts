import { describe, expect, it } from "vitest";
import type { Pause } from "../../../src/model/pause.ts";
import type { SlotRecord } from "../../../src/model/slot-record.ts";
import { newestDuePaused, newestPaused } from "../../../src/schedule/plan-slots.ts";
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

describe("the paused slot that no scheduler has recorded yet", () => {
  const everyMs = 60_000;
  const schedule = { kind: "every", everyMs, spreadMs: 0 } as const;
  const due = testPolicy({ schedule, catchUpWindowMs: 60_000 });
  const paused = (sinceMs: number, untilMs: number | null = null): Pause => ({
    ...{ v: 1, scope: "all", name: "", note: "", actor: "ana", endedBy: null, sinceMs, untilMs },
  });
  const nowMs = 10 * everyMs + 1;

  it("is the newest that is due after the watermark, inside the catch-up window", () => {
    const moment = { nowMs, pauses: [paused(0)] };
    expect(newestDuePaused(due, 9 * everyMs, moment)).toBe(10 * everyMs);
    expect(newestDuePaused(due, 0, { ...moment, nowMs: nowMs + 5_000 * everyMs })).toBe(5_010 * everyMs);
    const daily = { ...due, schedule: { ...schedule, everyMs: 1_440 * everyMs } };
    expect(newestDuePaused(daily, -1, moment)).toBeUndefined();
  });

  it("is none where all is recorded, no scheduler plans, or a slot will start", () => {
    const moment = { nowMs, pauses: [paused(0)] };
    expect(newestDuePaused(due, 10 * everyMs, moment)).toBeUndefined();
    expect(newestDuePaused(due, undefined, moment)).toBeUndefined();
    expect(newestDuePaused(due, 0, { nowMs, pauses: [paused(0, 10 * everyMs)] })).toBeUndefined();
    const root = { name: "a", schedule };
    const follower = testPolicy({ schedule: undefined, after: { policy: "a", on: [], withinMs: 1, root } });
    expect(newestDuePaused(follower, 0, moment)).toBeUndefined();
  });
});
