// What stands between a claim and its request when Redis may have lost something
// (src/store/lua/include/fence.lua), condition by condition: what the watch says is written by hand
// here.
import { beforeEach, describe, expect, it } from "vitest";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { RedisWatch } from "../../../src/store/redis-watch.ts";
import type { Permission } from "../../../src/store/start-entry.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { journalTask as task } from "../../support/journal-task.ts";
import { storeForTest } from "../../support/redis.ts";

let watch: RedisWatch;
let journal: StartJournal;
let starts = 0;

const store = await storeForTest();
beforeEach(async () => {
  await store.redis.del(store.key("watch"), store.key("losses"), store.key("processes"));
  watch = new RedisWatch(store);
  watch.mayStart = true;
  await watch.check();
  // As if it had been the same Redis for long.
  await note({ since: 1 });
  journal = new StartJournal(store, watch);
});

const note = (fields: Readonly<Record<string, string | number>>) => store.redis.hset(store.key("watch"), fields);
const startByMs = 9_999_999_999_999;

/** Asks for the permission of a new start in each of the three ways; they must agree. */
async function permission(slotMs: number, startBy = startByMs): Promise<Permission | "not at once" | "disagree"> {
  starts += 1;
  const intent = { startByMs: startBy, slotMs };
  const [first, again, short] = [`first-${starts}`, `again-${starts}`, `short-${starts}`];
  await journal.claim(first, "me");
  const answer = await journal.beginSending(task(first), "me", { ...intent, baseline: "" });
  const unwatched = new StartJournal(store);
  await unwatched.claim(again, "me");
  await unwatched.beginSending(task(again), "me", { startByMs, baseline: "" });
  const second = await journal.beginSendingAgain(task(again), "me", { ...intent, sends: 1, sender: "me" });
  const atOnce = await journal.tryBeginSending(task(short), "me", {
    ...intent,
    takesLease: false,
    notesFeed: false,
  });
  const isSame = second === answer && (atOnce !== undefined) === (answer === "permitted");
  return isSame ? answer : "disagree";
}

describe("the losses since an instant", () => {
  it("are not known while a start would wait, and those that ended before are left out", async () => {
    await store.redis.zadd(store.key("losses"), 100, "50:100", 300, "200:300");
    expect(await watch.lossesSince(100)).toEqual([
      { fromMs: 50, untilMs: 100 },
      { fromMs: 200, untilMs: 300 },
    ]);
    expect(await watch.lossesSince(101)).toEqual([{ fromMs: 200, untilMs: 300 }]);
    for (const changed of [{ runId: "another" }, { term: "another" }, { permits: "0" }]) {
      const [name = ""] = Object.keys(changed);
      const before = await store.redis.hget(store.key("watch"), name);
      await note(changed);
      expect(await watch.lossesSince(101)).toBeUndefined();
      await note({ [name]: before ?? "" });
    }
  });
});

describe("a start", () => {
  it("is permitted where all is as it was at the last tick", async () => {
    expect(await permission(startByMs)).toBe("permitted");
  });

  it("waits while this process does not trust Redis, whatever the watch says", async () => {
    watch.mayStart = false;
    expect(await permission(startByMs)).toBe("undecided");
    watch.mayStart = true;
    expect(await permission(startByMs)).toBe("permitted");
  });

  it.each([
    ["another server process", { runId: "another" }],
    ["a term that this process has not seen", { term: "another" }],
    ["a term in which not every process has said yet what it remembers", { permits: "0" }],
  ])("waits in %s", async (_what, changed) => {
    await note(changed);
    expect(await permission(startByMs)).toBe("undecided");
  });

  it("waits for three seconds of a new term where it was due before it", async () => {
    const nowMs = await redisTimeMs(store);
    await note({ since: nowMs + 600_000 });
    expect(await permission(nowMs + 599_999)).toBe("undecided");
    expect(await permission(nowMs + 600_000)).toBe("permitted");
    await note({ since: nowMs - 3_001 });
    expect(await permission(nowMs - 60_000)).toBe("permitted");
  });

  it.each([
    [2_001, startByMs, "permitted"],
    [2_000, startByMs, "loss"],
    [500, startByMs, "loss"],
  ] as const)("when Redis lost 1,000 to 2,000: due at %i, to be started until %i, %s", async (...row) => {
    const [slotMs, startBy, becomes] = row;
    await store.redis.zadd(store.key("losses"), 2_000, "1000:2000");
    expect(await permission(slotMs, startBy)).toBe(becomes);
  });

  it("is not lost where it could only be started before the loss", async () => {
    const nowMs = await redisTimeMs(store);
    const [fromMs, untilMs] = [nowMs + 120_000, nowMs + 240_000];
    await store.redis.zadd(store.key("losses"), untilMs, `${fromMs}:${untilMs}`);
    expect(await permission(1, fromMs - 1)).toBe("permitted");
    expect(await permission(1, fromMs)).toBe("loss");
  });
});

it("a Redis that went back a minute counts as another one: its writes are lost", async () => {
  const begunMs = await redisTimeMs(store);
  // Terms are named after the millisecond in which they begin.
  await expect.poll(() => redisTimeMs(store)).toBeGreaterThan(begunMs);
  const nowMs = await redisTimeMs(store);
  await note({ stamp: nowMs - 60_000 });
  const { beganTerm, losses } = await watch.check();
  expect(beganTerm).toBe(true);
  expect(losses).toEqual([{ kind: "went-back", fromMs: nowMs - 65_000, untilMs: expect.any(Number) }]);
  expect(losses[0]?.untilMs).toBeGreaterThan(nowMs - 60_000);
  expect(await permission(startByMs)).toBe("undecided");
});
