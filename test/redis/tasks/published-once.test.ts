// What a worker does when the step that records its outcome is answered with "it stands": Redis
// died after writing it, and the client asked again.
import { expect, it } from "vitest";
import type { Task } from "../../../src/model/task.ts";
import { createProcessTask } from "../../../src/tasks/process-task.ts";
import type { Recorder } from "../../../src/tasks/recorder.ts";
import { storeForTest } from "../../support/redis.ts";
import { testDeps } from "../../support/task-deps.ts";

const store = await storeForTest();

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

it("returns while another worker may publish the outcome, then publishes it", async () => {
  const notifiers = [5_000, undefined];
  const asked: string[] = [];
  const recorder: Recorder = {
    record: async () => "already-recorded",
    recordAlone: async () => {},
    republish: async ({ id }) => {
      asked.push(id);
      return notifiers.shift();
    },
  };
  const deps = testDeps(store, { policy: () => undefined });
  const step = createProcessTask(deps, recorder);
  const attempt = { attempt: 1, attemptsMax: 8, signal: new AbortController().signal };
  expect(await step(task, attempt)).toEqual({ verdict: "snooze", untilMs: 5_000 });
  expect(await step(task, attempt)).toEqual({ verdict: "complete", ending: "skipped" });
  expect(asked).toEqual(["told-once", "told-once"]);
});
