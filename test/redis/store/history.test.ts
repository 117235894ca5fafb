import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRecorder } from "../../../src/outcome/recorder.ts";
import { History } from "../../../src/store/history.ts";
import { openStore, type Store } from "../../../src/store/redis.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();
let store: Store;
let history: History;

beforeAll(async () => {
  store = await openStore(target);
  history = new History(store);
});
afterAll(() => store.close());

describe("the history", () => {
  it("keeps the first outcome of a task, whoever comes later", async () => {
    const first = testOutcome({ taskId: "once" });
    expect(await history.record(first)).toBe(true);
    expect(await history.record(testOutcome({ taskId: "once", status: "failed" }))).toBe(false);
    expect(await history.outcome("once")).toEqual(first);
  });

  it("answers the newest first, of all policies or of one", async () => {
    const at = (second: number) => `2026-11-22T00:00:0${second}.000Z`;
    for (const second of [2, 1, 3])
      await history.record(
        testOutcome({ taskId: `order-${second}`, policy: `p${second % 2}`, finishedAt: at(second) }),
      );
    expect((await history.newest(3)).map(({ taskId }) => taskId)).toEqual(["order-3", "order-2", "order-1"]);
    expect((await history.newest(10, "p1")).map(({ taskId }) => taskId)).toEqual(["order-3", "order-1"]);
  });

  it("leads to exactly one log line, though many workers end the same task at once", async () => {
    const lines: string[] = [];
    const note = (event: string) => lines.push(event);
    const record = createRecorder(history, { info: note, warn: note, error: note });
    await Promise.all(
      Array.from({ length: 20 }, (_, index) => record(testOutcome({ taskId: "raced", detail: `worker ${index}` }))),
    );
    expect(lines).toEqual(["task.finished"]);
  });
});
