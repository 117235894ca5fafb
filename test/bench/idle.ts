// What many policies cost that are not due: idle.ts REDIS_URL LABEL POLICIES. Started by
// schedule.ts.
import { Redis } from "ioredis";
import type { Policy } from "../../src/config/policy-set.ts";
import { silentLog } from "../../src/core/event-log.ts";
import { Scheduler } from "../../src/schedule/scheduler.ts";
import { openStore } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { testPolicy } from "../support/policies.ts";

const [url = "", label = "", count = "100000"] = process.argv.slice(2);
const idleMs = 20_000;
const dst = { gap: "next", overlap: "first" } as const;
const hour = (new Date().getUTCHours() + 6) % 24;

// Half of them at one of 600 instants in the hours around six hours from now, half spread over an
// hour then.
const scheduleOf = (index: number): Policy["schedule"] =>
  index % 2 === 0
    ? {
        kind: "cron",
        expressions: [`${(index / 2) % 60} ${(hour + (Math.floor(index / 120) % 10)) % 24} * * *`],
        timezone: "Europe/Vienna",
        dst,
        spreadMs: 0,
      }
    : { kind: "cron", expressions: [`0 ${hour} * * *`], timezone: "UTC", dst, spreadMs: 3_600_000 };
const policies = Array.from({ length: Number(count) }, (_, index) =>
  testPolicy({ name: `idle-${index}`, schedule: scheduleOf(index) }),
);

const store = await openStore({ url, prefix: "bench-idle" });
const redis = new Redis(url);
const startedAtMs = Date.now();
const scheduler = new Scheduler({
  policies,
  ledger: new SlotLedger(store),
  enqueue: async (tasks) => {
    throw new Error(`${tasks.length} tasks of policies that are not due`);
  },
  log: silentLog,
});
await scheduler.runOnce();
await scheduler.start();
const startMs = Date.now() - startedAtMs;
const redisBefore = await redisCpuSeconds();
const before = process.cpuUsage();
await new Promise((resolve) => setTimeout(resolve, idleMs));
const { user, system } = process.cpuUsage(before);
const redisCpu = (await redisCpuSeconds()) - redisBefore;
const percent = (seconds: number) => `${((seconds / (idleMs / 1_000)) * 100).toFixed(2)} %`;
process.stdout.write(
  `idle ${label.padEnd(12)} ${count} policies: start-up ${(startMs / 1_000).toFixed(2)} s, then ${percent((user + system) / 1_000_000)} of a core (Redis ${percent(redisCpu)}), ${Math.round(process.memoryUsage().rss / 1_048_576)} MiB\n`,
);
await scheduler.stop();
await store.close();
redis.disconnect();

async function redisCpuSeconds(): Promise<number> {
  const info = await redis.info("cpu");
  return ["used_cpu_sys", "used_cpu_user"]
    .map((name) => Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(info)?.[1]))
    .reduce((sum, seconds) => sum + seconds, 0);
}
