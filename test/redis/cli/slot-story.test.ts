import { expect, it, onTestFinished } from "vitest";
import { storyText } from "../../../src/cli/explain.ts";
import { tellStory } from "../../../src/cli/slot-story.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { Producer } from "../../../src/queue/producer.ts";
import { tasksOf, toRecords } from "../../../src/schedule/slot-tasks.ts";
import { ChainStore } from "../../../src/store/chain-store.ts";
import { History } from "../../../src/store/history.ts";
import { Leases } from "../../../src/store/leases.ts";
import { readLimiterStatus } from "../../../src/store/limiter-status.ts";
import { Pauses } from "../../../src/store/pauses.ts";
import { openStore, readPresence } from "../../../src/store/redis.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();

it("calls a task that is planned and not queued yet on its way, and then lost when it is nowhere", async () => {
  const store = await openStore(target);
  const producer = new Producer(target, silentLog);
  onTestFinished(async () => {
    await producer.close();
    await store.close();
  });
  const ledger = new SlotLedger(store);
  const policy = testPolicy({ name: "planned", action: { kind: "run", syncJobs: [1] } });
  const slotMs = Math.floor(Date.now() / 1_000) * 1_000;
  await ledger.marks([{ policy: policy.name, schedule: "" }], slotMs - 1);
  const planned = {
    policy: policy.name,
    expectedWatermarkMs: slotMs - 1,
    newWatermarkMs: slotMs,
    records: toRecords(policy, [{ slotMs, state: "started", covers: [] }]),
    tasks: tasksOf(policy, { slotMs, origin: "schedule", covers: [] }),
  };
  await ledger.record([planned]);
  const places = {
    ...{ ledger, producer, history: new History(store), journal: new StartJournal(store) },
    ...{ leases: new Leases(store), pauses: new Pauses(store), chains: new ChainStore(store) },
    limiter: (service: string) => readLimiterStatus(store, service),
    presence: () => readPresence(store),
  };
  const around = { slotMs, isSlot: true, reasons: [], previousMs: undefined, nextMs: undefined };
  const tell = () => tellStory(policy, { asked: null, around, nowMs: slotMs + 300 }, places);
  const story = await tell();
  expect(story.tasks).toMatchObject([{ isInFlight: true, queue: null, outcome: null }]);
  expect(storyText(story, "UTC", false)).toContain("no outcome yet: on its way into the queue");
  await ledger.confirmQueued([planned]);
  expect((await tell()).tasks).toMatchObject([{ isInFlight: false }]);
});
