// How fast what is due gets into the queue, and what waiting costs. Part of `npm run bench`.
//
// 10,000 policies are due in the same second, three times. Three ways, one after another, each in a
// process of its own on the same private Redis: Syncline; one node-cron task per policy that adds
// to BullMQ; one BullMQ job scheduler per policy. The delay is Redis's own: from the slot to the
// instant at which the queue's event stream says "waiting". Then 100,000 policies that are not due:
// how long the start takes and how much of a core 20 s of waiting cost.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { startPrivateRedis } from "../../scripts/redis.mjs";

const contenders = ["syncline", "node-cron", "job-schedulers"] as const;
const policies = process.argv[2] ?? "10000";
const idlePolicies = process.argv[3] ?? "100000";

const redis = await startPrivateRedis();
try {
  for (const contender of contenders) {
    await inProcess("contender.ts", [redis.url, contender, policies]);
  }
  await inProcess("idle.ts", [redis.url, "first-start", idlePolicies]);
  await inProcess("idle.ts", [redis.url, "restart", idlePolicies]);
} finally {
  await redis.stop();
}

async function inProcess(file: string, args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [fileURLToPath(new URL(file, import.meta.url)), ...args], { stdio: "inherit" });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${file} ${args.join(" ")} ended with ${code}`);
}
