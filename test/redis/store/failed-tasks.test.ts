// The failed list as the web role reads it: it remembers what it has read, and must say the same as
// a list that is read anew.
import { expect, it } from "vitest";
import { FailedTasks } from "../../../src/store/failed-tasks.ts";
import { History } from "../../../src/store/history.ts";
import { rememberStates } from "../../../src/store/policy-states.ts";
import { createRandom } from "../../chaos/seeded-random.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { storeForTest } from "../../support/redis.ts";

const store = await storeForTest();
// So few are kept that many are dropped.
const history = new History(store, { limits: { count: 20, forMs: 1e12 } });
const remembered = new FailedTasks(
  store,
  rememberStates(store, () => 0),
);
const failedKey = store.key("failed");
let second = 1_790_000_000;

async function end(policy: string, target: string, status: "failed" | "succeeded" | "conflicts"): Promise<string> {
  second += 1;
  const at = new Date(second * 1_000).toISOString();
  const taskId = `${policy}__run__${target}__${second}`;
  await history.record(testOutcome({ taskId, policy, target, status, slot: at, finishedAt: at }));
  return taskId;
}

it("a remembered list says what one that is read anew says, whatever came between", async () => {
  const random = createRandom(7);
  for (let round = 0; round < 60; round += 1) {
    for (let act = random.integer(0, 4); act > 0; act -= 1) {
      const [policy, target] = [`policy-${random.integer(0, 4)}`, `${random.integer(1, 3)}`];
      await end(policy, target, random.weighted({ failed: 3, succeeded: 2, conflicts: 1 }));
    }
    const listed = await new FailedTasks(store).all();
    expect(await remembered.all()).toEqual(listed);
    const one = listed[random.integer(0, listed.length)]?.outcome;
    if (one !== undefined && random.integer(0, 3) === 0) expect(await new FailedTasks(store).takeOff(one)).toBe(true);
  }
  const listed = await remembered.all();
  expect(listed.map(({ isMended }) => isMended)).toEqual(expect.arrayContaining([true, false]));
  const ids = await store.redis.zrange(failedKey, "0", "-1", "REV");
  expect(listed.map(({ outcome }) => outcome.taskId)).toEqual(ids);
});

it("a list on which thousands failed at one instant leaves none of them out", async () => {
  const failed = await end("storm", "1", "failed");
  // All others come before it: of one instant, the newest of the list is the last by its name.
  const ids = Array.from({ length: 2_500 }, (_, index) => `storm__run__${index + 2}__${second}`);
  await store.redis.zadd(failedKey, ...ids.flatMap((id) => [second * 1_000, id]));
  expect((await remembered.all())[0]?.outcome.taskId).toBe(failed);
});

it("a list of more than 20,000 shows the newest of all policies", async () => {
  const ids = Array.from({ length: 20_000 }, (_, index) => `old__run__${index}__1`);
  await store.redis.zadd(failedKey, ...ids.flatMap((id) => [1_000, id]));
  const newest = await end("late", "1", "failed");
  expect((await remembered.all())[0]?.outcome.taskId).toBe(newest);
});

it("tasks of a policy whose outcomes are gone leave the list, and no others", async () => {
  const failed = await end("known", "1", "failed");
  await end("removed", "1", "failed");
  // As Redis does, 32 days after the policy was removed.
  for (const kind of ["outcomes", "outcome-index"]) await store.redis.del(store.key(kind, "removed"));
  await history.tidy(new Set(["known"]));
  const ids = await store.redis.zrange(failedKey, "0", "-1");
  expect(ids.filter((id) => /^(known|removed|storm)__/.test(id))).toEqual(expect.arrayContaining([failed]));
  expect(ids.filter((id) => id.startsWith("removed__"))).toEqual([]);
});
