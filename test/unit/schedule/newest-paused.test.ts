import { describe, expect, it } from "vitest";
import type { Pause } from "../../../src/model/pause.ts";
import type { SlotRecord } from "../../../src/model/slot-record.ts";
import { newestDuePaused, newestPaused } from "../../../src/schedule/plan-slots.ts";
import { testPolicy } from "../../support/policies.ts";

const everyMs = 60_000;
const schedule = { kind: "every", everyMs, spreadMs: 0 } as const;
const policy = testPolicy({ catchUpWindowMs: 60_000 });
const after = { policy: "a", on: [], withinMs: 1, root: { name: "a", schedule } };
const follower = testPolicy({ schedule: undefined, after, catchUpWindowMs: 60_000 });
const record = (slotMs: number, state: SlotRecord["state"], detail = ""): SlotRecord => ({ slotMs, state, detail });
const paused = (sinceMs: number, untilMs: number | null = null): Pause => ({
  ...{ v: 1, scope: "all", name: "", note: "", actor: "ana", endedBy: null, sinceMs, untilMs },
});
/** A resume at this instant, of a pause from the beginning on unless others are given. */
const at = (nowMs: number, pauses = [paused(0, nowMs)]) => ({ nowMs, endMs: nowMs, pauses });

describe("the slot that resume --catch-up makes up for", () => {
  it("is the newest that a pause skipped, inside the catch-up window", () => {
    const records = [record(1, "skipped", "paused"), record(2, "skipped", "paused")];
    expect(newestPaused(policy, records, at(60_002))).toEqual(records[1]);
    expect(newestPaused(policy, records, at(60_003))).toBeUndefined();
  });

  it("is none when a later slot started, and is not hidden by a blackout", () => {
    const skipped = record(1, "skipped", "paused");
    expect(newestPaused(policy, [skipped, record(2, "started")], at(10))).toBeUndefined();
    expect(newestPaused(policy, [skipped, record(2, "skipped", "blackout")], at(10))).toEqual(skipped);
    expect(newestPaused(policy, [record(1, "skipped", "holiday")], at(10))).toBeUndefined();
    expect(newestPaused(policy, [], at(10))).toBeUndefined();
  });

  it("is none of a pause that ended before, unless others held on without a gap", () => {
    const records = [record(2, "skipped", "paused")];
    const of = (...pauses: Pause[]) => newestPaused(policy, records, at(10, pauses));
    expect(of(paused(6, 10), paused(1, 6))).toEqual(records[0]);
    expect(of(paused(1, 5), paused(3, 8), paused(8, 8), paused(7, 10), paused(4, 5))).toEqual(records[0]);
    expect(of(paused(6, 10), paused(1, 5))).toBeUndefined();
    const others = { ...paused(5, 6), scope: "policy", name: "other" } as const;
    expect(of(paused(6, 10), paused(1, 5), others)).toBeUndefined();
    expect(newestPaused(follower, records, at(10, [paused(6, 10)]))).toEqual(records[0]);
  });
});

describe("the paused slot that no scheduler has recorded yet", () => {
  const due = testPolicy({ schedule, catchUpWindowMs: 60_000 });
  const nowMs = 10 * everyMs + 1;

  it("is the newest that is due after the watermark, inside the catch-up window", () => {
    const moment = at(nowMs, [paused(0)]);
    expect(newestDuePaused(due, 9 * everyMs, moment)).toBe(10 * everyMs);
    expect(newestDuePaused(due, 0, { ...moment, nowMs: nowMs + 5_000 * everyMs })).toBe(5_010 * everyMs);
    const daily = { ...due, schedule: { ...schedule, everyMs: 1_440 * everyMs } };
    expect(newestDuePaused(daily, -1, moment)).toBeUndefined();
  });

  it("is none where all is recorded, no scheduler plans, or a slot will start", () => {
    const moment = at(nowMs, [paused(0)]);
    expect(newestDuePaused(due, 10 * everyMs, moment)).toBeUndefined();
    expect(newestDuePaused(due, undefined, moment)).toBeUndefined();
    expect(newestDuePaused(due, 0, at(nowMs, [paused(0, 10 * everyMs)]))).toBeUndefined();
    expect(newestDuePaused(follower, 0, moment)).toBeUndefined();
  });
});
