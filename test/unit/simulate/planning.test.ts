import { describe, expect, it } from "vitest";
import { simulate } from "../../../src/simulate/simulation.ts";
import { Totals } from "../../../src/simulate/totals.ts";
import { testPolicy } from "../../support/policies.ts";
import { everyMinutes, minute, simulateMinutes, startMs, tellSlots, tellTasks } from "../../support/simulation.ts";

const hours = 60;

describe("planning on a virtual clock", () => {
  // The one that `latest` starts stands for all; `all` starts them one after another.
  it("latest starts one of 36 slots after an outage, none misses all, all starts all", () => {
    const outages = [[60, 240]] as const;
    const of = (catchUp: "latest" | "none" | "all") =>
      simulateMinutes({
        policies: [everyMinutes(5, { catchUp, catchUpWindowMs: 3 * hours * minute, overlap: "queue" })],
        to: 300,
        run: 1,
        outages,
      });
    const late = (events: ReturnType<typeof of>) =>
      tellSlots(events).filter((slot) => Number.parseInt(slot, 10) >= 60 && Number.parseInt(slot, 10) <= 240);

    // Minute 60 to 235 are 36 slots; that of minute 240 is due when the outage ends.
    expect(late(of("latest"))).toHaveLength(37);
    expect(late(of("latest")).at(-1)).toBe("240 started for 36 more");
    expect(
      new Set(
        late(of("latest"))
          .slice(0, 36)
          .map((slot) => slot.split(" ")[1]),
      ),
    ).toEqual(new Set(["coalesced"]));
    expect(late(of("none")).slice(0, 36)).toEqual(
      Array.from({ length: 36 }, (_, slot) => `${60 + 5 * slot} missed catch-up-none`),
    );
    expect(late(of("none")).at(-1)).toBe("240 started");
    expect(late(of("all"))).toEqual(Array.from({ length: 37 }, (_, slot) => `${60 + 5 * slot} started`));
    // The start-by time of the oldest is minute 60 + 180, so it starts at 240 and the next ones
    // wait their turns.
    expect(tellTasks(of("all")).slice(11, 14)).toEqual(["60 started at 240", "65 started at 241", "70 started at 242"]);
  });

  it("misses what is older than the catch-up window; outages that touch are one", () => {
    const policies = [everyMinutes(10, { catchUp: "all", catchUpWindowMs: 15 * minute })];
    const outages = [
      [30, 40],
      [15, 30],
    ] as const;
    const events = simulateMinutes({ policies, to: 40, outages });
    expect(tellSlots(events)).toEqual(["10 started", "20 missed outside-window", "30 started", "40 started"]);
    const totals = new Totals(policies, 10);
    for (const event of events) totals.add(event);
    expect(totals.all).toMatchObject({ slots: 4, started: 3, late: 1, missed: { "outside-window": 1 } });
    // Both that start do so when the outage ends, so the second one finds the first one's run.
    expect(totals.problems).toMatchObject([
      { slotMs: startMs + 20 * minute, problem: "missed", target: undefined },
      { slotMs: startMs + 40 * minute, problem: "overlap", target: "42" },
    ]);
  });

  it("keeps the clock-change rule, spread, blackouts and holidays", () => {
    const dst = { gap: "next", overlap: "first" } as const;
    const nightly = (timezone: string, spreadMs = 0) =>
      ({ kind: "cron", expressions: ["30 2 * * *"], timezone, dst, spreadMs }) as const;
    const closed = {
      timezone: "Europe/Vienna",
      blackouts: [{ cron: "0 2 29 3 *", durationMs: 60 * minute }],
      holidays: ["2027-03-30"],
    };
    const time = {
      fromMs: Date.parse("2027-03-27T00:00:00Z"),
      toMs: Date.parse("2027-03-31T00:00:00Z"),
      outages: [],
      pauses: [],
    };
    const assumptions = {
      durations: { otherwise: { leastMs: 0, mostMs: 0 }, byPolicy: new Map() },
      maskJobs: { otherwise: 1, byPolicy: new Map() },
      failures: { otherwise: 0, byPolicy: new Map() },
      requestMs: 0,
      seed: "",
    };
    const policies = [
      testPolicy({ name: "vienna", schedule: nightly("Europe/Vienna"), closed }),
      testPolicy({ name: "spread", schedule: nightly("UTC", 60 * minute) }),
    ];
    const slots = [...simulate(policies, { time, assumptions, concurrencyOf: () => 4, slotsMax: 100 })].flatMap(
      (event) =>
        event.event === "planned"
          ? event.plans.map(({ slotMs, state }) => `${event.policy.name} ${new Date(slotMs).toISOString()} ${state}`)
          : [],
    );
    expect(slots.filter((slot) => slot.startsWith("vienna"))).toEqual([
      "vienna 2027-03-27T01:30:00.000Z started",
      // 02:30 is left out on that night: the first instant after the gap.
      "vienna 2027-03-28T01:00:00.000Z started",
      "vienna 2027-03-29T00:30:00.000Z skipped",
      "vienna 2027-03-30T00:30:00.000Z skipped",
    ]);
    const moved = slots.filter((slot) => slot.startsWith("spread")).map((slot) => slot.slice(18, 30));
    expect(moved).toHaveLength(4);
    expect(new Set(moved).size).toBe(1);
    expect((moved[0] ?? "") > "02:30:00" && (moved[0] ?? "") < "03:30:00").toBe(true);
  });

  it("names slots after its start, up to and including its end", () => {
    const policies = [everyMinutes(10)];
    expect(tellSlots(simulateMinutes({ policies, to: 20 }))).toEqual(["10 started", "20 started"]);
    const time = { fromMs: startMs + 10 * minute, toMs: startMs + 20 * minute, outages: [], pauses: [] };
    expect(tellSlots(simulateMinutes({ policies, to: 0, options: { time } }))).toEqual(["20 started"]);
  });

  it("orders policies that are due at the same instant by file", () => {
    const names = ["c", "a", "b"];
    // The sync job is taken by the first one, also after policies have been due at other instants.
    const policies = names.map((name, index) => everyMinutes(index === 0 ? 30 : 10 + 5 * (index - 1), { name }));
    const events = simulateMinutes({ policies, to: 30, run: 1 });
    const atHalfPast = events.flatMap((event) =>
      event.event === "planned" && event.nowMs === startMs + 30 * minute ? [event.policy.name] : [],
    );
    expect(atHalfPast).toEqual(["c", "a", "b"]);
  });

  it("refuses more slots than it may hold, at once if it can, and says what to do", () => {
    const options = { slotsMax: 10 };
    const said = "there are more than 10 slots, which is the most: take a shorter time, or name one policy";
    expect(() => simulateMinutes({ policies: [everyMinutes(1)], to: 11, options })).toThrow(said);
    const dst = { gap: "next", overlap: "first" } as const;
    const cron = { kind: "cron", expressions: ["* * * * *"], timezone: "UTC", dst, spreadMs: 0 } as const;
    expect(() => simulateMinutes({ policies: [testPolicy({ schedule: cron })], to: 11, options })).toThrow(said);
    expect(tellSlots(simulateMinutes({ policies: [everyMinutes(1)], to: 10, options }))).toHaveLength(10);
    const first = simulateMinutes.bind(undefined, { policies: [everyMinutes(1)], to: 1e12, options });
    expect(first).toThrow(said);
  });
});
