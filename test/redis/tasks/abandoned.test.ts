// Tasks over which workers died too often: what is told of them is true, or not told yet.
import { describe, expect, it } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import { type Task, targetFromMasks } from "../../../src/model/task.ts";
import { History } from "../../../src/store/history.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { endAbandoned } from "../../../src/tasks/finish.ts";
import type { ProcessDependencies } from "../../../src/tasks/process-task.ts";
import { createRecorder, type Recorder } from "../../../src/tasks/recorder.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { testDeps } from "../../support/task-deps.ts";

const target = redisForTest();

const store = await storeForTest(target);
const journal = new StartJournal(store);
const history = new History(store);

const taskOf = (id: string, more: Partial<Task> = {}): Task => ({
  v: 1,
  id,
  kind: "run",
  policy: "nightly",
  service: "main",
  repository: null,
  target: "42",
  slotMs: 0,
  origin: "manual",
  covers: [],
  startByMs: 9_999_999_999_999,
  ...more,
});

const abandon = (task: Task, given: Partial<ProcessDependencies> = {}) =>
  endAbandoned(task, testDeps(store, given), { recorder: createRecorder(history, silentLog), why: "workers died" });

describe("a task over which workers died too often", () => {
  it("was not started when it was only claimed", async () => {
    const task = taskOf("claimed");
    await journal.claim(task.id, "dead");
    expect(await abandon(task)).toBe(true);
    expect(await history.outcome(task)).toMatchObject({ status: "not-started", evidence: "direct" });
    expect((await journal.entry(task.id))?.state).toBe("settled");
  });

  it("is unknown when it had its permission", async () => {
    const task = taskOf("permitted");
    await journal.claim(task.id, "dead");
    await journal.beginSending(task, "dead", { startByMs: task.startByMs, baseline: "" });
    expect(await abandon(task)).toBe(true);
    const crashed = { status: "unknown", evidence: "none", reason: "crashed" };
    expect(await history.outcome(task)).toMatchObject({ ...crashed, answerLost: true });
  });

  it("is unknown for a sync job of a mask: some tasks may be in the queue already", async () => {
    const task = taskOf("masks", { target: targetFromMasks });
    await journal.claim(task.id, "dead");
    expect(await abandon(task)).toBe(true);
    expect(await history.outcome(task)).toMatchObject({ status: "unknown", evidence: "none" });
  });

  it("is published when its recorder died, and returns while that one may still do it", async () => {
    const notifiers = [5_000, undefined];
    const recorder: Recorder = {
      record: async () => "already-recorded",
      recordAlone: async () => {},
      republish: async () => notifiers.shift(),
    };
    const end = () => endAbandoned(taskOf("untold"), testDeps(store), { recorder, why: "workers died" });
    expect(await end()).toBe(false);
    expect(await end()).toBe(true);
    expect(notifiers).toEqual([]);
  });

  it("is not published while it is unknown what Redis has forgotten", async () => {
    const task = taskOf("undecided");
    await journal.claim(task.id, "dead");
    expect(await abandon(task, { checkFence: async () => "undecided" })).toBe(false);
    expect(await history.outcome(task)).toBeUndefined();
    expect(await abandon(task)).toBe(true);
  });
});
