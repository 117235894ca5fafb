// Who reads a list for the polls of all replicas, and what a poll may be given.
import { describe, expect, it } from "vitest";
import { type Feed, feedId } from "../../../src/model/feed.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { type ReadingLimits, type ReadingTurn, SharedReadings } from "../../../src/store/shared-readings.ts";
import { storeForTest } from "../../support/redis.ts";

let number = 0;

const store = await storeForTest();

/** A list of its own, and what one task asks for. */
function setUp(limits?: ReadingLimits) {
  number += 1;
  const feed: Feed = { service: "main", repository: `R${number}`, list: "approvals" };
  const readings = new SharedReadings(store, limits);
  let tokens = 0;
  const ask = async (wish: { sinceMs?: number; afterMs?: number; turnOf?: string } = {}) => {
    tokens += 1;
    const { sinceMs = 0, afterMs = 0, turnOf } = wish;
    const token = `t${tokens}`;
    return { ...(await readings.ask(feed, "items", { token, sinceMs, afterMs, turnOf })), token };
  };
  /** Asks, is told to read, and shares these items. */
  const shareNow = async (items: readonly unknown[] | undefined) => {
    const turn = await ask({ sinceMs: 9e15 });
    if (turn.turn !== "read") throw new Error(turn.turn);
    const { token, beganAtMs } = turn;
    const pages = items === undefined ? undefined : [{ url: "https://x/1", items: [...items] }];
    const shared = await readings.share(feed, "items", { token, beganAtMs, count: items?.length ?? 0, pages });
    return { beganAtMs, ...shared };
  };
  return { feed, readings, ask, shareNow };
}

describe("a shared reading", () => {
  it("is read by the first caller; the others wait and get the service's bytes", async () => {
    const { feed, readings, ask } = setUp();
    const first = await ask();
    expect(first).toMatchObject({ turn: "read" });
    expect(await ask()).toMatchObject({ turn: "wait" });
    const items = [{ approvalId: "9007199254740993", itemName: "Entwurf ü", more: { deep: [1.5, null] } }];
    if (first.turn !== "read") throw new Error(first.turn);
    const { beganAtMs, token } = first;
    const pages = [
      { url: "https://x/1", nextLink: "https://x/2", items },
      { url: "https://x/2", items: [] },
    ];
    await readings.share(feed, "items", { token, beganAtMs, count: 1, pages });
    expect(await ask()).toEqual({ turn: "take", reading: { beganAtMs, count: 1, pages }, token: "t3" });
  });

  it("keeps no link that carries a credential, yet tells such links apart", async () => {
    const { feed, readings, ask } = setUp();
    const turn = await ask();
    if (turn.turn !== "read") throw new Error(turn.turn);
    const { beganAtMs, token } = turn;
    const signed = (page: number) => `https://x/odata/approvals?$skip=${page}&sig=canary`;
    const pages = [
      { url: "https://x/odata/approvals", nextLink: signed(1), items: [1] },
      { url: signed(1), nextLink: signed(2), items: [2] },
    ];
    await readings.share(feed, "items", { token, beganAtMs, count: 2, pages });
    const { reading } = (await ask()) as Extract<ReadingTurn, { turn: "take" }>;
    expect(JSON.stringify(reading)).not.toContain("canary");
    const [first, second] = reading.pages ?? [];
    expect(first).toMatchObject({ url: "https://x/odata/approvals", nextLink: second?.url, items: [1] });
    expect(second?.url).toMatch(/^not-kept:sig:[0-9a-f]{32}$/);
    expect(second?.nextLink).not.toBe(second?.url);
  });

  it("is never given to whom it began too early for, nor to whom has judged it already", async () => {
    const { ask, shareNow } = setUp();
    const { beganAtMs } = await shareNow([]);
    expect(await ask({ sinceMs: beganAtMs, afterMs: beganAtMs - 1 })).toMatchObject({ turn: "take" });
    const late = await ask({ sinceMs: beganAtMs + 1 });
    expect(late.turn).toBe("read");
    expect((await ask({ afterMs: beganAtMs })).turn).toBe("wait");
  });

  it("must begin after its follower's first turn, however old the slot is", async () => {
    const { feed, readings, ask, shareNow } = setUp();
    await shareNow([]);
    const before = await redisTimeMs(store);
    while ((await redisTimeMs(store)) === before);
    const turn = await ask({ turnOf: "follower" });
    expect(turn.turn).toBe("read");
    if (turn.turn === "read") await readings.leave(feed, "items", turn.token);
    await shareNow(["newer"]);
    expect(await ask({ turnOf: "follower" })).toMatchObject({
      turn: "take",
      reading: { pages: [{ items: ["newer"] }] },
    });
  });

  it("says of a list that is too long no more than that", async () => {
    const { ask, shareNow } = setUp();
    await shareNow(undefined);
    expect(await ask()).toMatchObject({ turn: "take", reading: { pages: undefined } });
  });

  it("that is too large is read by each for itself", async () => {
    const { ask, shareNow } = setUp({ plainBytesMax: 100, packedBytesMax: 100 });
    expect(await shareNow(["x".repeat(101)])).toMatchObject({ isShared: false });
    expect((await ask()).turn).toBe("alone");
    expect((await ask()).turn).toBe("alone");
  });

  it("goes within a minute, and is another for the count and for another list", async () => {
    const { feed, readings, ask, shareNow } = setUp();
    await shareNow(["kept"]);
    const lastsMs = await store.redis.pttl(store.key("reading", feedId(feed), "items"));
    expect(lastsMs > 0 && lastsMs <= 60_000).toBe(true);
    expect((await ask()).turn).toBe("take");
    const other = { sinceMs: 0, afterMs: 0, turnOf: undefined, token: "x" };
    expect((await readings.ask(feed, "count", other)).turn).toBe("read");
    expect((await readings.ask({ ...feed, repository: null }, "items", other)).turn).toBe("read");
  });
});

it("a walk uses a shared reading that is whole and newer than its last walk", async () => {
  const { feed, readings, shareNow } = setUp();
  expect(await readings.newerThan(feed, 0)).toBeUndefined();
  const { beganAtMs } = await shareNow(["one"]);
  expect(await readings.newerThan(feed, beganAtMs - 1)).toMatchObject({ beganAtMs, pages: [{ items: ["one"] }] });
  expect(await readings.newerThan(feed, beganAtMs)).toBeUndefined();
  await shareNow(undefined);
  expect(await readings.newerThan(feed, 0)).toBeUndefined();
});

describe("a reader", () => {
  it("that dies or gives up is followed by the next one", async () => {
    const { feed, readings, ask } = setUp();
    const turn = await ask();
    if (turn.turn !== "read") throw new Error(turn.turn);
    await readings.leave(feed, "items", "somebody else");
    expect((await ask()).turn).toBe("wait");
    await readings.leave(feed, "items", turn.token);
    const next = await ask();
    expect(next.turn).toBe("read");
    // As it looks when its lease is over.
    await store.redis.hset(store.key("reading", feedId(feed), "items"), "readerUntilMs", 1);
    expect((await ask()).turn).toBe("read");
  });

  it("that was overtaken does not put its older reading in the place of a newer one", async () => {
    const { feed, readings, ask, shareNow } = setUp();
    const { beganAtMs } = await shareNow(["newer"]);
    const old = { token: "old", beganAtMs: beganAtMs - 1, count: 1, pages: [{ url: "https://x/1", items: ["older"] }] };
    await readings.share(feed, "items", old);
    expect(await ask()).toMatchObject({ turn: "take", reading: { pages: [{ items: ["newer"] }] } });
  });
});
