import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Pause } from "../../../src/model/pause.ts";
import { planPolicy } from "../../../src/schedule/plan-batches.ts";
import { onTimeMs, planSlots } from "../../../src/schedule/plan-slots.ts";
import { createSlotSource } from "../../../src/schedule/slots.ts";
import { testPolicy } from "../../support/policies.ts";

const minute = 60_000;
const at = (nowMs: number) => ({ nowMs, pauses: [] });
const slots = [10 * minute, 15 * minute, 20 * minute];

const pause = (changes: Partial<Pause>): Pause => ({
  v: 1,
  scope: "all",
  name: "",
  note: "a note",
  actor: "ada@desk",
  sinceMs: 0,
  untilMs: null,
  endedBy: null,
  ...changes,
});

describe("planning due slots", () => {
  it("starts the newest for `latest`, standing for the older ones", () => {
    const plans = planSlots(
      testPolicy({ catchUp: "latest", catchUpWindowMs: 5 * minute }),
      slots,
      at(20 * minute + 1_000),
    );
    expect(plans).toEqual([
      { slotMs: 10 * minute, state: "coalesced", into: 20 * minute },
      { slotMs: 15 * minute, state: "coalesced", into: 20 * minute },
      { slotMs: 20 * minute, state: "started", covers: [10 * minute, 15 * minute] },
    ]);
  });

  it("names the newest open slot for `latest` in each batch of a long backlog", () => {
    const hour = 60 * minute;
    const schedule = { kind: "every", everyMs: minute, spreadMs: 0 } as const;
    const states = (closedFor: number, pausedFor = 0, lateMs = 0) => {
      const blackouts = [{ cron: "50 23 * * *", durationMs: closedFor * minute }];
      const policy = testPolicy({ schedule, catchUpWindowMs: hour, closed: { blackouts, holidays: [] } });
      const source = createSlotSource(policy);
      if (source === undefined) throw new Error("no slots");
      const pauses = [pause({ sinceMs: (24 * 60 - pausedFor) * minute })];
      const moment = { nowMs: 24 * hour + lateMs, pauses: pausedFor === 0 ? [] : pauses };
      const first = planPolicy({ policy, source, watermarkMs: 0 }, moment);
      const last = planPolicy({ policy, source, watermarkMs: first?.newWatermarkMs ?? 0 }, moment);
      const names = [...(first?.plans ?? []), ...(last?.plans ?? [])].map((plan) =>
        plan.state === "coalesced" ? plan.into / minute : plan.state === "started" ? plan.slotMs / minute : plan.state,
      );
      return [...new Set(names)].sort();
    };
    expect(states(1)).toEqual([1_440, "skipped"]);
    expect(states(15)).toEqual([1_429, "skipped"]);
    expect(states(1, 30)).toEqual([1_409, "skipped"]);
    expect(states(1, 70)).toEqual(["missed", "skipped"]);
    // A batch that is full and the last.
    expect(states(1, 0, -440 * minute)).toEqual([1_000]);
  });

  it("misses all for `latest` when even the newest is older than the window", () => {
    const plans = planSlots(testPolicy({ catchUp: "latest", catchUpWindowMs: 5 * minute }), slots, at(26 * minute));
    expect(plans.map(({ state }) => state)).toEqual(["missed", "missed", "missed"]);
  });

  it("starts each slot inside the window for `all`", () => {
    const plans = planSlots(testPolicy({ catchUp: "all", catchUpWindowMs: 6 * minute }), slots, at(21 * minute));
    expect(plans.map(({ state }) => state)).toEqual(["missed", "started", "started"]);
  });

  it("starts only what is on time for `none`", () => {
    const policy = testPolicy({ catchUp: "none", catchUpWindowMs: 60 * minute });
    expect(planSlots(policy, slots, at(20 * minute + onTimeMs)).map(({ state }) => state)).toEqual([
      "missed",
      "missed",
      "started",
    ]);
    expect(planSlots(policy, slots, at(20 * minute + onTimeMs + 1)).map(({ state }) => state)).toEqual([
      "missed",
      "missed",
      "missed",
    ]);
  });

  it("skips what is closed or paused, and never lets another slot stand for it", () => {
    const policy = testPolicy({
      catchUpWindowMs: 60 * minute,
      closed: { blackouts: [{ cron: "10 0 * * *", durationMs: 2 * minute }], holidays: [] },
    });
    const pauses = [pause({ note: "release", sinceMs: 15 * minute, untilMs: 20 * minute })];
    expect(planSlots(policy, [5 * minute, ...slots], { nowMs: 21 * minute, pauses })).toEqual([
      { slotMs: 5 * minute, state: "coalesced", into: 20 * minute },
      { slotMs: 10 * minute, state: "skipped", reason: "blackout", note: "10 0 * * * for 2m" },
      { slotMs: 15 * minute, state: "skipped", reason: "paused", note: "release (ada@desk)" },
      { slotMs: 20 * minute, state: "started", covers: [5 * minute] },
    ]);
  });

  it("starts the newest 100 slots for `all`, and calls the older ones too many", () => {
    const policy = testPolicy({ catchUp: "all", catchUpWindowMs: 60 * minute });
    const due = Array.from({ length: 110 }, (_, index) => (index + 1) * 10_000);
    const states = (newer: readonly number[], pauses: readonly Pause[] = []) => {
      const plans = planSlots(policy, due, { nowMs: 2_000_000, pauses, newer });
      const tooMany = plans.filter((plan) => plan.state === "missed" && plan.reason === "catch-up-cap");
      return [tooMany.length, plans.findIndex(({ state }) => state === "started")];
    };
    expect(states([])).toEqual([10, 10]);
    expect(states([1_200_000, 1_210_000])).toEqual([12, 12]);
    expect(states(Array.from({ length: 200 }, (_, index) => 1_200_000 + index * 1_000))).toEqual([110, -1]);
    expect(states([1_200_000, 1_210_000], [pause({ sinceMs: 1_200_000, untilMs: 1_205_000 })])).toEqual([11, 11]);
    expect(states([], [pause({ sinceMs: 0, untilMs: 95_000 })])).toEqual([1, 10]);
  });

  it("applies a pause to its policy, to its service or to all", () => {
    const states = (subject: Partial<Pause>) =>
      planSlots(testPolicy(), [minute], { nowMs: minute, pauses: [pause(subject)] }).map(({ state }) => state);
    expect(states({ scope: "policy", name: "nightly" })).toEqual(["skipped"]);
    expect(states({ scope: "policy", name: "main" })).toEqual(["started"]);
    expect(states({ scope: "service", name: "main" })).toEqual(["skipped"]);
    expect(states({ scope: "service", name: "nightly" })).toEqual(["started"]);
    expect(states({ scope: "all", name: "" })).toEqual(["skipped"]);
  });

  it("names the first pause of the list, whatever each is about", () => {
    const subjects = ["label team=hr", "all ", "policy nightly", "service main"].map((text) => text.split(" "));
    for (const [at, [first]] of subjects.entries()) {
      const pauses = [["policy", "other"], ...subjects.slice(at), ...subjects.slice(0, at)].map(([scope, name = ""]) =>
        pause({ scope: scope as Pause["scope"], name, note: scope ?? "" }),
      );
      const plans = planSlots(testPolicy({ labels: { team: "hr" } }), [minute], { nowMs: minute, pauses });
      expect(plans).toMatchObject([{ state: "skipped", note: `${first} (ada@desk)` }]);
    }
  });

  it("prefers the reason that stands in the file, since only pauses are made up for", () => {
    const policy = testPolicy({ closed: { blackouts: [], holidays: ["1970-01-01"] } });
    expect(planSlots(policy, [minute], { nowMs: minute, pauses: [pause({})] })).toEqual([
      { slotMs: minute, state: "skipped", reason: "holiday", note: "1970-01-01" },
    ]);
  });

  it("skips for a stale input last, and the late slots before it too: none covers them", () => {
    const needs = { policy: "orders", withinMs: minute };
    const inputs = new Map([["orders", 0]]);
    const plans = planSlots(testPolicy({ needs }), [minute, 2 * minute], { nowMs: 2 * minute, pauses: [], inputs });
    expect(plans.map(({ state }) => state)).toEqual(["skipped", "skipped"]);
    const paused = { nowMs: 2 * minute, pauses: [pause({})], inputs };
    expect(planSlots(testPolicy({ needs }), [2 * minute], paused)).toMatchObject([{ reason: "paused" }]);
  });

  it("says of no slot that could have started in a loss of Redis that it did not", () => {
    const states = (
      changes: Parameters<typeof testPolicy>[0],
      due: readonly number[],
      fromMs: number,
      pauses = [none],
    ) =>
      planSlots(testPolicy({ catchUpWindowMs: 60 * minute, ...changes }), due, {
        nowMs: 40 * minute,
        pauses,
        losses: [{ fromMs, untilMs: fromMs + 6 * minute }],
        inputs: new Map(),
      }).map((plan) => (plan.state === "started" ? plan.covers.map((slotMs) => slotMs / minute) : plan.state));
    const none = pause({ untilMs: 0 });
    const due = [...slots, 25 * minute, 40 * minute];
    const needs = { policy: "orders", withinMs: minute };
    // The newest before the loss may have started in it, and each in it; no older and no later one.
    expect(states({}, due, 16 * minute)).toEqual(["coalesced", [], [], "coalesced", [10, 25]]);
    const paused = [pause({ sinceMs: 15 * minute, untilMs: 16 * minute })];
    expect(states({}, due, 16 * minute, paused)).toEqual([[], "skipped", [], "coalesced", [25]]);
    expect(states({ catchUp: "none" }, due, 15 * minute)).toEqual(["missed", [], [], "missed", []]);
    expect(states({ catchUp: "none" }, due, 15 * minute + onTimeMs + 1)).toEqual([
      "missed",
      "missed",
      [],
      "missed",
      [],
    ]);
    expect(states({ catchUp: "all", catchUpWindowMs: 5 * minute }, due, 15 * minute)).toEqual([
      [],
      [],
      [],
      "missed",
      [],
    ]);
    expect(states({ needs }, due, 16 * minute)).toEqual(["skipped", [], [], "skipped", "skipped"]);
    const polled = { action: { kind: "poll", list: "triggers", expect: "count > 0", notifyOn: "change" } } as const;
    expect(states(polled, due, 16 * minute)).toEqual([
      "coalesced",
      "coalesced",
      "coalesced",
      "coalesced",
      [10, 15, 20, 25],
    ]);
    // No more of those before it than start at once.
    const backlog = Array.from({ length: 300 }, (_, second) => second * 1_000);
    const started = states({ catchUp: "all" }, backlog, 290_000).slice(0, 190).filter(Array.isArray);
    expect(started).toEqual([]);
  });

  it("says of older ones in a long loss, without a task, that they may have started", () => {
    const minutes = Array.from({ length: 150 }, (_, index) => index * minute);
    const losses = [{ fromMs: 0, untilMs: 149 * minute }];
    const plans = planSlots(testPolicy({ catchUp: "none" }), minutes, { ...at(600 * minute), losses });
    const told = plans.map((plan) => (plan.state === "missed" ? plan.reason : plan.state));
    expect(told).toEqual([...Array(50).fill("redis-loss"), ...Array(100).fill("started")]);
  });

  it("never contradicts a start that Redis lost, whatever was due then and is due now", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 1, max: 2_000 }), { minLength: 1, maxLength: 60 }),
        fc.constantFrom("latest" as const, "none" as const, "all" as const),
        fc.integer({ min: 0, max: 2_000 }),
        fc.integer({ min: 0, max: 100 }),
        fc.option(fc.integer({ min: 0, max: 2_000 })),
        (seconds, catchUp, plannedAt, later, pausedFrom) => {
          const due = seconds.map((second) => second * 1_000).sort((a, b) => a - b);
          const policy = testPolicy({ catchUp, catchUpWindowMs: 300_000 });
          const plannedMs = plannedAt * 1_000;
          const sinceMs = (pausedFrom ?? 0) * 1_000;
          const pauses = pausedFrom === null ? [] : [pause({ sinceMs, untilMs: sinceMs + 100_000 })];
          const then = planSlots(
            policy,
            due.filter((slotMs) => slotMs <= plannedMs),
            { nowMs: plannedMs, pauses },
          );
          const losses = [{ fromMs: plannedMs - 1_000, untilMs: plannedMs + 1_000 }];
          const now = planSlots(policy, due, { nowMs: 2_000_000 + later * 1_000, pauses, losses });
          const started = new Set(now.flatMap((plan) => (plan.state === "started" ? plan.slotMs : [])));
          for (const { state, slotMs } of then) if (state === "started") expect(started).toContain(slotMs);
        },
      ),
    );
  });

  // A coalesced slot names a started one. A skipped slot lies in a closed time or a pause.
  it("gives every slot exactly one plan", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 1, max: 5_000 }), { maxLength: 60 }),
        fc.record({
          catchUp: fc.constantFrom("latest" as const, "none" as const, "all" as const),
          catchUpWindowMs: fc.integer({ min: 1, max: 600_000 }),
          openMinutes: fc.integer({ min: 1, max: 30 }),
        }),
        fc.array(fc.tuple(fc.integer({ min: 0, max: 5_000 }), fc.option(fc.integer({ min: 0, max: 5_000 }))), {
          maxLength: 4,
        }),
        fc.integer({ min: 0, max: 600_000 }),
        (seconds, { catchUp, catchUpWindowMs, openMinutes }, intervals, lateMs) => {
          const due = seconds.map((second) => second * 1_000).sort((a, b) => a - b);
          const blackouts = [{ cron: "0 * * * *", durationMs: openMinutes * minute }];
          const policy = testPolicy({ catchUp, catchUpWindowMs, closed: { blackouts, holidays: [] } });
          const pauses = intervals.map(([since, until]) =>
            pause({ sinceMs: since * 1_000, untilMs: until === null ? null : until * 1_000 }),
          );
          const plans = planSlots(policy, due, { nowMs: (due.at(-1) ?? 0) + lateMs, pauses });
          expect(plans.map(({ slotMs }) => slotMs)).toEqual(due);
          const started = new Set(plans.filter(({ state }) => state === "started").map(({ slotMs }) => slotMs));
          for (const plan of plans) {
            const isClosed = plan.slotMs % (60 * minute) < openMinutes * minute;
            const isPaused = intervals.some(
              ([since, until]) => since * 1_000 <= plan.slotMs && (until === null || plan.slotMs < until * 1_000),
            );
            expect(plan.state === "skipped").toBe(isClosed || isPaused);
            if (plan.state === "skipped") expect(plan.reason).toBe(isClosed ? "blackout" : "paused");
            if (plan.state === "coalesced") expect(started.has(plan.into)).toBe(true);
            if (plan.state === "started") {
              const coalesced = plans.filter((one) => one.state === "coalesced").map(({ slotMs }) => slotMs);
              expect(plan.covers).toEqual(catchUp === "latest" ? coalesced : []);
            }
          }
          if (catchUp === "latest") expect(started.size).toBeLessThanOrEqual(1);
        },
      ),
    );
  });
});
