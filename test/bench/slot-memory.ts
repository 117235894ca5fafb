// What slot records cost in Redis: slot-memory.ts [REDIS_URL], a private Redis unless given. Prints
// the table of docs/running.md.
import { findRedis, startPrivateRedis } from "../../scripts/redis.mjs";
import type { SlotPlan } from "../../src/schedule/plan-slots.ts";
import { toRecords } from "../../src/schedule/slot-tasks.ts";
import { openStore } from "../../src/store/redis.ts";
import { SlotLedger, slotRecordsMax } from "../../src/store/slot-ledger.ts";
import { testPolicy } from "../support/policies.ts";

const given = process.argv[2];
const found = given === undefined ? await findRedis() : { kind: "url" as const, url: given };
const server =
  found.kind === "url" ? { url: found.url, stop: async () => {} } : await startPrivateRedis({ server: found });
const store = await openStore({ url: server.url, prefix: "bench-memory" });
const ledger = new SlotLedger(store);
const startMs = Date.parse("2026-11-21T00:00:00Z");
const slots = Array.from({ length: slotRecordsMax }, (_, index) => startMs + (index + 1) * 300_000);
const jobs = (count: number) => Array.from({ length: count }, (_, index) => 4_200 + index);

const cases: readonly (readonly [label: string, syncJobs: number, plan: (slotMs: number) => SlotPlan])[] = [
  ["started, 1 sync job", 1, (slotMs) => ({ slotMs, state: "started", covers: [] })],
  ["started, 50 sync jobs", 50, (slotMs) => ({ slotMs, state: "started", covers: [] })],
  ["coalesced", 1, (slotMs) => ({ slotMs, state: "coalesced", into: slotMs + 300_000 })],
  [
    "skipped by a pause, note of 30 characters",
    1,
    (slotMs) => ({ slotMs, state: "skipped", reason: "paused", note: "release 14 of the HR (ada@desk)" }),
  ],
];

for (const [label, syncJobs, plan] of cases) {
  const name = `contracts-nightly-${label.replace(/\W+/g, "-")}`;
  const policy = testPolicy({ name, action: { kind: "run", syncJobs: jobs(syncJobs) } });
  await ledger.openWatermarks([{ policy: name, schedule: "bench" }], startMs);
  const records = toRecords(policy, slots.map(plan));
  await ledger.record([
    { policy: name, expectedWatermarkMs: startMs, newWatermarkMs: slots.at(-1) ?? startMs, records, tasks: [] },
  ]);
  const bytes = async (key: string) => Number(await store.redis.memory("USAGE", store.key(key, name), "SAMPLES", 0));
  const [hash, index] = await Promise.all([bytes("slots"), bytes("slot-index")]);
  const each = Math.round((hash + index) / slots.length);
  const text = JSON.stringify(records[0]).length;
  process.stdout.write(`| ${label} | ${each} B (hash ${hash}, index ${index}, JSON ${text} each) |\n`);
}
for (const syncJobs of [1, 50, 1_000]) {
  const policy = testPolicy({ name: `first-of-chain-${syncJobs}`, action: { kind: "run", syncJobs: jobs(syncJobs) } });
  const { name } = policy;
  const next = `next-of-chain-${syncJobs}`;
  const followers = [{ policy: next, after: name, followers: 0, schedule: "bench" }];
  await ledger.openWatermarks(
    [name, next].map((one) => ({ policy: one, schedule: "bench" })),
    startMs,
  );
  const [slotMs = 0] = slots;
  const records = toRecords(policy, [{ slotMs, state: "started", covers: [] }]);
  await ledger.record([
    { policy: name, expectedWatermarkMs: startMs, newWatermarkMs: slotMs, records, tasks: [], followers },
  ]);
  const tally = store.key("join-counter", name, String(slotMs));
  // As it is when all tasks have ended and none has been taken away yet: its largest.
  for (const job of jobs(syncJobs)) await store.redis.hset(tally, `=${job}`, "succeeded", `~${job}`, "1");
  const usage = Number(await store.redis.memory("USAGE", tally, "SAMPLES", 0));
  process.stdout.write(`| tally of a slot, ${syncJobs} sync jobs, all ended | ${usage} B |\n`);
}
const kept = await store.redis.keys("bench-memory:*");
await store.redis.del(...kept);
await store.close();
await server.stop();
