import { describe, expect, it } from "vitest";
import type { DeadlineState } from "../../../src/model/deadline.ts";
import { isMuted } from "../../../src/notify/mute.ts";
import { changeRule, NotifyFixture, notifiedPolicy, silentRule } from "../../support/notify-fixture.ts";

const failed = { status: "failed", reason: "run-failed" } as const;
const night = { fromMinute: 22 * 60, toMinute: 6 * 60, timezone: "Europe/Vienna", except: [] };
const hourMs = 3_600_000;

/** It is 13:00 in Vienna when a fixture begins. */
function quietFixture(except: readonly ("service-down" | "failing" | "recovered")[] = []) {
  const fixture = new NotifyFixture([notifiedPolicy("a"), notifiedPolicy("b")]);
  fixture.notifications = { groupWaitMs: 30_000, muteTiming: { ...night, except } };
  return fixture;
}

describe("mute timing", () => {
  it("hold at night, in the zone's own time, also past midnight", () => {
    const at = (time: string) => isMuted(night, Date.parse(time));
    expect(
      ["2026-11-21T20:59:59Z", "2026-11-21T21:00:00Z", "2026-11-22T04:59:59Z", "2026-11-22T05:00:00Z"].map(at),
    ).toEqual([false, true, true, false]);
    // In summer the same wall clock is an hour earlier.
    expect(["2026-07-21T19:59:59Z", "2026-07-21T20:00:00Z", "2026-07-22T04:00:00Z"].map(at)).toEqual([
      false,
      true,
      false,
    ]);
    const noon = { ...night, fromMinute: 12 * 60, toMinute: 13 * 60, timezone: "UTC" };
    expect(
      ["2026-11-21T11:59:59Z", "2026-11-21T12:00:00Z", "2026-11-21T13:00:00Z"].map((time) =>
        isMuted(noon, Date.parse(time)),
      ),
    ).toEqual([false, true, false]);
    expect(isMuted(undefined, 0)).toBe(false);
  });

  it("ends with each policy's latest state, in order, before anything newer", async () => {
    const fixture = quietFixture();
    await fixture.after(10 * hourMs);
    for (const [name, changes] of [
      ["a", failed],
      ["b", failed],
      ["a", {}],
      ["a", failed],
    ] as const) {
      fixture.ended(name, changes);
      await fixture.after(60_000);
    }
    expect(fixture.published()).toEqual([]);
    fixture.nowMs += 8 * hourMs;
    fixture.ended("b");
    await fixture.after(0);
    expect(fixture.published()).toEqual(["ops failing b", "ops failing a", "ops recovered b"]);
    expect(fixture.delivered.map(({ notice }) => notice.data["leftOut"])).toEqual([undefined, 2, undefined]);
    await fixture.after(60_000);
    expect(fixture.published()).toHaveLength(3);
  });

  it("keeps an unusual run apart: it hides no failure, and no failure hides it", async () => {
    const fixture = quietFixture();
    await fixture.after(10 * hourMs);
    fixture.ended("a", failed);
    fixture.ended("b", { unusual: ["duration"], usualMs: 1_000 });
    fixture.ended("b", failed);
    await fixture.after(60_000);
    await fixture.after(8 * hourMs);
    expect(fixture.published().toSorted()).toEqual(["ops failing a", "ops failing b", "ops unusual b"]);
  });

  it("keeps the unusual runs of two sync jobs apart", async () => {
    const fixture = quietFixture();
    fixture.policies = [notifiedPolicy("a", [{ ...silentRule, unusual: true }], { kind: "run", syncJobs: [42, 43] })];
    await fixture.after(10 * hourMs);
    for (const target of ["42", "43"]) fixture.ended("a", { target, unusual: ["duration"], usualMs: 1_000 });
    await fixture.after(60_000);
    await fixture.after(8 * hourMs);
    expect(fixture.published()).toEqual(["ops unusual a", "ops unusual a"]);
  });

  it("keeps drift, outcomes and deadlines apart: they end no failure", async () => {
    const fixture = quietFixture();
    const rule = { ...changeRule, every: true };
    const policy = notifiedPolicy("a", [rule], { kind: "run", syncJobs: [42, 43] });
    fixture.policies = [{ ...policy, expect: { kind: "within", withinMs: hourMs } }];
    await fixture.after(10 * hourMs);
    fixture.ended("a", failed);
    fixture.ended("a", { target: "43", reason: "drift-corrected" });
    await fixture.after(60_000);
    const atMs = fixture.nowMs;
    const late = { sinceMs: atMs, fromMs: atMs - hourMs, atMs, toldMs: atMs, why: "sync job 42 failed" };
    const state: DeadlineState = { v: 1, expect: "1h", judgedMs: atMs, late: null, sinks: [] };
    const findings = [
      { finding: "late", late } as const,
      { finding: "ended", late, endedWellMs: atMs + 60_000 } as const,
    ];
    fixture.judged = new Map([["a", { state, findings }]]);
    await fixture.after(60_000);
    await fixture.after(8 * hourMs);
    expect(fixture.titles().toSorted()).toEqual([
      "a: drift corrected, sync job 43",
      "a: failing (run-failed), sync job 42",
      "a: recovered, 1m after its deadline 22:01 UTC (was late)",
      "a: succeeded (drift-corrected), sync job 43",
    ]);
  });

  it("let the exceptions through, and then nothing older comes after them", async () => {
    const fixture = quietFixture(["recovered"]);
    await fixture.after(10 * hourMs);
    fixture.ended("a", failed);
    await fixture.after(60_000);
    fixture.ended("a");
    await fixture.after(60_000);
    expect(fixture.published()).toEqual(["ops recovered a"]);
    await fixture.after(8 * hourMs);
    expect(fixture.published()).toEqual(["ops recovered a"]);
  });

  it.each([
    [["recovered"] as const, undefined],
    [[], 2],
  ])("tell no staleness after the recovery that ended it (except: %j)", async (except, leftOut) => {
    const fixture = quietFixture(except);
    fixture.policies = [notifiedPolicy("a", [{ ...changeRule, stale: true }])];
    await fixture.after(10 * hourMs);
    fixture.ended("a", failed);
    await fixture.after(60_000);
    fixture.stale = new Map([["a", fixture.nowMs - hourMs]]);
    await fixture.after(60_000);
    fixture.stale = new Map();
    await fixture.after(60_000);
    fixture.ended("a");
    await fixture.after(60_000);
    await fixture.after(8 * hourMs);
    expect(fixture.published()).toEqual(["ops recovered a"]);
    expect(fixture.delivered[0]?.notice.data["leftOut"]).toBe(leftOut);
  });

  it("give back the end of staleness that was told before, beside that of a failure", async () => {
    const fixture = quietFixture();
    fixture.policies = [notifiedPolicy("a", [{ ...changeRule, stale: true }])];
    fixture.stale = new Map([["a", fixture.nowMs - hourMs]]);
    await fixture.after(60_000);
    fixture.stale = new Map();
    await fixture.after(10 * hourMs);
    for (const ending of [{}, failed, {}]) {
      fixture.ended("a", ending);
      await fixture.after(60_000);
    }
    await fixture.after(8 * hourMs);
    expect(fixture.delivered.map(({ notice: { kind, data } }) => [kind, data["before"], data["leftOut"]])).toEqual([
      ["stale", undefined, undefined],
      ["recovered", "stale", undefined],
      ["recovered", "failing", 1],
    ]);
  });

  it("keep staleness where masks could be read again, which is no success", async () => {
    const fixture = quietFixture();
    fixture.policies = [notifiedPolicy("m", [{ ...changeRule, stale: true }], { kind: "run", fromMasks: {} })];
    await fixture.after(10 * hourMs);
    fixture.ended("m", { target: "masks", status: "not-started", reason: "refused" });
    await fixture.after(60_000);
    fixture.stale = new Map([["m", fixture.nowMs - hourMs]]);
    await fixture.after(60_000);
    fixture.nowMs += 60_000;
    fixture.masksRead("m", ["42"]);
    await fixture.after(60_000);
    await fixture.after(8 * hourMs);
    expect(fixture.published()).toEqual(["ops stale m", "ops recovered m"]);
  });

  it("that are taken away give back what waited, also after a restart", async () => {
    const fixture = quietFixture();
    await fixture.after(10 * hourMs);
    fixture.ended("a", failed);
    await fixture.after(60_000);
    fixture.notifications = { groupWaitMs: 30_000, muteTiming: undefined };
    fixture.restart();
    await fixture.after(0);
    expect(fixture.published()).toEqual(["ops failing a"]);
  });

  it("tell only of the removal of a service that left while it was down", async () => {
    const fixture = quietFixture();
    await fixture.after(10 * hourMs);
    fixture.breakerMs = fixture.nowMs;
    await fixture.after(60_000);
    fixture.policies = [];
    await fixture.after(0);
    await fixture.after(120_000);
    await fixture.after(8 * hourMs);
    expect(fixture.published()).toEqual(["ops removed service:main"]);
  });

  it("keep a service's outage as one message", async () => {
    const fixture = quietFixture();
    fixture.policies = [
      notifiedPolicy("a", [changeRule, { ...silentRule, sink: "boss", failuresInRow: 1 }]),
      notifiedPolicy("b"),
    ];
    await fixture.after(10 * hourMs);
    fixture.breakerMs = fixture.nowMs;
    await fixture.after(60_000);
    fixture.breakerMs = undefined;
    await fixture.after(60_000);
    await fixture.after(60_000);
    await fixture.after(8 * hourMs);
    expect(fixture.published()).toEqual(["ops service-up service:main", "boss service-up service:main"]);
  });
});
