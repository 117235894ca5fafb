import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PrivateRedis } from "../../../scripts/redis.mjs";
import { RedisGuard } from "../../../src/app/redis-guard.ts";
import { openStore, redisTimeMs } from "../../../src/store/redis.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { journalTask } from "../../support/journal-task.ts";
import { type Fixture, openFixture, useEverything } from "../../support/redis-round-trip.ts";
import { clientOf, startSentinel, startServer, until } from "../../support/redis-servers.ts";

/** Longer than Sentinels do nothing on a busy machine (test/support/redis-servers.ts). */
const failoverMs = 150_000;
/** How many starts at most wait for the end of a failover. */
const waitingMax = 300;
let servers: PrivateRedis[];
let sentinel: ReturnType<typeof clientOf>;
let fixture: Fixture;

beforeAll(async () => {
  const master = await startServer();
  const args = ["--replicaof", "127.0.0.1", `${master.port}`];
  servers = [master, await startServer({ args }), await startServer({ args })];
  await until(() => inStep(master), isTwo);
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(master.port, 2)));
  sentinel = clientOf(sentinels[0] ?? 0);
  await until(
    () => sentinel.call("SENTINEL", "CKQUORUM", "main").catch(() => ""),
    (answer) => String(answer).startsWith("OK 3 usable"),
  );
  await until(
    () => sentinel.call("SENTINEL", "REPLICAS", "main"),
    (answer) => servers.slice(1).every(({ port }) => JSON.stringify(answer).includes(`${port}`)),
  );
  const hosts = sentinels.map((port) => `127.0.0.1:${port}`).join(",");
  fixture = await openFixture({ url: `redis+sentinel://${hosts}/main`, prefix: "{syncline}" });
});
afterAll(() => fixture.stop());

const inStep = async ({ port }: PrivateRedis) =>
  (await clientOf(port).info("replication")).match(/state=online/g)?.length ?? 0;
const isTwo = (count: number) => count === 2;

/** Another process on the same Redis. */
async function newProcess() {
  const store = await openStore(fixture.target);
  const guard = new RedisGuard({ store, log: fixture.log });
  await guard.start();
  const close = async () => {
    await guard.stop();
    await store.close();
  };
  return { journal: new StartJournal(store, guard.watch), close };
}

/**
 * Asks for a start until the answer is one, as workers do; a Redis out of reach is asked again.
 * Until a permission whose answer was lost is taken back, another step has the claim.
 */
function startOne(journal: StartJournal, task: string, slotMs: number) {
  const ask = async () => {
    await journal.claim(task, "me");
    return journal.beginSending(journalTask(task), "me", { startByMs: slotMs + 3_600_000, slotMs, baseline: "" });
  };
  return until(
    () => ask().catch(() => "undecided"),
    (answer) => answer !== "undecided" && answer !== "lost-claim",
    failoverMs,
  ).catch(async (error: unknown) => {
    // Only the old master may have had what takes a permission back: a worker verifies it.
    if ((await journal.claim(task, "me")).state === "sending") return "in-doubt";
    throw error;
  });
}

/** Without those by a process that stood still for three seconds: it may have known more. */
const lossesWitnessed = () => fixture.log.named("redis.loss-detected").filter(({ kind }) => kind !== "unwitnessed");

describe("Redis behind Sentinels", () => {
  it("does everything that Syncline needs", async () => {
    await useEverything(fixture);
    await expect.poll(() => fixture.guard.reasons()).toEqual([]);
  });

  it("lets a request go out only when the replicas have its intent", async () => {
    expect(fixture.guard.watch.needsReplica).toBe(true);
    await expect.poll(() => fixture.guard.watch.reachReplicas(0)).toBe(true);
  });

  it("holds up starts in a planned failover, and loses none of them", async () => {
    const others = [await newProcess(), await newProcess()];
    const journals = [fixture.journal, ...others.map(({ journal }) => journal)];
    const answers: Promise<string>[] = [];
    let waiting = 0;
    const askAll = async () => {
      const slotMs = await redisTimeMs(fixture.store).catch(() => Date.now());
      for (const journal of waiting < waitingMax ? journals : []) {
        waiting += 1;
        const answer = startOne(journal, `planned-${answers.length}`, slotMs);
        answers.push(
          answer.finally(() => {
            waiting -= 1;
          }),
        );
      }
      return fixture.log.named("redis.changed").length;
    };
    await until(askAll, () => answers.length > 20);
    let orderedAtMs = Number.NEGATIVE_INFINITY;
    // A Sentinel that stood still in between does nothing for 30 s, and gives its failover up.
    const failOver = async () => {
      if (performance.now() - orderedAtMs > 45_000) {
        orderedAtMs = performance.now();
        await sentinel.call("SENTINEL", "FAILOVER", "main").catch(() => {});
      }
      return askAll();
    };
    await until(failOver, (changes) => changes > 0, failoverMs);
    const ends = new Set(await Promise.all(answers));
    ends.delete("in-doubt");
    if (fixture.log.named("redis.loss-detected").length > lossesWitnessed().length) ends.delete("loss");
    expect(ends).toEqual(new Set(["permitted"]));
    expect(lossesWitnessed()).toEqual([]);
    for (const { close } of others) await close();
  });

  it("goes on with the new master, and loses nothing that a replica had", async () => {
    const [, port] = (await sentinel.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")) as string[];
    const master = servers.find((server) => String(server.port) === port);
    if (master === undefined) throw new Error(`no server at ${port}`);
    await until(() => inStep(master), isTwo, failoverMs);
    const nowMs = await redisTimeMs(fixture.store);
    expect(await startOne(fixture.journal, "before", nowMs)).toBe("permitted");
    const changes = fixture.log.named("redis.changed").length;
    process.kill(master.pid, "SIGKILL");
    const seen = async () => ({
      changes: fixture.log.named("redis.changed").length,
      sentinel: await sentinel.call("SENTINEL", "MASTER", "main"),
    });
    await until(seen, (now) => now.changes > changes, failoverMs);
    await until(
      () => fixture.guard.reasons(),
      (reasons) => reasons.length === 0,
    );
    expect((await fixture.journal.claim("before", "somebody else")).state).toBe("sending");
    // The queue's connection may be back later than the guard's; callers add tasks again.
    await until(
      () => fixture.work().catch(() => ""),
      (id) => id !== "",
      failoverMs,
    );
    expect(await startOne(fixture.journal, "after", nowMs)).toBe("permitted");
    expect(lossesWitnessed()).toEqual([]);
  });
});
