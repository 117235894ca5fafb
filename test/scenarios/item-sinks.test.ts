// New items of followed lists go to the sinks that want them, each once over all replicas, and to
// no other.
import { expect, it } from "vitest";
import type { Notice } from "../../src/model/notice.ts";
import { often } from "../support/processes.ts";
import { worldForTest } from "../support/world.ts";

it("the new items of two runs reach the subscribed sink once each, and no other", async () => {
  const given: { sink: string; notice: Notice }[] = [];
  const world = await worldForTest({
    replicas: 2,
    policies: `  - { name: one, service: main, repository: HR, run: { syncJobs: [3] } }
  - { name: five, service: main, repository: HR, run: { syncJobs: [5] } }
sinks:
  archive: { file: { path: items.jsonl }, items: [activities, conflictDetails] }
  conflicts: { file: { path: conflicts.jsonl }, items: [conflictDetails] }
  plain: { file: { path: plain.jsonl } }`,
    deliver: async (deliveries) => void given.push(...deliveries),
  });
  await world.run("one");
  // The run of sync job 5 leaves a conflict.
  await world.run("five");
  const items = (sink: string, list: string) => {
    const unique = new Map(given.filter((one) => one.sink === sink).map(({ notice }) => [notice.id, notice]));
    const wanted = [...unique.values()].filter(({ data }) => data["list"] === list);
    return wanted.flatMap(({ data }) => data["items"]);
  };
  await expect.poll(() => items("conflicts", "conflictDetails"), often).toHaveLength(1);
  await expect.poll(() => items("archive", "activities"), often).toHaveLength(2);
  expect(items("archive", "conflictDetails")).toEqual(items("conflicts", "conflictDetails"));
  expect(items("archive", "activities")).toMatchObject([{ syncJobId: "3" }, { syncJobId: "5" }]);
  expect(new Set(given.map(({ notice }) => notice.kind))).toEqual(new Set(["items"]));
  expect(given.some(({ sink }) => sink === "plain")).toBe(false);
});
