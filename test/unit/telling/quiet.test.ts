import { describe, expect, it } from "vitest";
import { isQuiet } from "../../../src/telling/quiet.ts";
import { changeRule, silentRule, TellingHouse, toldPolicy } from "../../support/telling-house.ts";

const failed = { status: "failed", reason: "run-failed" } as const;
const night = { fromMinute: 22 * 60, toMinute: 6 * 60, timezone: "Europe/Vienna", except: [] };
const hourMs = 3_600_000;

/** It is 13:00 in Vienna when a house begins. */
function quietHouse(except: readonly ("service-down" | "failing" | "recovered")[] = []) {
  const house = new TellingHouse([toldPolicy("a"), toldPolicy("b")]);
  house.telling = { groupForMs: 30_000, quietHours: { ...night, except } };
  return house;
}

describe("quiet hours", () => {
  it("hold at night, in the zone's own time, also past midnight", () => {
    const at = (time: string) => isQuiet(night, Date.parse(time));
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
        isQuiet(noon, Date.parse(time)),
      ),
    ).toEqual([false, true, false]);
    expect(isQuiet(undefined, 0)).toBe(false);
  });

  it("end with the latest state of each policy, in the order of what happened, before anything newer", async () => {
    const house = quietHouse();
    await house.after(10 * hourMs);
    for (const [name, changes] of [
      ["a", failed],
      ["b", failed],
      ["a", {}],
      ["a", failed],
    ] as const) {
      house.ended(name, changes);
      await house.after(60_000);
    }
    expect(house.told()).toEqual([]);
    house.nowMs += 8 * hourMs;
    house.ended("b");
    await house.after(0);
    expect(house.told()).toEqual(["ops failing b", "ops failing a", "ops recovered b"]);
    expect(house.delivered.map(({ notice }) => notice.data["leftOut"])).toEqual([undefined, 2, undefined]);
    await house.after(60_000);
    expect(house.told()).toHaveLength(3);
  });

  it("let the exceptions through, and then nothing older comes after them", async () => {
    const house = quietHouse(["recovered"]);
    await house.after(10 * hourMs);
    house.ended("a", failed);
    await house.after(60_000);
    house.ended("a");
    await house.after(60_000);
    expect(house.told()).toEqual(["ops recovered a"]);
    await house.after(8 * hourMs);
    expect(house.told()).toEqual(["ops recovered a"]);
  });

  it("that are taken away give back what waited, also after a restart", async () => {
    const house = quietHouse();
    await house.after(10 * hourMs);
    house.ended("a", failed);
    await house.after(60_000);
    house.telling = { groupForMs: 30_000, quietHours: undefined };
    house.restart();
    await house.after(0);
    expect(house.told()).toEqual(["ops failing a"]);
  });

  it("keep a service's outage as one message", async () => {
    const house = quietHouse();
    house.policies = [
      toldPolicy("a", [changeRule, { ...silentRule, sink: "boss", failuresInRow: 1 }]),
      toldPolicy("b"),
    ];
    await house.after(10 * hourMs);
    house.breakerMs = house.nowMs;
    await house.after(60_000);
    house.breakerMs = undefined;
    await house.after(60_000);
    await house.after(60_000);
    await house.after(8 * hourMs);
    expect(house.told()).toEqual(["ops service-up service:main", "boss service-up service:main"]);
  });
});
