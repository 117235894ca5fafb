import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore, redisTimeMs, type Store } from "../../../src/store/redis.ts";
import { RedisWatch } from "../../../src/store/redis-watch.ts";
import type { Permission } from "../../../src/store/start-entry.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { journalTask } from "../../support/journal-task.ts";
import { clientOf, startForgetfulServer, until } from "../../support/redis-servers.ts";

const server = await startForgetfulServer();
const admin = clientOf(server.port);
const stores: Store[] = [];
let startMs: number;

/** One process: its store, what it remembers, and its journal. */
async function newProcess(): Promise<{ watch: RedisWatch; journal: StartJournal; store: Store }> {
  const store = await openStore({ url: server.url, prefix: "{watch}" });
  stores.push(store);
  const watch = new RedisWatch(store);
  watch.mayStart = true;
  return { store, watch, journal: new StartJournal(store, watch) };
}

/** Claims and asks, as a worker does; `slotMs` is the task's slot. */
async function ask(journal: StartJournal, task: string, slotMs = startMs): Promise<Permission> {
  await journal.claim(task, "me");
  return journal.beginSending(journalTask(task), "me", { startByMs: startMs + 3_600_000, slotMs, baseline: "" });
}

/** Asks and ticks, as a process does, until the answer is one. */
const askUntilDecided = ({ watch, journal }: { watch: RedisWatch; journal: StartJournal }, task: string) =>
  until(
    async () => {
      await watch.check();
      return ask(journal, task);
    },
    (answer) => answer !== "undecided",
  );

beforeEach(async () => {
  await admin.flushall();
  // Somebody was here before: tasks that were due before the very first tick wait a little.
  const { watch, store } = await newProcess();
  await watch.check();
  await watch.leave();
  startMs = (await redisTimeMs(store)) + 1;
});
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

describe("a Redis that stays the one it was", () => {
  it("delays no start, and stays the same after a restart without loss", async () => {
    const one = await newProcess();
    expect(await one.watch.check()).toEqual({ beganTerm: false, isOtherTerm: false, losses: [] });
    expect(await ask(one.journal, "a")).toBe("permitted");
    await one.watch.check();
    await server.restart();
    expect(
      await until(
        () => one.watch.check().catch(() => undefined),
        (tick) => tick !== undefined,
      ),
    ).toEqual({
      beganTerm: true,
      isOtherTerm: true,
      losses: [],
    });
    expect(await ask(one.journal, "b")).toBe("undecided");
    expect(await askUntilDecided(one, "b")).toBe("permitted");
    expect((await one.journal.claim("a", "other")).state).toBe("sending");
  });

  it("permits nothing before the first tick, nor while its memory is another one", async () => {
    await admin.flushall();
    const one = await newProcess();
    startMs = (await redisTimeMs(one.store)) + 600_000;
    expect(await ask(one.journal, "a")).toBe("undecided");
    await one.watch.check();
    expect(await ask(one.journal, "a")).toBe("permitted");
    await admin.hset("{watch}:watch", "term", "another");
    expect(await ask(one.journal, "b")).toBe("undecided");
  });
});

