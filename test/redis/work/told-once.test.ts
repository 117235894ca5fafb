// What a worker does when the step that records its outcome is answered with "it stands": Redis died after writing it, and the client asked again.
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Recorder } from "../../../src/outcome/recorder.ts";
import { openStore, type Store } from "../../../src/store/redis.ts";
import type { Task } from "../../../src/tasks/task.ts";
import { createProcessTask } from "../../../src/work/process-task.ts";
import { redisForTest } from "../../support/redis.ts";
import { testParts } from "../../support/work-parts.ts";

let store: Store;
beforeAll(async () => {
  store = await openStore(redisForTest());
});
afterAll(() => store.close());

const task: Task = {
  v: 1,
  id: "told-once",
  kind: "apply",
  policy: "gone",
  service: "gone",
  repository: null,
  target: "syncJob-42",
  slotMs: 0,
  origin: "manual",
  covers: [],
  startByMs: 9_999_999_999_999,
};

it("comes back while somebody may still tell the outcome, and tells it itself when nobody did", async () => {
  const tellers = [5_000, undefined];
  const asked: string[] = [];
  const recorder: Recorder = {
    record: async () => "stands",
    retell: async (taskId) => {
      asked.push(taskId);
      return tellers.shift();
    },
  };
  const parts = testParts(store, { policy: () => undefined });
  const step = createProcessTask(parts, recorder);
  const attempt = { attempt: 1, attemptsMax: 8, signal: new AbortController().signal };
  expect(await step(task, attempt)).toEqual({ verdict: "snooze", untilMs: 5_000 });
  expect(await step(task, attempt)).toEqual({ verdict: "skipped" });
  expect(asked).toEqual(["told-once", "told-once"]);
});
