import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FeedBook, type ItemFacts } from "../../../src/store/feed-book.ts";
import { openStore, type Store } from "../../../src/store/redis.ts";
import type { Feed } from "../../../src/tasks/feed.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();
let store: Store;
let book: FeedBook;

beforeAll(async () => {
  store = await openStore(target);
  book = new FeedBook(store);
});
afterAll(() => store.close());

const feed = (service: string): Feed => ({ service, repository: null, list: "activities" });
const item = (id: string, fingerprint: string, finished = false): ItemFacts => ({
  id,
  fingerprint,
  syncJobId: "42",
  finished,
  startedAtMs: undefined,
  succeeded: undefined,
  label: "a b c",
});

describe("the feed book", () => {
  it("reports each item as new once, however often a page is taken in", async () => {
    const page = [item("1", "x"), item("2", "y")];
    expect(await book.takeIn(feed("once"), page)).toEqual(["1", "2"]);
    expect(await book.takeIn(feed("once"), page)).toEqual([]);
    expect((await book.status(feed("once"))).seq).toBe(2);
  });

  it("gives what was discovered after a number, in its newest form", async () => {
    const one = feed("since");
    await book.takeIn(one, [item("old", "a")]);
    const { seq } = await book.status(one);
    await book.takeIn(one, [item("old", "a2"), item("new", "b")]);
    await book.takeIn(one, [item("new", "b2", true)]);
    expect(await book.discoveredSince(one, seq)).toEqual([
      {
        id: "new",
        fingerprint: "b2",
        syncJobId: "42",
        finished: true,
        succeeded: undefined,
        label: "a b c",
        firstSeq: 3,
        seq: 4,
      },
    ]);
  });

  it("keeps the lists of two repositories apart", async () => {
    const hr = { ...feed("apart"), repository: "HR" };
    await book.takeIn(hr, [item("1", "x")]);
    expect(await book.takeIn({ ...hr, repository: "FIN" }, [item("1", "x")])).toEqual(["1"]);
  });

  it("knows how far it was read, and since when it cannot be", async () => {
    const one = feed("status");
    expect(await book.status(one)).toMatchObject({
      seq: 0,
      walks: 0,
      walkStartedAtMs: undefined,
      failingSinceMs: undefined,
    });
    await book.failed(one, "unreachable: refused");
    await book.failed(one, "server: 500");
    const failing = await book.status(one);
    expect(failing.failure).toBe("server: 500");
    await book.walked(one, { startedAtMs: 5, count: 3 });
    expect(await book.status(one)).toMatchObject({
      walks: 1,
      count: 3,
      walkStartedAtMs: 5,
      failingSinceMs: undefined,
      failure: undefined,
    });
  });

  it("counts who waits, and drops those whose time has passed", async () => {
    const one = feed("waiting");
    await book.waitFor(one, "a", { nowMs: 0, untilMs: 1_000 });
    await book.waitFor(one, "b", { nowMs: 0, untilMs: 2_000 });
    expect(await book.waiting(one, 1_500)).toBe(1);
    await book.leave(one, "b");
    expect(await book.waiting(one, 1_500)).toBe(0);
  });
});
