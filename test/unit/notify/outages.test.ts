import { describe, expect, it } from "vitest";
import type { Outcome } from "../../../src/model/outcome.ts";
import { beginMs, changeRule, NotifyFixture, notifiedPolicy, silentRule } from "../../support/notify-fixture.ts";

const failed: Partial<Outcome> = { status: "failed", reason: "run-failed" };
const unreachable: Partial<Outcome> = { status: "failed", reason: "unreachable" };
const names = Array.from({ length: 1_000 }, (_, index) => `p${index}`);

describe("the outage of a service", () => {
  it("is one message for a thousand policies, and one when it is over", async () => {
    const fixture = new NotifyFixture(names.map((name) => notifiedPolicy(name)));
    for (const [index, name] of names.entries()) {
      fixture.ended(name, unreachable);
      if (index % 100 === 99) await fixture.after(2_000);
    }
    await fixture.after(30_000);
    expect(fixture.published()).toEqual(["ops service-down service:main"]);
    expect(fixture.delivered[0]?.notice).toMatchObject({
      title: "service main is down: 1000 policies fail (p0, p1, p2, …)",
      policy: null,
      at: "2026-11-21T12:00:00.000Z",
      data: { policiesCount: 1_000, policies: names.slice(0, 20), reason: "unreachable", breaker: false },
    });
    for (const name of names) fixture.ended(name);
    await fixture.after(1_000);
    await fixture.after(60_000);
    expect(fixture.published()).toEqual(["ops service-down service:main", "ops service-up service:main"]);
    expect(fixture.delivered[1]?.notice.title).toBe("service main is up again after 50s; 1000 policies had failed");
    expect(fixture.parts.policies.size).toBe(0);
  });

  it("is told by the breaker alone, before a policy fails; late tasks belong to it", async () => {
    const fixture = new NotifyFixture(names.slice(0, 5).map((name) => notifiedPolicy(name)));
    fixture.breakerMs = beginMs;
    await fixture.after(20_000);
    expect(fixture.published()).toEqual([]);
    await fixture.after(10_000);
    expect(fixture.delivered.map(({ notice }) => notice.title)).toEqual([
      "service main is down: its policies wait for it, and none has failed yet",
    ]);
    fixture.ended("p0", { status: "unknown", reason: "answer-lost" });
    fixture.ended("p1", { status: "missed", reason: "throttled" });
    await fixture.after(3_600_000);
    fixture.breakerMs = undefined;
    fixture.ended("p2", { status: "missed", reason: "unreachable" });
    await fixture.after(5_000);
    await fixture.after(60_000);
    expect(fixture.published()).toEqual(["ops service-down service:main", "ops service-up service:main"]);
    expect(fixture.delivered[1]?.notice.data["policiesCount"]).toBe(3);
  });

  it.each(["answered", "seen-active", "not-active", "deleted", "still-there", "applied"] as const)(
    "ends also where the only sign of life is an ending with the reason %s",
    async (reason) => {
      const fixture = new NotifyFixture([notifiedPolicy("a"), notifiedPolicy("b")]);
      fixture.ended("a", unreachable);
      fixture.ended("b", unreachable);
      await fixture.after(30_000);
      for (const name of ["a", "b"]) fixture.ended(name, { reason });
      await fixture.after(1_000);
      await fixture.after(60_000);
      expect(fixture.published()).toEqual(["ops service-down service:main", "ops service-up service:main"]);
    },
  );

  it("is over only when the service stays well for a while", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("a"), notifiedPolicy("b")]);
    fixture.ended("a", unreachable);
    fixture.ended("b", unreachable);
    await fixture.after(30_000);
    for (let round = 0; round < 5; round += 1) {
      fixture.ended("a");
      await fixture.after(10_000);
      fixture.ended("a", unreachable);
      await fixture.after(60_000);
    }
    expect(fixture.published()).toEqual(["ops service-down service:main"]);
    fixture.ended("a");
    await fixture.after(30_000);
    expect(fixture.published()).toEqual(["ops service-down service:main", "ops service-up service:main"]);
  });

  it("is over although a few never end well, and each of them is told", async () => {
    const [well, never] = [names.slice(0, 40), ["x", "y", "z"]];
    const fixture = new NotifyFixture([...well, ...never, "a", "b", "nightly"].map((name) => notifiedPolicy(name)));
    const outage = ["ops service-down service:main", "ops service-up service:main"];
    for (const name of ["a", "b", "z"]) fixture.ended(name, unreachable);
    await fixture.after(30_000);
    for (let second = 1; second <= 600; second += 1) {
      for (const name of ["a", "b", ...well].filter((_, index) => index % 20 === second % 20)) fixture.ended(name);
      for (const name of never.filter((_, index) => second % 20 === 5 * index))
        fixture.ended(name, { status: "unknown", reason: "server-error" });
      if (second === 25) fixture.ended("nightly", { status: "unknown", reason: "no-evidence" });
      await fixture.after(1_000);
    }
    expect(fixture.published().slice(0, 2)).toEqual(outage);
    const told = [...never, "nightly"].map((name) => `ops failing ${name}`);
    expect(fixture.published().toSorted()).toEqual([...outage, ...told].toSorted());
  });

  it("is over although one policy alone goes on failing more often than others end", async () => {
    const fixture = new NotifyFixture(["a", "b", "c", "nightly"].map((name) => notifiedPolicy(name)));
    const fail = (name: string) => fixture.ended(name, { status: "failed", reason: "server-error" });
    for (const name of ["a", "b", "c"]) fail(name);
    await fixture.after(30_000);
    fixture.ended("b");
    for (const name of ["a", "b"]) fail(name);
    await fixture.after(30_000);
    fixture.ended("b");
    for (let second = 0; second < 60; second += 10) {
      fail("c");
      if (second === 10) fixture.ended("nightly", { status: "missed", reason: "throttled" });
      await fixture.after(10_000);
    }
    await fixture.after(10_000);
    fixture.ended("nightly", { status: "unknown", reason: "no-evidence" });
    await fixture.after(30_000);
    const outage = ["ops service-down service:main", "ops service-up service:main"];
    expect(fixture.published()).toEqual([...outage, "ops failing c", "ops failing nightly"]);
  });

  it.each([
    ["every other end fails", (policy: number, round: number) => (policy + round) % 2 === 0],
    ["two in five ends fail", (policy: number, round: number) => (policy * 2 + round) % 5 < 2],
    ["only one policy in three ends well", (policy: number) => policy % 3 > 0],
  ])("lasts while %s", async (_, fails) => {
    const ten = names.slice(0, 10);
    const fixture = new NotifyFixture(ten.map((name) => notifiedPolicy(name)));
    for (const name of ten) fixture.ended(name, unreachable);
    await fixture.after(30_000);
    for (let round = 0; round < 60; round += 1) {
      for (const [policy, name] of ten.entries()) {
        fixture.ended(name, fails(policy, round) ? unreachable : {});
        await fixture.after(1_000);
      }
    }
    expect(fixture.published()).toEqual(["ops service-down service:main"]);
  });

  it("counts only what has ended since the service seems up", async () => {
    const fixture = new NotifyFixture(names.map((name) => notifiedPolicy(name)));
    const fail = (count: number) => {
      for (const name of names.slice(0, count)) fixture.ended(name, unreachable);
    };
    const othersEnd = async () => {
      for (const name of names.slice(201)) fixture.ended(name);
      await fixture.after(1_000);
    };
    fail(201);
    await othersEnd();
    await fixture.after(30_000);
    fail(150);
    await fixture.after(60_000);
    await othersEnd();
    fixture.breakerMs = fixture.nowMs;
    await fixture.after(5_000);
    fixture.breakerMs = undefined;
    await fixture.after(5_000);
    fail(150);
    await fixture.after(60_000);
    expect(fixture.published()).toEqual(["ops service-down service:main"]);
  });

  it("tells anew of a policy that still fails when it is over, and of the next outage", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("a"), notifiedPolicy("b")]);
    const down = async () => {
      fixture.ended("a", unreachable);
      fixture.ended("b", unreachable);
      await fixture.after(30_000);
    };
    await down();
    fixture.ended("a");
    await fixture.after(30_000);
    fixture.ended("b", failed);
    await fixture.after(30_000);
    await down();
    expect(fixture.published()).toEqual([
      "ops service-down service:main",
      "ops service-up service:main",
      "ops failing b",
      "ops service-down service:main",
    ]);
    expect(new Set(fixture.delivered.map(({ notice }) => notice.id)).size).toBe(4);
  });

  it("leaves alone what failed by itself before, and says its end", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("a"), notifiedPolicy("b"), notifiedPolicy("c")]);
    fixture.ended("a", failed);
    for (const name of ["a", "b", "c"]) {
      await fixture.after(1_000);
      fixture.ended(name, unreachable);
    }
    await fixture.after(60_000);
    for (const name of ["a", "b", "c"]) fixture.ended(name);
    await fixture.after(60_000);
    expect(fixture.published()).toEqual([
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
    const fixture = new NotifyFixture([notifiedPolicy("a", rules), notifiedPolicy("b")]);
    fixture.breakerMs = beginMs;
    await fixture.after(30_000);
    expect(fixture.published()).toEqual(["ops service-down service:main", "boss service-down service:main"]);
  });

  it("ends also for a sink that got another name while it lasted", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("a")]);
    fixture.breakerMs = beginMs;
    await fixture.after(30_000);
    fixture.policies = [notifiedPolicy("a", [{ ...changeRule, sink: "chat" }])];
    await fixture.after(5_000);
    fixture.breakerMs = undefined;
    await fixture.after(5_000);
    await fixture.after(30_000);
    expect(fixture.published().slice(1)).toEqual(["ops service-up service:main", "chat service-up service:main"]);
  });

  it.each([
    [changeRule, ["ops service-down service:main", "ops removed service:main"]],
    [silentRule, []],
  ])("of a service that left the policies ends where it was told, not as well", async (rule, told) => {
    const fixture = new NotifyFixture([notifiedPolicy("a", [rule])]);
    fixture.breakerMs = beginMs;
    await fixture.after(30_000);
    fixture.policies = [{ ...notifiedPolicy("a", [rule]), service: "other" }];
    fixture.breakerMs = undefined;
    await fixture.after(5_000);
    expect(fixture.published()).toEqual(told.slice(0, 1));
    for (let minutes = 0; minutes < 10; minutes += 2) await fixture.after(120_000);
    expect(fixture.published()).toEqual(told);
    expect(fixture.titles().slice(1)).toEqual(
      told.slice(1).map(() => "service main is watched no more; it is not known to be up again (was down)"),
    );
    expect([...fixture.parts.services.keys()].toSorted()).toEqual(["main", "other"]);
    await fixture.after(86_000_000);
    await fixture.after(120_000);
    expect([...fixture.parts.services.keys()]).toEqual(["other"]);
    expect(fixture.published()).toEqual(told);
  });

  it("is told anew when its service comes back, and is still down", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("a")]);
    fixture.breakerMs = beginMs;
    await fixture.after(30_000);
    fixture.policies = [];
    await fixture.after(0);
    await fixture.after(120_000);
    fixture.policies = [notifiedPolicy("a")];
    await fixture.after(30_000);
    await fixture.after(30_000);
    expect(fixture.published().slice(1)).toEqual(["ops removed service:main", "ops service-down service:main"]);
    expect(new Set(fixture.delivered.map(({ notice }) => notice.id)).size).toBe(3);
  });

  it.each([
    [[changeRule], ["ops service-down service:main"]],
    [[], []],
  ])("keeps stale policies quiet from its first second to its last", async (rules, told) => {
    const boss = { ...silentRule, sink: "boss", stale: true };
    const fixture = new NotifyFixture([notifiedPolicy("a", [...rules, boss])]);
    fixture.breakerMs = beginMs;
    fixture.stale = new Map([["a", beginMs - 60_000]]);
    await fixture.after(0);
    await fixture.after(30_000);
    await fixture.after(60_000);
    expect(fixture.published()).toEqual(told);
  });

  it("that no sink heard of is told to one that is added while it lasts", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("a", [silentRule])]);
    fixture.breakerMs = beginMs;
    await fixture.after(30_000);
    fixture.policies = [notifiedPolicy("a")];
    await fixture.after(5_000);
    fixture.breakerMs = undefined;
    await fixture.after(5_000);
    await fixture.after(30_000);
    expect(fixture.published()).toEqual(["ops service-down service:main", "ops service-up service:main"]);
  });
});

