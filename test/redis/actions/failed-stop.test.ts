// What a person stops while many entries of the failed list are dealt with.
import { expect, it } from "vitest";
import { discard, replay } from "../../../src/actions/failed.ts";
import { FailedTasks } from "../../../src/store/failed-tasks.ts";
import { History } from "../../../src/store/history.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";

const store = await storeForTest(redisForTest());

it.each([discard, replay])("stays on the failed list and is told: %o", async (act) => {
  for (const target of ["1", "2", "3"]) {
    const taskId = `nightly__run__${target}__1795228200`;
    await new History(store).record(testOutcome({ taskId, target, status: "failed", reason: "run-failed" }));
  }
  const listed = () => new FailedTasks(store).all();
  const items = (await listed()).map((task) => ({ type: "task", id: task.outcome.taskId, ...task }) as const);
  const unused = async () => {
    throw new Error("nothing is done any more");
  };
  const results = await act(items, {
    ...{ store, set: undefined, force: false, by: { actor: "ana@desk", reason: null, warn: () => {} } },
    ...{ queues: { replay: unused, discard: unused }, producer: { enqueue: unused } },
    signal: AbortSignal.abort(),
  });
  expect(results.map(({ why }) => why)).toEqual(Array(3).fill("stopped before its turn: it stays on the list"));
  expect(await listed()).toHaveLength(3);
});
