import { expect, it } from "vitest";
import { DeletedSyncJobs } from "../../../src/store/deleted-sync-jobs.ts";
import { storeForTest } from "../../support/redis.ts";

const store = await storeForTest();

it("the newest note of a deleted sync job stands, however late an older one comes", async () => {
  const notes = new DeletedSyncJobs(store);
  const first = { repository: null, syncJob: "42", atMs: 1_000, policy: "first" };
  const second = { ...first, atMs: 2_000, policy: "second" };
  for (const deleted of [first, second, first]) await notes.note("main", deleted);
  expect(await notes.of("main")).toEqual([{ v: 1, ...second }]);
});
