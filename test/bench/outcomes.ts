// What outcomes cost in Redis, and how quickly they are read: outcomes.ts [--policies 100] [--each
// 1000]. A private Redis, the real history. Prints the bytes of an outcome, of a policy and of all,
// and how long the reading over all policies takes.
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { FailedTasks } from "../../src/store/failed-tasks.ts";
import { History } from "../../src/store/history.ts";
import { openStore } from "../../src/store/redis.ts";
import { testOutcome } from "../support/outcomes.ts";
import { redisBytes } from "./redis-figures.ts";

const { values: given } = parseArgs({
  options: { policies: { type: "string", default: "100" }, each: { type: "string", default: "1000" } },
});
const [policies, each] = [Number(given.policies), Number(given.each)];
const server = await startPrivateRedis();
const redis = new Redis(server.url);
const store = await openStore({ url: server.url, prefix: "{bench}" });
const history = new History(store);
const names = Array.from({ length: policies }, (_, index) => `contracts-nightly-${index}`);
const startMs = Date.parse("2026-11-21T00:00:00Z");
const atOnce = 100;

const emptyBytes = await redisBytes(redis);
for (let turn = 1; turn <= each; turn += 1) {
  for (let from = 0; from < policies; from += atOnce)
    await Promise.all(names.slice(from, from + atOnce).map((policy, index) => end(policy, turn, from + index)));
}
// What was noted for telling is taken away by those who tell it.
await redis.del("{bench}:unpublished");
const bytes = (await redisBytes(redis)) - emptyBytes;
const [policy = ""] = names;
const usage = async (key: string) => Number(await redis.memory("USAGE", `{bench}:${key}:${policy}`, "SAMPLES", 0));
const [hash, index] = [await usage("outcomes"), await usage("outcome-index")];
say(
  `a policy with ${each}: ${Math.round((hash + index) / 1024)} KiB (hash ${hash}, index ${index}), ${Math.round((hash + index) / each)} B an outcome`,
);
say(
  `${policies} policies with ${each} each: ${(bytes / 1_048_576).toFixed(1)} MiB in all, ${Math.round(bytes / policies / 1024)} KiB a policy`,
);
await time("the newest 20 of all", () => history.newest(20));
await time("the newest 20,000 of all", () => history.newest(20_000));
await time("the newest 1,000 of one", () => history.newest(1_000, policy));
await time("the failed list", () => new FailedTasks(store).all());
await store.close();
redis.disconnect();
await server.stop();

/** Every twentieth fails; the policies take turns. */
function end(name: string, turn: number, place: number): Promise<unknown> {
  const slotMs = startMs + turn * 1_800_000 + place;
  const outcome = testOutcome({
    ...{ taskId: `${name}__run__4211__${Math.floor(slotMs / 1_000)}`, policy: name, target: "4211" },
    ...{ slot: new Date(slotMs).toISOString(), startedAt: new Date(slotMs + 40).toISOString() },
    finishedAt: new Date(slotMs + 61_000).toISOString(),
    status: (turn + place) % 20 === 0 ? "failed" : "succeeded",
    confidence: "certain",
    detail: "1 activity finished without errors, 0 new conflicts",
  });
  return history.record(outcome);
}

async function time(what: string, read: () => Promise<readonly unknown[]>): Promise<void> {
  const atMs = performance.now();
  const { length } = await read();
  say(`${what}: ${length} in ${Math.round(performance.now() - atMs)} ms`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