describe("a Redis that lost the newest writes", () => {
  it("is detected by a process that remembers them; no start is repeated", async () => {
    const one = await newProcess();
    const two = await newProcess();
    await one.watch.check();
    await two.watch.check();
    const writtenThen = server.written();
    expect(await ask(one.journal, "sent")).toBe("permitted");
    await one.watch.check();
    await server.restart(writtenThen);

    // The task is delivered again, to somebody who does not know that it was sent.
    expect((await two.journal.claim("sent", "me")).state).toBe("claimed");
    expect(await ask(two.journal, "sent")).toBe("undecided");
    await two.watch.check();
    expect(await ask(two.journal, "sent")).toBe("undecided");
    const [loss] = (await one.watch.check()).losses;
    expect(loss?.kind).toBe("went-back");
    expect((loss?.untilMs ?? 0) - (loss?.fromMs ?? 0)).toBeLessThan(30_000);
    expect(await askUntilDecided(two, "sent")).toBe("loss");
    // One that came later knows it from Redis.
    const three = await newProcess();
    await three.watch.check();
    expect(await ask(three.journal, "sent")).toBe("loss");
    expect(await ask(three.journal, "later", (loss?.untilMs ?? 0) + 1)).toBe("permitted");
    expect((await three.watch.check()).losses).toEqual([]);
  });

  it("is not trusted by a process that remembers nothing, when others died with it", async () => {
    const dead = await newProcess();
    await dead.watch.check();
    const writtenThen = server.written();
    expect(await ask(dead.journal, "sent")).toBe("permitted");
    await server.restart(writtenThen);
    const fresh = await newProcess();
    const first = await fresh.watch.check();
    expect(first).toEqual({ beganTerm: true, isOtherTerm: false, losses: [] });
    expect(await ask(fresh.journal, "sent")).toBe("undecided");
    // Time is given to the others to come by; they do not.
    const { losses } = await until(
      () => fresh.watch.check(),
      (tick) => tick.losses.length > 0,
    );
    expect(losses.map(({ kind }) => kind)).toEqual(["unwitnessed"]);
    expect(await ask(fresh.journal, "sent")).toBe("loss");
  });

  it("is trusted when all had ended in order before", async () => {
    const ended = await newProcess();
    await ended.watch.check();
    await ended.watch.leave();
    await server.restart();
    const fresh = await newProcess();
    const tick = await fresh.watch.check();
    expect(tick.losses).toEqual([]);
    const answer = await until(
      async () => {
        expect((await fresh.watch.check()).losses).toEqual([]);
        return ask(fresh.journal, "queued");
      },
      (one) => one !== "undecided",
    );
    expect(answer).toBe("permitted");
  });

  it("has lost as much as the process that remembers most", async () => {
    const one = await newProcess();
    const two = await newProcess();
    await one.watch.check();
    const writtenThen = server.written();
    await one.watch.check();
    await two.watch.check();
    await server.restart(writtenThen);
    const [first] = (await one.watch.check()).losses;
    const [second] = (await two.watch.check()).losses;
    expect([first?.kind, second?.kind]).toEqual(["went-back", "went-back"]);
    expect(second?.fromMs).toBe(first?.fromMs);
    expect(second?.untilMs).toBeGreaterThan(first?.untilMs ?? 0);
    expect((await one.watch.check()).losses).toEqual([]);
    // What each of them remembers is one loss.
    const span = { fromMs: first?.fromMs, untilMs: second?.untilMs };
    const noted = await until(
      async () => (await one.watch.check()) && one.watch.lossesSince(0),
      (losses) => losses !== undefined,
    );
    expect(noted).toEqual([span]);
  });

  it("lost an unseen write when only the intent is gone and no tick", async () => {
    const one = await newProcess();
    await one.watch.check();
    const writtenThen = server.written();
    expect(await ask(one.journal, "sent")).toBe("permitted");
    await server.restart(writtenThen);
    const { losses } = await one.watch.check();
    expect(losses.map(({ kind }) => kind)).toEqual(["went-back"]);
  });
});

describe("a Redis with replicas that went back to before ticks, and lacks no start", () => {
  it("has lost writes and no start: what was due meanwhile is started", async () => {
    const one = await newProcess();
    one.watch.needsReplica = true;
    await one.watch.check();
    const writtenThen = server.written();
    // Noted, and not permitted: no replica answers.
    expect(await ask(one.journal, "held")).toBe("undecided");
    await one.watch.check();
    await server.restart(writtenThen);
    const { losses } = await one.watch.check();
    expect(losses.map(({ kind }) => kind)).toEqual(["writes"]);
    one.watch.needsReplica = false;
    const another = await newProcess();
    expect(await askUntilDecided(another, "held")).toBe("permitted");
  });

  it("may have lost starts of a process that it has forgotten", async () => {
    const one = await newProcess();
    one.watch.needsReplica = true;
    await one.watch.check();
    const writtenThen = server.written();
    const forgotten = await newProcess();
    await forgotten.watch.check();
    await one.watch.check();
    await server.restart(writtenThen);
    expect((await one.watch.check()).losses.map(({ kind }) => kind)).toEqual(["went-back"]);
  });

  it("may have lost what was started while no replica was needed", async () => {
    const one = await newProcess();
    one.watch.needsReplica = true;
    await one.watch.check();
    const writtenThen = server.written();
    one.watch.needsReplica = false;
    expect(await ask(one.journal, "sent")).toBe("permitted");
    await one.watch.check();
    await server.restart(writtenThen);
    expect((await one.watch.check()).losses.map(({ kind }) => kind)).toEqual(["went-back"]);
  });
});

describe("a Redis that was emptied", () => {
  it("starts nothing again that was due before, and goes on with what is due after", async () => {
    const one = await newProcess();
    await one.watch.check();
    expect(await ask(one.journal, "sent")).toBe("permitted");
    await admin.flushall();
    expect(await ask(one.journal, "sent")).toBe("undecided");
    const [loss] = (await one.watch.check()).losses;
    expect([loss?.kind, loss?.fromMs]).toEqual(["flushed", 0]);
    expect(await askUntilDecided(one, "sent")).toBe("loss");
    expect(await ask(one.journal, "later", (loss?.untilMs ?? 0) + 1)).toBe("permitted");
  });

  it("is found out also when a process without memory came first", async () => {
    const one = await newProcess();
    await one.watch.check();
    expect(await ask(one.journal, "sent")).toBe("permitted");
    await admin.flushall();
    const fresh = await newProcess();
    await fresh.watch.check();
    expect((await one.watch.check()).losses).toMatchObject([{ kind: "flushed", fromMs: 0 }]);
    expect(await askUntilDecided(fresh, "sent")).toBe("loss");
    expect(await redisTimeMs(fresh.store)).toBeGreaterThan(startMs);
  });
});
