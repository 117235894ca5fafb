// A policy that needs the work of another: the scheduler on a real ledger and a real history.
import { expect, it } from "vitest";
import { createInputReader } from "../../../src/app/planning-inputs.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { type TaskIdentity, taskId } from "../../../src/model/task.ts";
import { Scheduler } from "../../../src/schedule/scheduler.ts";
import { History } from "../../../src/store/history.ts";
import { PollStore } from "../../../src/store/poll-store.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { testPolicy } from "../../support/policies.ts";
import { storeForTest } from "../../support/redis.ts";

const store = await storeForTest();
const ledger = new SlotLedger(store);
const start = Date.parse("2026-11-21T00:00:00Z");
const minute = 60_000;
const orders = testPolicy({ name: "orders", schedule: undefined, action: { kind: "run", syncJobs: [1, 2] } });
const report = testPolicy({
  name: "report",
  schedule: { kind: "every", everyMs: minute, spreadMs: 0 },
  needs: { policy: "orders", withinMs: 10 * minute },
});
let nowMs = start;
const scheduler = () =>
  new Scheduler({
    policies: [orders, report],
    ledger: {
      nowMs: async () => nowMs,
      openWatermarks: (...args) => ledger.openWatermarks(...args),
      record: (steps) => ledger.record(steps),
      confirmQueued: (steps) => ledger.confirmQueued(steps),
      unqueued: async () => [],
      drop: (policies) => ledger.drop(policies),
      tidy: (...args) => ledger.tidy(...args),
    },
    enqueue: async () => {},
    inputs: createInputReader((name) => (name === "orders" ? orders : undefined), store),
    log: silentLog,
  });

async function end(target: string, atMinute: number, changes: Parameters<typeof testOutcome>[0] = {}): Promise<void> {
  const finishedAt = new Date(start + atMinute * minute).toISOString();
  const taskId = `orders__run__${target}__${start / 1_000 + atMinute}`;
  await new History(store).record(testOutcome({ taskId, policy: "orders", target, finishedAt, ...changes }));
}

it("skips a slot unless every sync job of its input ended well recently", async () => {
  const replicas = [scheduler(), scheduler(), scheduler()];
  const lookAt = async (atMinute: number) => {
    nowMs = start + atMinute * minute;
    await Promise.all(replicas.map((one) => one.runOnce()));
    const records = await ledger.slots("report", 100);
    expect(records.filter(({ slotMs }) => slotMs === nowMs)).toHaveLength(1);
    const { state, detail, note } = records[0] ?? {};
    return [state, detail, note].filter(Boolean).join(" ");
  };
  await Promise.all(replicas.map((one) => one.runOnce()));
  const never = "skipped stale-input orders has not ended well within 10m: no good end is known";
  expect(await lookAt(1)).toBe(never);
  await end("1", 1.5);
  expect(await lookAt(2)).toBe(never);
  await end("2", 2.5, { status: "unknown", reason: "answer-lost", evidence: "none" });
  expect(await lookAt(3)).toBe(never);
  await end("2", 3.5, { status: "conflicts", reason: "new-conflicts", newConflicts: 3 });
  expect(await lookAt(4)).toBe("started");
  expect(await lookAt(11)).toBe("started");
  expect(await lookAt(12)).toBe(
    "skipped stale-input orders has not ended well within 10m: the last good end was at 2026-11-21 00:01:30Z",
  );
  await end("1", 12.1, { status: "failed", reason: "refused" });
  expect(await lookAt(13)).toContain("was at 2026-11-21 00:01:30Z");
  await end("1", 13.1, { evidence: "inferred", origin: "manual" });
  expect(await lookAt(13.5 + 0.5)).toContain("was at 2026-11-21 00:03:30Z");
  await end("2", 14.5);
  expect(await lookAt(15)).toBe("started");
});

it("asks of masks for all sync jobs that their newest slot named, ended or not", async () => {
  const masked = testPolicy({ name: "masked", action: { kind: "run", fromMasks: {} } });
  const read = createInputReader(() => masked, store);
  const idOf = (target: string, atMinute: number, origin: TaskIdentity["origin"] = "schedule") =>
    taskId({ policy: "masked", kind: "run", target, slotMs: start + atMinute * minute, origin });
  const endOf = async (target: string, atMinute: number, origin?: TaskIdentity["origin"]) => {
    const [slot, finishedAt] = [atMinute, atMinute + 1].map((at) => new Date(start + at * minute).toISOString());
    const times = { slot: slot ?? "", finishedAt: finishedAt ?? "" };
    const named = { taskId: idOf(target, atMinute, origin), policy: "masked", target, origin: origin ?? "schedule" };
    await new History(store).record(testOutcome({ ...named, ...times }));
  };
  const successAt = async () => ((await read(["masked"])).get("masked") ?? Number.NaN) / minute - start / minute;
  const fanOut = (atMinute: number) =>
    new StartJournal(store).noteFannedOut(idOf("masks", atMinute), [idOf("42", atMinute), idOf("43", atMinute)]);
  await fanOut(1);
  await endOf("42", 1);
  await endOf("43", 1);
  await fanOut(5);
  await endOf("42", 5);
  expect(await successAt()).toBe(2);
  await endOf("43", 5);
  expect(await successAt()).toBe(6);
  await endOf("42", 8, "manual");
  expect(await successAt()).toBe(6);
});

it("is not made fresh by a poll whose expectation is not met", async () => {
  const watch = testPolicy({ name: "watch", action: { kind: "poll", list: "approvals", expect: "count == 0" } });
  const read = createInputReader(() => watch, store);
  const polls = new PollStore(store);
  const feed = { service: "main", repository: watch.repository ?? null, list: "approvals" } as const;
  const history = new History(store, { limits: { count: 1, forMs: 86_400_000 } });
  const goodAfter = async (atMinute: number, changes: Parameters<typeof testOutcome>[0] = {}) => {
    const slotMs = start + atMinute * minute;
    const at = new Date(slotMs).toISOString();
    const named = { policy: "watch", kind: "poll", target: "approvals", origin: "schedule" } as const;
    const ended = { taskId: taskId({ ...named, slotMs }), ...named, slot: at, finishedAt: at, ...changes };
    const outcome = testOutcome(ended);
    const { revision } = await polls.read("watch", feed);
    const state = outcome.status === "succeeded" ? "good" : outcome.status === "failed" ? "bad" : "unknown";
    await history.record(outcome, undefined, { revision, feed, state, observation: undefined });
    return ((await read(["watch"])).get("watch") ?? Number.NaN) / minute - start / minute;
  };
  const unmet = { status: "failed", reason: "expectation-not-met" } as const;
  expect(await goodAfter(1, unmet)).toBeNaN();
  expect(await goodAfter(2)).toBe(2);
  expect(await goodAfter(3, unmet)).toBe(2);
  expect(await goodAfter(4, { status: "unknown", reason: "server-error" })).toBe(2);
  expect(await goodAfter(5)).toBe(5);
  // Redis no longer keeps the outcome that met it.
  for (let atMinute = 6; atMinute < 40; atMinute += 1) expect(await goodAfter(atMinute, unmet)).toBe(5);
});