describe("the end of a task at the service that its policy has left", () => {
  const moved = () => new NotifyFixture(["a", "b", "c"].map((name) => ({ ...notifiedPolicy(name), service: "new" })));
  const services = ({ delivered }: NotifyFixture) => delivered.map(({ notice }) => notice.service);

  it("is no outage of the new one, and is told at once under the old one's name", async () => {
    const fixture = moved();
    for (const name of ["a", "b", "c"]) fixture.ended(name, unreachable);
    await fixture.after(1_000);
    await fixture.after(60_000);
    expect(fixture.published()).toEqual(["ops failing a", "ops failing b", "ops failing c"]);
    expect(services(fixture)).toEqual(["main", "main", "main"]);
  });

  it("waits for no outage of the new one, also while its breaker is open", async () => {
    const fixture = moved();
    fixture.breakerMs = beginMs;
    await fixture.after(30_000);
    fixture.ended("a", { status: "unknown", reason: "answer-lost" });
    fixture.ended("b", { status: "failed", reason: "no-access" });
    await fixture.after(1_000);
    expect(fixture.published()).toEqual(["ops service-down service:new", "ops failing a", "ops failing b"]);
    expect(services(fixture)).toEqual(["new", "main", "main"]);
  });

  it("does not show that the new one is up again", async () => {
    const fixture = moved();
    for (const name of ["a", "b"]) fixture.ended(name, { ...unreachable, service: "new" });
    await fixture.after(30_000);
    fixture.ended("c");
    await fixture.after(1_000);
    await fixture.after(60_000);
    expect(fixture.published()).toEqual(["ops service-down service:new"]);
    fixture.ended("c", { service: "new" });
    await fixture.after(1_000);
    await fixture.after(60_000);
    expect(fixture.published().slice(1)).toEqual(["ops service-up service:new"]);
  });
});

