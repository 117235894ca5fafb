import { describe, expect, it, onTestFinished } from "vitest";
import { taskId } from "../../src/model/task.ts";
import { notifyStreamKey } from "../../src/store/notify-store.ts";
import { lastSuccessKey } from "../../src/store/policy-states.ts";
import { openStore, type Store } from "../../src/store/redis.ts";
import { type World, worldForTest } from "../support/world.ts";

let store: Store | undefined;

/** Policies that begin with a key of another type than Syncline writes there. */
async function start(policies: string, spoil: (store: Store) => Promise<unknown>): Promise<World> {
  return worldForTest({
    policies,
    deliver: async () => {},
    before: async (target) => {
      const opened = await openStore(target);
      onTestFinished(() => opened.close());
      store = opened;
      await spoil(store);
    },
  });
}

const run = (name: string, more = "") =>
  `  - { name: ${name}, service: main, run: { syncJobs: [4] }, overlap: allow, follow: { until: accepted }${more} }`;
const every = ', schedule: { every: "1s" }';

describe("a key of a wrong type", () => {
  it("in one policy's slots holds up that policy alone, and is told as a bug", async () => {
    const { log } = await start([run("sick", every), run("well", every)].join("\n"), ({ redis, key }) =>
      redis.set(key("slots", "sick"), "no hash"),
    );
    const bug = await log.until(({ event }) => event === "bug.caught");
    expect(bug).toMatchObject({ policy: "sick", stack: expect.stringContaining("WRONGTYPE") });
    const wells = () => log.named("slot.queued").filter(({ policy }) => policy === "well");
    await expect.poll(() => wells().length).toBeGreaterThanOrEqual(3);
    expect(log.named("bug.caught")).toHaveLength(1);
    expect(log.named("scheduler.failing")).toEqual([]);
    expect(await store?.redis.hget(store.key("outbox"), "sick")).toBeNull();
  });

  it("in one task's journal ends that task as a bug, and no other", async () => {
    const slotMs = 1_700_000_000_000;
    const id = taskId({ policy: "story", kind: "run", target: "4", slotMs, origin: "manual" });
    const {
      enqueue,
      log,
      run: runNow,
    } = await start(run("story"), ({ redis, key }) => redis.set(key("start", id), "no hash"));
    await enqueue("story", slotMs);
    const ended = await log.until(({ event, taskId: one }) => event === "task.finished" && one === id);
    expect(ended).toMatchObject({ status: "unknown", reason: "bug" });
    expect(log.named("task.redis-out-of-reach")).toEqual([]);
    expect(log.named("bug.caught").length).toBeGreaterThan(0);
    expect(await runNow("story")).toMatchObject({ status: "accepted" });
  });

  it("in what is told holds up neither slots nor tasks, and the notifier says so", async () => {
    const notify = ", notify: [ops]";
    const policies = `${run("story", `${every}${notify}`)}\nsinks: { ops: { file: { path: outcomes.jsonl } } }`;
    const { log } = await start(policies, (one) => one.redis.set(notifyStreamKey(one), "no stream"));
    await expect.poll(() => log.outcomesOf("story").length).toBeGreaterThanOrEqual(2);
    expect(log.outcomesOf("story").map(({ status }) => status)).not.toContain("unknown");
    expect(await log.until(({ event }) => event === "bug.caught")).toMatchObject({
      stack: expect.stringContaining("WRONGTYPE"),
    });
  });

  it("after an outcome that is written keeps it from no log, and does not change it", async () => {
    const { log, run: runNow } = await start(run("story"), (one) =>
      one.redis.hset(lastSuccessKey(one, "story"), "no", "text"),
    );
    expect(await runNow("story")).toMatchObject({ status: "accepted" });
    expect(log.outcomesOf("story")).toHaveLength(1);
    expect(await log.until(({ event }) => event === "bug.caught")).toMatchObject({
      stack: expect.stringContaining("WRONGTYPE"),
    });
  });
});
