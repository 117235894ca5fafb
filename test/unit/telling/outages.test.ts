import { describe, expect, it } from "vitest";
import type { Outcome } from "../../../src/tasks/outcome.ts";
import { beginMs, changeRule, silentRule, TellingHouse, toldPolicy } from "../../support/telling-house.ts";

const failed: Partial<Outcome> = { status: "failed", reason: "run-failed" };
const unreachable: Partial<Outcome> = { status: "failed", reason: "unreachable" };
const names = Array.from({ length: 1_000 }, (_, index) => `p${index}`);

describe("the outage of a service", () => {
  it("is one message for a thousand policies, and one when it is over", async () => {
    const house = new TellingHouse(names.map((name) => toldPolicy(name)));
    for (const [index, name] of names.entries()) {
      house.ended(name, unreachable);
      if (index % 100 === 99) await house.after(2_000);
    }
    await house.after(30_000);
    expect(house.told()).toEqual(["ops service-down service:main"]);
    expect(house.delivered[0]?.notice).toMatchObject({
      title: "service main is down: 1000 policies fail (p0, p1, p2, …)",
      policy: null,
      at: "2026-11-21T12:00:00.000Z",
      data: { policiesCount: 1_000, policies: names.slice(0, 20), reason: "unreachable", breaker: false },
    });
    for (const name of names) house.ended(name);
    await house.after(1_000);
    await house.after(60_000);
    expect(house.told()).toEqual(["ops service-down service:main", "ops service-up service:main"]);
    expect(house.delivered[1]?.notice.title).toBe("service main is up again after 50s; 1000 policies had failed");
    expect(house.parts.policies.size).toBe(0);
  });

  it("is told by the breaker alone, before any policy has failed; lost answers and late tasks are part of it", async () => {
    const house = new TellingHouse(names.slice(0, 5).map((name) => toldPolicy(name)));
    house.breakerMs = beginMs;
    await house.after(20_000);
    expect(house.told()).toEqual([]);
    await house.after(10_000);
    expect(house.delivered.map(({ notice }) => notice.title)).toEqual([
      "service main is down: no policy has failed yet",
    ]);
    house.ended("p0", { status: "unknown", reason: "answer-lost" });
    house.ended("p1", { status: "missed", reason: "throttled" });
    await house.after(3_600_000);
    house.breakerMs = undefined;
    house.ended("p2", { status: "missed", reason: "unreachable" });
    await house.after(5_000);
    await house.after(60_000);
    expect(house.told()).toEqual(["ops service-down service:main", "ops service-up service:main"]);
    expect(house.delivered[1]?.notice.data["policiesCount"]).toBe(3);
  });

  it.each(["answered", "seen-active", "not-active", "deleted", "still-there", "applied"] as const)(
    "is over also where all that shows the service alive is an ending with the reason %s",
    async (reason) => {
      const house = new TellingHouse([toldPolicy("a"), toldPolicy("b")]);
      house.ended("a", unreachable);
      house.ended("b", unreachable);
      await house.after(30_000);
      for (const name of ["a", "b"]) house.ended(name, { reason });
      await house.after(1_000);
      await house.after(60_000);
      expect(house.told()).toEqual(["ops service-down service:main", "ops service-up service:main"]);
    },
  );

  it("is over only when the service stays well for a while", async () => {
    const house = new TellingHouse([toldPolicy("a"), toldPolicy("b")]);
    house.ended("a", unreachable);
    house.ended("b", unreachable);
    await house.after(30_000);
    for (let round = 0; round < 5; round += 1) {
      house.ended("a");
      await house.after(10_000);
      house.ended("a", unreachable);
      await house.after(60_000);
    }
    expect(house.told()).toEqual(["ops service-down service:main"]);
    house.ended("a");
    await house.after(30_000);
    expect(house.told()).toEqual(["ops service-down service:main", "ops service-up service:main"]);
  });

  it("tells anew of a policy that still fails when it is over, and of the next outage", async () => {
    const house = new TellingHouse([toldPolicy("a"), toldPolicy("b")]);
    const down = async () => {
      house.ended("a", unreachable);
      house.ended("b", unreachable);
      await house.after(30_000);
    };
    await down();
    house.ended("a");
    await house.after(30_000);
    house.ended("b", failed);
    await house.after(30_000);
    await down();
    expect(house.told()).toEqual([
      "ops service-down service:main",
      "ops service-up service:main",
      "ops failing b",
      "ops service-down service:main",
    ]);
    expect(new Set(house.delivered.map(({ notice }) => notice.id)).size).toBe(4);
  });

  it("leaves alone what failed by itself before, and says its end", async () => {
    const house = new TellingHouse([toldPolicy("a"), toldPolicy("b"), toldPolicy("c")]);
    house.ended("a", failed);
    for (const name of ["a", "b", "c"]) {
      await house.after(1_000);
      house.ended(name, unreachable);
    }
    await house.after(60_000);
    for (const name of ["a", "b", "c"]) house.ended(name);
    await house.after(60_000);
    expect(house.told()).toEqual([
      "ops failing a",
      "ops service-down service:main",
      "ops recovered a",
      "ops service-up service:main",
    ]);
  });

  it("goes to every sink that hears of failures, and to no other", async () => {
    const rules = [
      changeRule,
      { ...silentRule, sink: "boss", failuresInRow: 3 },
      { ...silentRule, sink: "log", every: true },
    ];
    const house = new TellingHouse([toldPolicy("a", rules), toldPolicy("b")]);
    house.breakerMs = beginMs;
    await house.after(30_000);
    expect(house.told()).toEqual(["ops service-down service:main", "boss service-down service:main"]);
  });

  it("keeps silences quiet while it lasts", async () => {
    const house = new TellingHouse([toldPolicy("a", [changeRule, { ...silentRule, sink: "boss", silence: true }])]);
    house.breakerMs = beginMs;
    await house.after(30_000);
    house.silences = new Map([["a", beginMs - 60_000]]);
    await house.after(60_000);
    expect(house.told()).toEqual(["ops service-down service:main"]);
  });
});

describe("a failure that may be the service's", () => {
  it("is the policy's own when nothing else fails, told when the window closes", async () => {
    const house = new TellingHouse([toldPolicy("a"), toldPolicy("b")]);
    house.ended("a", unreachable);
    await house.after(29_000);
    expect(house.told()).toEqual([]);
    await house.after(5_000);
    expect(house.delivered.map(({ notice }) => notice.title)).toEqual(["a: failing (unreachable), sync job 42"]);
    house.ended("a", unreachable);
    await house.after(60_000);
    house.ended("a");
    await house.after(60_000);
    expect(house.told()).toEqual(["ops failing a", "ops recovered a"]);
  });

  it("is the policies' own when as many others go well", async () => {
    const house = new TellingHouse(names.slice(0, 10).map((name) => toldPolicy(name)));
    for (const name of names.slice(0, 3)) house.ended(name, { status: "failed", reason: "server-error" });
    for (const name of names.slice(3, 6)) house.ended(name);
    await house.after(30_000);
    expect(house.told()).toEqual(["ops failing p0", "ops failing p1", "ops failing p2"]);
  });

  it("never hides what is the policy's own doing", async () => {
    const house = new TellingHouse([toldPolicy("a"), toldPolicy("b"), toldPolicy("c")]);
    house.ended("a", unreachable);
    house.ended("b", unreachable);
    house.ended("c", failed);
    await house.after(1_000);
    expect(house.told()).toEqual(["ops failing c"]);
  });
});
