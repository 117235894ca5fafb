import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NewerVersionError } from "../../../src/core/newer-version.ts";
import type { Outcome } from "../../../src/model/outcome.ts";
import { changeRule, NotifyFixture, notifiedPolicy } from "../../support/notify-fixture.ts";

/** What a policy's tasks can end with, and as what that is told. */
const endings = {
  good: {},
  failing: { status: "failed", reason: "run-failed" },
  blocked: { status: "blocked", reason: "no-evidence" },
  unknown: { status: "unknown", reason: "redis-loss" },
  conflicts: { status: "conflicts", reason: "new-conflicts", newConflicts: 1 },
} as const satisfies Record<string, Partial<Outcome>>;

const names = ["a", "b", "c"] as const;
const step = fc.record({
  policy: fc.constantFrom(...names),
  fate: fc.constantFrom("good", "failing", "blocked", "unknown", "conflicts"),
  passes: fc.boolean(),
  dies: fc.constantFrom("never", "before the save", "after the hand-over"),
});

/** By hand: one message for each time that the fate differs from the one before. */
function expected(steps: readonly { policy: string; fate: string }[]): string[][] {
  return names.map((name) => {
    let before = "good";
    return steps
      .filter(({ policy }) => policy === name)
      .flatMap(({ fate }) => {
        const told = fate === before ? [] : [fate];
        before = fate;
        return told;
      });
  });
}

describe("every change of state", () => {
  it("is notified exactly once, in order, for any batching and any crash", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const fixture = new NotifyFixture(names.map((name) => notifiedPolicy(name)));
        const look = async () => {
          await fixture.after(6_000).catch(() => fixture.restart());
        };
        for (const { policy, fate, passes, dies } of steps) {
          fixture.nowMs += 1_000;
          fixture.ended(policy, endings[fate as keyof typeof endings]);
          fixture.diesBeforeSave = dies === "before the save";
          fixture.diesAfterHandOver = dies === "after the hand-over";
          if (passes) await look();
        }
        fixture.diesBeforeSave = false;
        fixture.diesAfterHandOver = false;
        await look();
        const seen = new Set<string>();
        const once = fixture.delivered.filter(({ notice: { id } }) => !seen.has(id) && seen.add(id));
        const told = names.map((name) =>
          once
            .filter(({ notice }) => notice.policy === name)
            .map(({ notice }) => (notice.kind === "recovered" ? "good" : String(notice.data["state"]))),
        );
        expect(told).toEqual(expected(steps));
      }),
      { numRuns: 300 },
    );
  });

  it("of n policies that fail with their service is one message, for any n and order", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 2, maxLength: 60 }), async (passes) => {
        const all = passes.map((_, index) => `p${index}`);
        const fixture = new NotifyFixture(all.map((name) => notifiedPolicy(name)));
        for (const [index, name] of all.entries()) {
          fixture.ended(name, { status: "failed", reason: "unreachable" });
          if (passes[index] === true) await fixture.after(200);
        }
        await fixture.after(40_000);
        for (const name of all) fixture.ended(name);
        await fixture.after(40_000);
        await fixture.after(40_000);
        expect(fixture.published()).toEqual(["ops service-down service:main", "ops service-up service:main"]);
        expect(fixture.delivered[0]?.notice.data["policiesCount"]).toBe(all.length);
      }),
      { numRuns: 50 },
    );
  });
});