describe("a failure that may be the service's", () => {
  it("is the policy's own when nothing else fails, told when the window closes", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("a"), notifiedPolicy("b")]);
    fixture.ended("a", unreachable);
    await fixture.after(29_000);
    expect(fixture.published()).toEqual([]);
    await fixture.after(5_000);
    expect(fixture.delivered.map(({ notice }) => notice.title)).toEqual(["a: failing (unreachable), sync job 42"]);
    fixture.ended("a", unreachable);
    await fixture.after(60_000);
    fixture.ended("a");
    await fixture.after(60_000);
    expect(fixture.published()).toEqual(["ops failing a", "ops recovered a"]);
  });

  it("is the policies' own when as many others go well", async () => {
    const fixture = new NotifyFixture(names.slice(0, 10).map((name) => notifiedPolicy(name)));
    for (const name of names.slice(0, 3)) fixture.ended(name, { status: "failed", reason: "server-error" });
    for (const name of names.slice(3, 6)) fixture.ended(name);
    await fixture.after(30_000);
    expect(fixture.published()).toEqual(["ops failing p0", "ops failing p1", "ops failing p2"]);
  });

  it("is the policies' own when they fail as they did before", async () => {
    const fixture = new NotifyFixture(["a", "b", "c"].map((name) => notifiedPolicy(name)));
    for (const atMs of [0, 60_000, 60_000]) {
      await fixture.after(atMs);
      for (const name of ["a", "b"]) fixture.ended(name, { status: "unknown", reason: "server-error" });
      await fixture.after(30_000);
      fixture.ended("c");
    }
    expect(fixture.published()).toEqual([
      "ops service-down service:main",
      "ops service-up service:main",
      "ops failing a",
      "ops failing b",
    ]);
  });

  it("is the policies' own when they were told, and one message when they were hidden", async () => {
    const [told, hidden] = [names.slice(0, 30), names.slice(30, 60)];
    const fixture = new NotifyFixture([...told, ...hidden, "well"].map((name) => notifiedPolicy(name)));
    const fail = (name: string) => fixture.ended(name, { status: "unknown", reason: "server-error" });
    const publishedIn = async (...rounds: (readonly string[])[]) => {
      const before = fixture.published().length;
      for (const round of rounds) {
        for (const name of round) fail(name);
        await fixture.after(40_000);
        fixture.ended("well");
        await fixture.after(40_000);
      }
      return fixture.published().slice(before);
    };
    expect(await publishedIn(...told.map((name) => [name]))).toEqual(told.map((name) => `ops failing ${name}`));
    expect(await publishedIn(told)).toEqual([]);
    const outage = ["ops service-down service:main", "ops service-up service:main"];
    expect(await publishedIn(hidden)).toEqual(outage);
    expect(await publishedIn(hidden)).toEqual(outage);
  });

  it("never hides what is the policy's own doing", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("a"), notifiedPolicy("b"), notifiedPolicy("c")]);
    fixture.ended("a", unreachable);
    fixture.ended("b", unreachable);
    fixture.ended("c", failed);
    await fixture.after(1_000);
    expect(fixture.published()).toEqual(["ops failing c"]);
  });
});
