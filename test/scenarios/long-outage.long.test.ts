import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scheduleText } from "../../src/schedule/slots.ts";
import { History } from "../../src/store/history.ts";
import { openStore, type Store } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { redisForTest } from "../support/redis.ts";
import { startWorld, type World } from "../support/world.ts";

const redis = redisForTest();
const minute = 60_000;
// The newest slot is between one and two minutes old, so that none comes due while the tests run:
// the next one in three minutes at the earliest.
const offset = (Math.floor(Date.now() / minute) - 1) % 5;
const newestMs = Math.floor(Date.now() / minute) * minute - minute;
const slots = Array.from({ length: 36 }, (_, index) => newestMs - (35 - index) * 5 * minute);
const schedule = `schedule: { cron: "${offset}-59/5 * * * *" }`;

let world: World;
let store: Store;
let ledger: SlotLedger;

// As replicas have left it that all died three hours ago, right after a look. Nothing else is made
// up: the time is Redis's own.
beforeAll(async () => {
  world = await startWorld({
    redis,
    sandbox: { runMs: [50, 100], activities: 0 },
    pace: { gapMs: 20, fastestMs: 60, slowestMs: 500 },
    policies: `
  - { name: one-for-all, service: main, run: { syncJobs: [1] }, ${schedule} }
  - { name: not-late, service: main, run: { syncJobs: [2] }, ${schedule}, catchUp: none }
  - { name: every-one, service: main, run: { syncJobs: [3] }, ${schedule}, catchUp: all, catchUpWindow: 4h, overlap: queue }
  - { name: every-young-one, service: main, activate: { syncJobs: [4] }, ${schedule}, catchUp: all }`,
    before: async (target, set) => {
      store = await openStore(target);
      ledger = new SlotLedger(store);
      const scheduled = set.policies.map((policy) => ({
        policy: policy.name,
        schedule: scheduleText(policy) ?? "",
      }));
      await ledger.openWatermarks(scheduled, newestMs - 36 * 5 * minute);
    },
  });
});
afterAll(async () => {
  await world.stop();
  await store.close();
});

const starts = (syncJob: number) =>
  world.sandbox.ledger().filter(({ operation, key }) => operation === "RunSyncJob" && key === String(syncJob));

// The runs of a sync job as the service saw them, oldest first.
async function runs(syncJob: number): Promise<{ startedAt: string; finishedAt: string }[]> {
  const answer = await fetch(`${world.sandbox.baseUrl}/odata/synchronizationactivities`, {
    headers: { authorization: `Bearer ${world.sandbox.token}` },
  });
  const { value } = (await answer.json()) as { value: { syncJobId: number; startedAt: string; finishedAt: string }[] };
  return value.filter((run) => run.syncJobId === syncJob).sort((a, b) => a.startedAt.localeCompare(b.startedAt));
}

describe("after three hours without any replica, 36 slots of a policy", () => {
  it("end in one run that names them all, with `latest`", async () => {
    await world.log.until(({ event, policy }) => event === "task.finished" && policy === "one-for-all");
    const { records } = await ledger.holdings("one-for-all");
    const into = new Date(newestMs).toISOString();
    expect(records.map(({ slotMs, state, detail }) => [slotMs, state, detail])).toEqual([
      ...slots.slice(0, -1).map((slotMs) => [slotMs, "coalesced", into]),
      [newestMs, "started", ""],
    ]);
    const coveredSlots = slots.slice(0, -1).map((slotMs) => new Date(slotMs).toISOString());
    expect(world.log.outcomesOf("one-for-all")).toMatchObject([{ covers: 35, coveredSlots, slot: into }]);
    expect(await new History(store).newest(100, "one-for-all")).toMatchObject([{ covers: 35, coveredSlots }]);
    expect(starts(1)).toHaveLength(1);
  });

  it("end in 36 missed records and no run, with `none`", async () => {
    await world.log.until(({ event, policy, slot }) => {
      return event === "slot.missed" && policy === "not-late" && slot === new Date(newestMs).toISOString();
    });
    const { records } = await ledger.holdings("not-late");
    expect(records.map(({ slotMs, state, detail }) => [slotMs, state, detail])).toEqual(
      slots.map((slotMs) => [slotMs, "missed", "catch-up-none"]),
    );
    expect(starts(2)).toEqual([]);
  });

  it("are missed with `all` outside the window, which is an hour by default", async () => {
    await world.log.until(({ event, policy }) => event === "task.finished" && policy === "every-young-one");
    const { records } = await ledger.holdings("every-young-one");
    const states = records.map(({ state, detail }) => [state, detail]);
    expect(states).toEqual([
      ...Array.from({ length: 24 }, () => ["missed", "outside-window"]),
      ...Array.from({ length: 12 }, () => ["started", ""]),
    ]);
  });

  it("end in 36 runs with `all`, one after another and never two at once", async () => {
    const ended = () => world.log.outcomesOf("every-one").length;
    await expect.poll(ended, { interval: 100, timeout: 200_000 }).toBeGreaterThanOrEqual(36);
    // A further slot may come due while the 36 run.
    const records = (await ledger.holdings("every-one")).records.filter(({ slotMs }) => slotMs <= newestMs);
    expect(records.map(({ slotMs, state }) => [slotMs, state])).toEqual(slots.map((slotMs) => [slotMs, "started"]));
    expect(starts(3)).toHaveLength(36);
    expect(new Set(starts(3).map(({ idempotencyKey }) => idempotencyKey)).size).toBe(36);
    expect(await new History(store).newest(100, "every-one")).toHaveLength(36);
    const seen = await runs(3);
    expect(seen).toHaveLength(36);
    const overlapping = seen.filter(({ startedAt }, index) => startedAt < (seen[index - 1]?.finishedAt ?? ""));
    expect(overlapping).toEqual([]);
  });
});
