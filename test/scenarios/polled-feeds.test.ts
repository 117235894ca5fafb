// What a poll reads whole is walked as a feed, too, without another request: its new items are told
// once, as those of lists that runs follow.
import { expect, it, onTestFinished } from "vitest";
import type { Notice } from "../../src/model/notice.ts";
import { FeedStore } from "../../src/store/feed-store.ts";
import { openStore } from "../../src/store/redis.ts";
import { startListServer } from "../support/list-server.ts";
import { often } from "../support/processes.ts";
import { worldForTest } from "../support/world.ts";

const triggers = (...ids: readonly number[]) => ids.map((triggerId) => ({ triggerId, isActive: true }));

it("polled lists log, notify and tail new items once each, at no further request", async () => {
  const there = await startListServer({ trigger: triggers(1, 2) });
  onTestFinished(() => there.stop());
  const given: Notice[] = [];
  const here = await worldForTest({
    replicas: 2,
    policies: `  - { name: inactive, service: lists, poll: { list: triggers, offending: "!item.isActive" } }
  - { name: how-many, service: lists, poll: { list: triggers, expect: "count < 100" } }
sinks:
  archive: { file: { path: items.jsonl }, items: [triggers] }`,
    moreServices: { lists: there.url },
    deliver: async (deliveries) => void given.push(...deliveries.map(({ notice }) => notice)),
  });
  const store = await openStore(here.target);
  const book = new FeedStore(store);
  const feed = { service: "lists", repository: null, list: "triggers" } as const;
  const walked = async (times: number) => expect.poll(async () => (await book.status(feed)).walks, often).toBe(times);
  expect(await here.run("inactive")).toMatchObject({ status: "succeeded", count: 2 });
  await walked(1);
  there.lists["trigger"] = triggers(1, 2, 7);
  await here.run("inactive");
  await walked(2);
  await here.run("inactive");
  await walked(3);
  await here.run("how-many");
  expect(here.log.named("feed.item")).toMatchObject([{ list: "triggers", id: "7" }]);
  expect(given.map(({ kind, data }) => [kind, data["items"]])).toEqual([["items", [{ id: "7" }]]]);
  expect((await book.discoveredSince(feed, 0)).map(({ id }) => id)).toEqual(["1", "2", "7"]);
  expect(there.asked).toEqual(["trigger", "trigger", "trigger", "trigger/$count"]);
  await store.close();
});
