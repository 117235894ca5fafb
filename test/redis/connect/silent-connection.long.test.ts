import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PrivateRedis } from "../../../scripts/redis.mjs";
import { openStore, redisTimeMs, type Store } from "../../../src/store/redis.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { journalTask } from "../../support/journal-task.ts";
import { clientOf, startProxy, startServer, type TcpProxy, until } from "../../support/redis-servers.ts";

let server: PrivateRedis;
let front: TcpProxy;
let store: Store;

beforeAll(async () => {
  server = await startServer();
  front = await startProxy(server.port);
  store = await openStore({ url: `redis://127.0.0.1:${front.port}`, prefix: "{syncline}" });
});
afterAll(() => store.close());

describe("a connection that went silent while commands are under way", () => {
  it("is left for a new one, instead of waiting until TCP tries again", async () => {
    front.swallowStanding();
    const answer = await until(
      () => redisTimeMs(store).catch(() => 0),
      (nowMs) => nowMs > 0,
      12_000,
    );
    expect(answer).toBeGreaterThan(0);
  });

  it("knows over the next one what a frozen Redis permitted when it thawed", async () => {
    const journal = new StartJournal(store);
    const startByMs = (await redisTimeMs(store)) + 3_600_000;
    const ask = (task: string) => journal.beginSending(journalTask(task), "me", { startByMs, baseline: "" });
    for (const task of ["known", "frozen"]) await journal.claim(task, "me");
    // Redis must know the scripts before: else the first it hears of them is their hash.
    expect(await ask("known")).toBe("permitted");
    await journal.takeBack(journalTask("known"), "me");
    process.kill(server.pid, "SIGSTOP");
    // The connection is given up after a silence that began before the request.
    const silence = store.redis.ping().catch(() => {});
    const closed = new Promise((resolve) => store.redis.once("close", resolve));
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    const asked = ask("frozen").catch(String);
    await closed;
    process.kill(server.pid, "SIGCONT");
    await Promise.all([silence, asked]);
    const admin = clientOf(server.port);
    const state = () => admin.hget("{syncline}:start:frozen", "state");
    const wanted = (await asked) === "permitted" ? "sending" : "claimed";
    expect(await until(state, (is) => is === wanted)).toBe(wanted);
  });

  it.each(["at once", "step by step"])(
    "does not lose a permission whose answer was lost, asked for %s",
    async (way) => {
      const journal = new StartJournal(store);
      const startByMs = (await redisTimeMs(store)) + 3_600_000;
      const task = journalTask(way);
      const ask = (one = task) =>
        way === "at once"
          ? journal.tryBeginSending(one, "me", { startByMs, takesLease: false, notesFeed: false })
          : journal.beginSending(one, "me", { startByMs, baseline: "" });
      for (const one of [task, journalTask(`${way} before`)]) await journal.claim(one.id, "me");
      // Redis must know the script before: else the first it hears of it is its hash.
      await ask(journalTask(`${way} before`));
      const admin = clientOf(server.port);
      front.swallowAnswers();
      const asked = ask();
      await until(
        () => admin.hget(`{syncline}:start:${task.id}`, "state"),
        (state) => state === "sending",
      );
      front.heal();
      expect(await asked).toEqual(way === "at once" ? { sentAtMs: expect.any(Number), pass: undefined } : "permitted");
      expect(await journal.claim(task.id, "another")).toMatchObject({ state: "sending", claimant: "me", sends: 1 });
    },
  );
});

describe("a process that was held up for longer than Redis may take", () => {
  it("takes the answers that have come meanwhile, instead of blaming Redis", async () => {
    const direct = await openStore({ url: server.url, prefix: "{syncline}" });
    const asked = redisTimeMs(direct);
    await holdUp(6_300);
    expect(await asked).toBeGreaterThan(0);
    await direct.close();
  });

  it("goes on to connect", async () => {
    const opening = openStore({ url: server.url, prefix: "{syncline}" });
    await holdUp(5_300);
    await (await opening).close();
  });
});

/** Lets what is written go out, and then nothing run: what comes back meanwhile waits. */
async function holdUp(forMs: number): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, forMs);
}
