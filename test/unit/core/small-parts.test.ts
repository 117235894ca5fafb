import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { backoffMs, withTimeLimit } from "../../../src/core/clock.ts";
import { type Component, startInOrder, stopInReverse, together } from "../../../src/core/component.ts";
import { formatDuration, parseDuration } from "../../../src/core/duration.ts";
import { checkExpression, parseExpression } from "../../../src/core/expression.ts";
import { showNear } from "../../../src/core/instant.ts";
import { canonicalJson, hashText } from "../../../src/core/stable-hash.ts";

describe("durations", () => {
  it.each([
    ["250ms", 250],
    ["90s", 90_000],
    ["10m", 600_000],
    ["2h", 7_200_000],
    ["7d", 604_800_000],
  ])("reads %s", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(["", "5", "5 s", "-5m", "1.5h", "5y", "1h30m", "s"])("refuses %j and says how to write one", (text) => {
    expect(() => parseDuration(text)).toThrow("write a whole number and ms, s, m, h or d");
  });

  it("writes what it can read again", () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 900_000_000 }), (ms) => parseDuration(formatDuration(ms)) === ms));
  });
});

describe("instants near by", () => {
  const nowMs = Date.UTC(2026, 10, 23, 11);

  it.each([
    ["UTC", "05:30 UTC", "Wed 05:30 UTC", "2026-12-01 05:30 UTC"],
    ["Europe/Vienna", "06:30 CET", "Wed 06:30 CET", "2026-12-01 06:30 CET"],
    ["America/Adak", "Sun 19:30 GMT-10", "Tue 19:30 GMT-10", "2026-11-30 19:30 GMT-10"],
    ["America/New_York", "00:30 GMT-5", "Wed 00:30 GMT-5", "2026-12-01 00:30 GMT-5"],
  ])("have the day of the week within six days, and always the time, in %s", (timezone, today, soon, later) => {
    const shown = [23, 25, 31].map((day) => showNear(Date.UTC(2026, 10, day, 5, 30), timezone, nowMs));
    expect(shown).toEqual([today, soon, later]);
  });
});

describe("stable hashes", () => {
  it("do not depend on the order of keys", () => {
    expect(canonicalJson({ b: [1, { d: null, c: "x" }], a: true })).toBe('{"a":true,"b":[1,{"c":"x","d":null}]}');
    expect(hashText("syncline")).toBe(hashText("syncline"));
    expect(hashText("syncline")).toHaveLength(16);
  });

  it("see a key that is named like the prototype", () => {
    expect(canonicalJson(JSON.parse('{"b":1,"__proto__":{"d":2,"c":3}}'))).toBe('{"__proto__":{"c":3,"d":2},"b":1}');
  });

  it("survive any nesting", () => {
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level += 1) deep = [deep];
    expect(canonicalJson(deep).length).toBeLessThan(1_000);
  });
});

describe("backoff", () => {
  it("stays between zero and the growing ceiling, at most the cap", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), fc.double({ min: 0, max: 0.999, noNaN: true }), (retry, chance) => {
        const wait = backoffMs({ baseMs: 100, capMs: 5_000 }, retry, () => chance);
        return wait >= 0 && wait <= Math.min(5_000, 100 * 2 ** (retry - 1));
      }),
    );
  });
});

describe("expressions", () => {
  it("evaluate over what they speak of", () => {
    expect(
      parseExpression('item.state in ["Finished", "Failed"]', "item").evaluate({ item: { state: "Failed" } }),
    ).toBe(true);
    expect(
      parseExpression("count <= 20 && items.all(item, item.isActive)", "list").evaluate({
        count: 1n,
        items: [{ isActive: true }],
      }),
    ).toBe(true);
  });

  it("know which variables they use", () => {
    const { uses } = parseExpression("count <= 20", "list");
    expect([uses("count"), uses("items")]).toEqual([true, false]);
  });

  it("are refused for a variable that is not there, bad syntax, and too much of it", () => {
    expect(checkExpression("itm.state", "item")).toContain("itm");
    expect(checkExpression("count <", "list")).toBeDefined();
    expect(checkExpression(Array.from({ length: 400 }, () => "count").join(" + "), "list")).toBeDefined();
    expect(checkExpression("(".repeat(5_000), "list")).toBeDefined();
  });
});

describe("components", () => {
  const component = (name: string, story: string[], fails?: "start" | "stop"): Component => ({
    name,
    start: async () => {
      story.push(`start ${name}`);
      if (fails === "start") throw new Error(`${name} does not start`);
    },
    stop: async () => {
      story.push(`stop ${name}`);
      if (fails === "stop") throw new Error(`${name} does not stop`);
    },
  });

  it("stop in reverse what was started, when one does not start", async () => {
    const story: string[] = [];
    await expect(
      startInOrder([component("a", story), component("b", story), component("c", story, "start")]),
    ).rejects.toThrow("c does not start");
    expect(story).toEqual(["start a", "start b", "start c", "stop b", "stop a"]);
  });

  it("all stop, also when one of them fails to", async () => {
    const story: string[] = [];
    const parts = [
      component("a", story),
      component("b", story, "stop"),
      together("c", [component("c1", story), component("c2", story)]),
    ];
    await expect(stopInReverse(parts)).rejects.toThrow("b does not stop");
    expect(story).toEqual(["stop c1", "stop c2", "stop b", "stop a"]);
  });
});

describe("a deadline", () => {
  it("ends the wait with the named error, and leaves a fast answer alone", async () => {
    await expect(withTimeLimit(new Promise(() => {}), 5, () => new Error("too late"))).rejects.toThrow("too late");
    expect(await withTimeLimit(Promise.resolve("here"), 5_000, () => new Error("too late"))).toBe("here");
  });
});
