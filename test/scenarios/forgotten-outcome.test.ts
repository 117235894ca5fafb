// Redis forgets an outcome that it had taken, while the queue is told that the task is over: nobody
// comes back to the task, so only who wrote the outcome can write it again.
import { afterEach, expect, it, vi } from "vitest";
import { History } from "../../src/store/history.ts";
import { openStore } from "../../src/store/redis.ts";
import { clientOf, startForgetfulServer, until } from "../support/redis-servers.ts";
import { type World, worldForTest } from "../support/world.ts";

const policies = `
  - name: story
    service: main
    repository: HR
    run: { syncJobs: [1] }
    schedule: { cron: "0 0 1 1 *" }
    follow: { until: accepted }`;

let world: World;
afterEach(() => vi.restoreAllMocks());

it("an outcome that Redis forgot, but the queue keeps, is written again unchanged", async () => {
  const server = await startForgetfulServer();
  // A lock that Redis finds again after its restart must not be over by then.
  world = await worldForTest({ redis: { url: server.url, prefix: "{forgotten}" }, policies, takeOverAfterMs: 20_000 });
  const client = clientOf(server.port);
  const stamp = () => client.hget(`${world.target.prefix}:watch`, "stamp");
  const record = History.prototype.record;
  vi.spyOn(History.prototype, "record").mockImplementationOnce(async function (this: History, ...args) {
    const [writtenThen, stampThen] = [server.written(), await stamp()];
    const answer = await record.apply(this, args);
    // Two stamps on, the process has heard of one that Redis will not have: it notices the loss.
    const next = await until(stamp, (now) => now !== stampThen);
    await until(stamp, (now) => now !== next);
    await server.restart(writtenThen);
    return answer;
  });
  await world.enqueue("story");
  const told = await world.log.until(({ event }) => event === "task.finished");
  await world.log.until(({ event }) => event === "redis.loss-detected");
  const store = await openStore(world.target);
  try {
    const history = new History(store);
    await until(
      () => world.actions("main"),
      ({ active, delayed }) => active + delayed === 0,
    );
    const kept = await until(
      () => history.outcome({ policy: String(told["policy"]), id: String(told["taskId"]) }),
      (outcome) => outcome !== undefined,
    );
    expect(kept).toMatchObject({ status: "accepted", reason: "answered", startedAt: told["startedAt"] });
    expect(await history.newest(10)).toHaveLength(1);
    expect(world.starts(1)).toBe(1);
    expect(world.log.named("task.finished")).toHaveLength(1);
  } finally {
    await store.close();
  }
});
