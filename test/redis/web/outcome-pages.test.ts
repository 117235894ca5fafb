// Outcomes page by page: each is shown once, also where many ended in one millisecond.
import { expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { outcomesReadMax } from "../../../src/queries/outcomes.ts";
import { FailedTasks } from "../../../src/store/failed-tasks.ts";
import { History } from "../../../src/store/history.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { type WebFixture, webForTest } from "../../support/web-fixture.ts";
import { setOfStory } from "../../support/web-story.ts";

const atMs = Date.parse(testOutcome().finishedAt);

/** A web server over these outcomes: policy, how long ago, and what ends the name of the task. */
async function webOver(ends: readonly (readonly [string, number, string?])[]): Promise<WebFixture> {
  const set = setOfStory(Object.fromEntries(ends.map(([policy]) => [policy, { endings: [] }])));
  const web = await webForTest({ story: {}, set });
  for (const [policy, behindMs, id = ""] of ends) {
    const finishedAt = new Date(atMs - behindMs).toISOString();
    const taskId = `${policy}__run__42__${behindMs}${id}`;
    await new History(web.store).record(testOutcome({ policy, taskId, finishedAt }));
  }
  return web;
}

/** The ids on each page. */
async function pagesOf(web: WebFixture, query: string): Promise<string[][]> {
  const pages: string[][] = [];
  for (let after = ""; pages.length < 1_000; ) {
    const { items, next } = JSON.parse(await (await web.ask(`/api/v1/outcomes?${query}${after}`)).text());
    pages.push(items.map(({ taskId }: { taskId: string }) => taskId));
    if (next === null) break;
    after = `&after=${encodeURIComponent(next)}`;
  }
  return pages;
}

it.each([
  ["a", "b"],
  ["b", "a"],
])("no outcome falls between two pages: %s has a newer one, %s an old one alone", async (both, one) => {
  const web = await webOver([
    [both, 0],
    [both, 1_000],
    [one, 1_000],
  ]);
  const pages = await pagesOf(web, "limit=2");
  expect(pages.map(({ length }) => length)).toEqual([2, 1]);
  expect(new Set(pages.flat()).size).toBe(3);
});

it("outcomes of one millisecond have an order that all pages keep", async () => {
  const names = ["a", "b", "c", "d", "e"];
  const web = await webOver(names.flatMap((name) => ["x", "y"].map((id) => [name, 0, id] as const)));
  const all = names.flatMap((name) => ["x", "y"].map((id) => `${name}__run__42__0${id}`)).toReversed();
  for (const limit of [1, 2, 3, 9, 10])
    expect([limit, (await pagesOf(web, `limit=${limit}`)).flat()]).toEqual([limit, all]);
});

it("a page goes on where an outcome stood that is kept no more", async () => {
  const web = await webOver([
    ["a", 0],
    ["a", 0, "x"],
    ["a", 0, "y"],
  ]);
  const ask = async (query: string) => JSON.parse(await (await web.ask(`/api/v1/outcomes?${query}`)).text());
  const { next } = await ask("limit=2");
  const [, id = ""] = next.split("~");
  await web.store.redis.zrem(web.store.key("outcome-index", "a"), id);
  expect((await ask(`limit=2&after=${encodeURIComponent(next)}`)).items).toMatchObject([{ taskId: "a__run__42__0" }]);
});

it("a page of failed tasks goes on where one stood that was dealt with", async () => {
  let flownMs = 0;
  const clock = { ...systemClock, monotonicMs: () => (flownMs += 3_600_000) };
  const web = await webForTest({ story: {}, set: setOfStory({ a: { endings: [] } }), clock });
  const ask = async (query: string) => JSON.parse(await (await web.ask(`/api/v1/failed?limit=2${query}`)).text());
  const failed = [1, 2, 3, 4].map((id) => testOutcome({ policy: "a", taskId: `a__run__42__${id}`, status: "failed" }));
  for (const outcome of failed) await new History(web.store).record(outcome);
  const { items, next } = await ask("");
  for (const { outcome } of items) await new FailedTasks(web.store).takeOff(outcome);
  const rest = await ask(`&after=${encodeURIComponent(next)}`);
  expect(rest).toMatchObject({ items: [{ id: "a__run__42__2" }, { id: "a__run__42__1" }], next: null });
});

it("what fits is found behind any number of outcomes that do not", async () => {
  const web = await webOver([["a", 1_000]]);
  const index = web.store.key("outcome-index", "a");
  // Places whose outcomes do not fit: to the question they are as good as dropped ones.
  const others = Array.from({ length: outcomesReadMax }, (_, at) => [atMs, `a__run__42__${at}other`]);
  await web.store.redis.zadd(index, ...others.flat());
  expect(await pagesOf(web, "service=main&limit=2")).toEqual([[], ["a__run__42__1000"]]);
});
it("a policy that never ended takes no place of one that did", async () => {
  const web = await webForTest({
    story: {
      ...Object.fromEntries(["a", "b", "c"].map((name) => [name, { endings: [], more: { labels: { team: "x" } } }])),
      z: { endings: ["ok"], more: { labels: { team: "x" } } },
    },
  });
  expect((await pagesOf(web, "limit=1&label=team%3Dx")).flat()).toHaveLength(1);
});
