// What a process remembers of a feed must be what Redis holds, whoever writes there.
import { describe, expect, it } from "vitest";
import { type Feed, feedId, type ItemFacts } from "../../../src/model/feed.ts";
import { FeedStore } from "../../../src/store/feed-store.ts";
import { storeForTest } from "../../support/redis.ts";

const store = await storeForTest();

const feed = (service: string): Feed => ({ service, repository: null, list: "activities" });
const item = (id: string, fingerprint = "x"): ItemFacts => ({
  id,
  fingerprint,
  syncJobId: undefined,
  startedAtMs: undefined,
  finished: undefined,
  succeeded: undefined,
  label: undefined,
});
const takeIn = (book: FeedStore, one: Feed, items: readonly ItemFacts[]) =>
  book.takeIn(one, { generation: 0 }, { items, sinceSeq: 0 });
const numbered = (from: number, count: number) => Array.from({ length: count }, (_, index) => item(`i${from + index}`));

describe("what a process remembers of a feed", () => {
  it("follows another process: new items, changed items, in order of discovery", async () => {
    const [reader, writer] = [new FeedStore(store), new FeedStore(store)];
    const one = feed("follows");
    const seen = async (seq: number) =>
      (await reader.discoveredSince(one, seq)).map(({ id, fingerprint }) => `${id}${fingerprint}`);
    await takeIn(writer, one, [item("a"), item("b")]);
    expect(await seen(1)).toEqual(["bx"]);
    await takeIn(writer, one, [item("c"), item("b", "y"), item("a", "y")]);
    expect(await seen(1)).toEqual(["by", "cx"]);
    expect(await seen(2)).toEqual(["cx"]);
    expect(await seen(0)).toEqual(["ay", "by", "cx"]);
    expect(await seen(99)).toEqual([]);
  });

  it("holds more items than one reading brings", async () => {
    const [reader, writer] = [new FeedStore(store), new FeedStore(store)];
    const one = feed("many");
    await takeIn(writer, one, numbered(0, 1_500));
    await takeIn(writer, one, numbered(1_500, 1_000));
    const items = await reader.discoveredSince(one, 0);
    expect(items.map(({ id }) => id)).toEqual(numbered(0, 2_500).map(({ id }) => id));
    await takeIn(writer, one, numbered(2_500, 10));
    expect(await reader.discoveredSince(one, 0)).toHaveLength(2_510);
    expect(await reader.discoveredSince(one, 2_505)).toHaveLength(5);
  });

  it("shows what was written before the first request, also during another's read", async () => {
    const [reader, writer] = [new FeedStore(store), new FeedStore(store)];
    const one = feed("at-once");
    await takeIn(writer, one, [item("a")]);
    await reader.discoveredSince(one, 0);
    await takeIn(writer, one, [item("b")]);
    const reading = reader.discoveredSince(one, 0);
    // One round trip later the other one has asked which items changed, and not yet what they are.
    await store.redis.ping();
    await takeIn(writer, one, [item("c")]);
    expect((await reader.discoveredSince(one, 0)).map(({ id }) => id)).toEqual(["a", "b", "c"]);
    expect((await reading).map(({ id }) => id)).toContain("b");
  });

  it("is forgotten when Redis lost what it held", async () => {
    const [reader, writer] = [new FeedStore(store), new FeedStore(store)];
    const one = feed("lost");
    await takeIn(writer, one, numbered(0, 5));
    expect(await reader.discoveredSince(one, 0)).toHaveLength(5);
    await store.redis.del(...["feed", "feed-items", "feed-order"].map((name) => store.key(name, feedId(one))));
    expect(await reader.discoveredSince(one, 0)).toEqual([]);
    await takeIn(writer, one, [item("other")]);
    expect((await reader.discoveredSince(one, 0)).map(({ id }) => id)).toEqual(["other"]);
  });
});