describe("a notifier that dies after it handed a notice over", () => {
  const dies = async (fixture: NotifyFixture) => {
    fixture.diesAfterHandOver = true;
    await expect(fixture.after(6_000)).rejects.toThrow("died");
    fixture.restart();
  };
  const kinds = (fixture: NotifyFixture) => {
    const ids = new Map(fixture.delivered.map(({ notice }) => [notice.id, notice.kind]));
    return [...ids.values()];
  };

  it("ends each failing policy, when the service goes down before the next one", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("a")]);
    fixture.ended("a", { status: "failed", reason: "refused" });
    await dies(fixture);
    fixture.breakerMs = fixture.nowMs;
    await fixture.after(40_000);
    fixture.breakerMs = undefined;
    fixture.ended("a");
    await fixture.after(40_000);
    await fixture.after(40_000);
    expect(kinds(fixture)).toContain("recovered");
  });

  it("ends each service-down, when the breaker closes before the next one", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("a")]);
    fixture.breakerMs = fixture.nowMs - 60_000;
    await dies(fixture);
    fixture.breakerMs = undefined;
    await fixture.after(40_000);
    await fixture.after(40_000);
    expect(kinds(fixture)).toEqual(["service-down", "service-up"]);
  });

  it("leaves no stale without its end, when a success comes before the next one", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("a", [{ ...changeRule, stale: true }])]);
    fixture.stale = new Map([["a", fixture.nowMs - 3_600_000]]);
    await dies(fixture);
    fixture.stale = new Map();
    fixture.ended("a");
    await fixture.after(40_000);
    expect(kinds(fixture)).toEqual(["stale", "recovered"]);
  });
});

describe("a waiting notice that cannot be read", () => {
  it.each(["outbox", "muted"] as const)(
    "in the %s goes after ten minutes, counted, and others are told",
    async (part) => {
      const fixture = new NotifyFixture([notifiedPolicy("a")]);
      fixture.parts[part].set("000000", '{"v":9}');
      fixture.parts[part].set("000001", "no JSON");
      fixture.ended("a", endings.failing);
      await expect(fixture.after(6_000)).rejects.toThrow(NewerVersionError);
      await expect(fixture.after(599_000)).rejects.toThrow(NewerVersionError);
      expect([fixture.published(), fixture.log.named("notifier.dropped")]).toEqual([[], []]);
      await fixture.after(1_000);
      expect(fixture.published()).toEqual(["ops failing a"]);
      expect(fixture.log.named("notifier.dropped")).toMatchObject([{ count: 2 }]);
      expect(fixture.parts[part].size).toBe(0);
    },
  );

  it("is replaced in mute timing by a newer one, which counts it", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("a")]);
    const muteTiming = { fromMinute: 0, toMinute: 1_439, timezone: "UTC", except: [] };
    fixture.notifications = { groupWaitMs: 30_000, muteTiming };
    fixture.parts.muted.set("ops/failing/a", '{"v":9}');
    fixture.ended("a", endings.failing);
    await fixture.after(0);
    fixture.notifications = { groupWaitMs: 30_000, muteTiming: undefined };
    await fixture.after(0);
    expect(fixture.delivered).toMatchObject([{ notice: { kind: "failing", data: { leftOut: 1 } } }]);
  });
});

describe("a notifier that stands still", () => {
  it("says so once, and its mistake again every ten minutes", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("a")]);
    fixture.parts.services.set("main", '{"v":9}');
    await fixture.runsFor(1_500_000);
    expect(fixture.log.named("notifier.failing")).toHaveLength(1);
    expect(fixture.log.named("bug.caught")).toHaveLength(3);
  });
});

describe("an event of an unknown policy", () => {
  it("is told when its policy is loaded, before what came after it", async () => {
    const [a, b] = [notifiedPolicy("a"), notifiedPolicy("b")];
    const fixture = new NotifyFixture([a]);
    fixture.ended("b", endings.failing);
    fixture.ended("a", endings.failing);
    await fixture.after(6_000);
    expect(fixture.published()).toEqual([]);
    fixture.policies = [a, b];
    await fixture.after(100_000);
    expect(fixture.published()).toEqual(["ops failing b", "ops failing a"]);
  });

  it("holds up others for two minutes at the most, and later ones of it do not", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("a")]);
    const end = (fate: "good" | "failing") => {
      fixture.ended("gone", endings.failing);
      fixture.ended("a", endings[fate]);
    };
    end("failing");
    await fixture.after(0);
    await fixture.after(60_000);
    end("good");
    await fixture.after(59_000);
    expect(fixture.published()).toEqual([]);
    await fixture.after(1_000);
    expect(fixture.published()).toEqual(["ops failing a", "ops recovered a"]);
    end("failing");
    await fixture.after(0);
    expect(fixture.published()).toHaveLength(3);
    // A policy of this name may come again.
    fixture.nowMs += 3_600_000;
    end("good");
    await fixture.after(119_000);
    expect(fixture.published()).toHaveLength(3);
  });
});
