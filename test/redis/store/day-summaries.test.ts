import { describe, expect, it } from "vitest";
import { type Outcome, outcomeStatuses } from "../../../src/model/outcome.ts";
import type { SlotRecord } from "../../../src/model/slot-record.ts";
import { ChainStore } from "../../../src/store/chain-store.ts";
import { addCounts, type DateSpan, readSpans, toSums } from "../../../src/store/day-summaries.ts";
import { History } from "../../../src/store/history.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { storeForTest } from "../../support/redis.ts";

const store = await storeForTest();
const history = new History(store, {
  timezoneOf: (policy) => (policy === "vienna" ? "Europe/Vienna" : undefined),
  limits: { count: 10_000, forMs: 400 * 86_400_000 },
});
const hourMs = 3_600_000;
const all = { first: "2026-09-30", last: "2026-12-31" };

function outcomeAt(policy: string, slot: string, changes: Partial<Outcome> = {}): Outcome {
  return testOutcome({ taskId: `${policy}__run__42__${slot}`, policy, slot, finishedAt: slot, ...changes });
}

async function sumsOf(policy: string, span: DateSpan = all) {
  for await (const { counts } of readSpans(store, [policy], [span])) return toSums(counts[0] ?? []);
  throw new Error("nothing was read");
}

/** Numbers from 0 to 1, the same for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

describe("the days of a policy", () => {
  it.each([1, 2, 3])("add up to its history, in whatever order and however often (seed %i)", async (seed) => {
    const random = randomOf(seed);
    const policy = `seeded-${seed}`;
    const firstMs = Date.parse("2026-10-03T00:00:00Z");
    const outcomes = Array.from({ length: 400 }, (_, index) =>
      outcomeAt(policy, new Date(firstMs + index * 3 * hourMs).toISOString(), {
        status: outcomeStatuses[Math.floor(random() ** 2 * outcomeStatuses.length)] ?? "succeeded",
        durationMs: random() < 0.1 ? null : Math.round(1_000 * 1.5 ** (random() * 10)),
        newConflicts: random() < 0.5 ? null : Math.floor(random() * 3),
      }),
    );
    const doubled = [...outcomes, ...outcomes].map((outcome) => ({ outcome, at: random() }));
    const shuffled = doubled.toSorted((a, b) => a.at - b.at);
    await Promise.all(
      shuffled.map(({ outcome, at }) => (at < 0.9 ? history.record(outcome) : history.recordAlone(outcome))),
    );
    const kept = await history.newest(1_000, policy);
    expect(kept).toHaveLength(400);
    const sums = await sumsOf(policy);
    const expected = outcomeStatuses.map(
      (status) => [status, kept.filter((one) => one.status === status).length] as const,
    );
    expect([...sums.statuses]).toEqual(expected);
    expect(sums.newConflicts).toBe(kept.reduce((sum, one) => sum + (one.newConflicts ?? 0), 0));
    const endedWell = kept.filter(({ status }) => ["succeeded", "conflicts", "accepted"].includes(status));
    const durations = endedWell.flatMap(({ durationMs }) => durationMs ?? []).toSorted((a, b) => a - b);
    const quantile = (share: number) => durations[Math.ceil(share * durations.length) - 1] ?? 0;
    expect(sums.longestMs).toBe(durations.at(-1));
    expect(Math.abs((sums.medianMs ?? 0) / quantile(0.5) - 1)).toBeLessThan(0.05);
    expect(Math.abs((sums.p95Ms ?? 0) / quantile(0.95) - 1)).toBeLessThan(0.05);
  });

  it("are those of the slots, in the policy's zone, and can be read one by one", async () => {
    await history.record(outcomeAt("vienna", "2026-11-30T22:59:59.000Z"));
    await history.record(outcomeAt("vienna", "2026-11-30T23:00:00.000Z", { status: "failed", reason: "run-failed" }));
    const counted = async (day: string) => (await sumsOf("vienna", { first: day, last: day })).statuses;
    expect((await counted("2026-11-30")).get("succeeded")).toBe(1);
    expect((await counted("2026-12-01")).get("failed")).toBe(1);
    expect((await counted("2026-12-01")).get("succeeded")).toBe(0);
  });

  it("of several policies add up, and the greater of their longest runs stands", async () => {
    for (const [policy, durationMs] of [
      ["one", 60_000],
      ["other", 90_000],
    ] as const)
      for (const hour of [10, 11]) await history.record(outcomeAt(policy, `2026-11-01T${hour}:00:00Z`, { durationMs }));
    const sum: number[] = [];
    for await (const { counts } of readSpans(store, ["one", "other", "none"], [all]))
      for (const one of counts) addCounts(sum, one);
    const { longestMs, statuses } = toSums(sum);
    expect([longestMs, statuses.get("succeeded")]).toEqual([90_000, 4]);
  });

  it("are small hashes that end by themselves after more than 400 days", async () => {
    for (let hour = 0; hour < 24 * 31; hour += 1)
      await history.record(outcomeAt("hourly", new Date(Date.parse("2026-10-01") + hour * hourMs).toISOString()));
    const key = store.key("days", "hourly", "2026-10");
    expect(await store.redis.hlen(key)).toBe(31);
    expect(await store.redis.object("ENCODING", key)).toMatch(/listpack|ziplist/);
    expect(await store.redis.pttl(key)).toBeGreaterThan(430 * 24 * hourMs);
  });
});

describe("slots that start nothing", () => {
  const ledger = new SlotLedger(store);
  const slot = (hour: number, state: SlotRecord["state"]): SlotRecord => ({
    ...{ slotMs: Date.parse("2026-11-30T00:00:00Z") + hour * hourMs, state },
    detail: state === "skipped" ? "paused" : "",
  });

  it("are counted once, by the step that records them; not when they start later", async () => {
    await ledger.openWatermarks([{ policy: "paused", schedule: "s" }], 1_000);
    const records = [
      slot(1, "skipped"),
      slot(2, "started"),
      slot(3, "missed"),
      slot(23, "skipped"),
      slot(24, "missed"),
    ];
    const ends = { expectedWatermarkMs: 1_000, newWatermarkMs: slot(24, "missed").slotMs, tasks: [] };
    const step = { policy: "paused", timezone: "Europe/Vienna", records, ...ends };
    await Promise.all([ledger.record([step]), ledger.record([step])]);
    const counted = async () => {
      const { skippedSlots, missedSlots } = await sumsOf("paused");
      return { skippedSlots, missedSlots };
    };
    expect(await counted()).toEqual({ skippedSlots: 2, missedSlots: 2 });
    expect(await sumsOf("paused", { first: "2026-12-01", last: "2026-12-01" })).toMatchObject({ skippedSlots: 1 });
    const started = { newWatermarkMs: ends.newWatermarkMs, tasks: [], timezone: "Europe/Vienna" };
    for (let time = 0; time < 2; time += 1)
      await ledger.startSkipped("paused", { ...slot(23, "started"), detail: "caught-up" }, started);
    expect(await counted()).toEqual({ skippedSlots: 1, missedSlots: 2 });
  });

  it("are counted when they waited for another policy, too", async () => {
    const chains = new ChainStore(store);
    await ledger.openWatermarks([{ policy: "first", schedule: "s" }], 1_000);
    const followers = [{ policy: "second", after: "first", followers: 0, schedule: "s" }];
    await ledger.record([
      { policy: "first", expectedWatermarkMs: 1_000, newWatermarkMs: 2_000, records: [], tasks: [], followers },
    ]);
    const records = [slot(5, "skipped")];
    const newWatermarkMs = slot(5, "skipped").slotMs;
    await ledger.record([
      { policy: "first", expectedWatermarkMs: 2_000, newWatermarkMs, records, tasks: [], followers },
    ]);
    const [waiting] = await chains.waitingOf("second");
    if (waiting === undefined) throw new Error("no slot waits");
    const step = { slot: waiting, record: { ...slot(5, "skipped"), detail: "predecessor" }, tasks: [] };
    await Promise.all([chains.endWaiting(step, newWatermarkMs), chains.endWaiting(step, newWatermarkMs)]);
    expect(await sumsOf("second")).toMatchObject({ skippedSlots: 1, missedSlots: 0 });
  });
});
