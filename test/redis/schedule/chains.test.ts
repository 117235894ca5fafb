import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import { openStore, type Store } from "../../../src/store/redis.ts";
import { tallyKey } from "../../../src/store/slot-ledger.ts";
import type { Task } from "../../../src/tasks/task.ts";
import { ChainHouse, chainStart, followerPolicy } from "../../support/chain-house.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();
let store: Store;
let houses = 0;

beforeAll(async () => {
  store = await openStore(target);
});
afterAll(() => store.close());

const first = (syncJobs = [1, 2]) => testPolicy({ name: "first", action: { kind: "run", syncJobs } });
const second = (changes: Partial<Policy> = {}) => followerPolicy("second", "first", { root: "first", ...changes });
const third = (changes: Partial<Policy> = {}) => followerPolicy("third", "second", { root: "first", ...changes });
const following = (changes: object) => ({ ...second().after, ...changes }) as NonNullable<Policy["after"]>;

/** A house with keys of its own, whose scheduler has looked at second 0 and at the slot of second 5. */
async function houseWith(policies: readonly Policy[]) {
  houses += 1;
  const prefix = `${target.prefix}-${houses}`;
  const own: Store = { ...store, key: (...parts) => [prefix, ...parts].join(":") };
  const house = new ChainHouse(own, policies);
  const scheduler = house.scheduler();
  await house.lookAt(scheduler, 0, 5);
  return { house, scheduler, store: own };
}

const taskAt = (tasks: readonly Task[], index: number): Task => {
  const task = tasks[index];
  if (task === undefined) throw new Error(`there is no task ${index}`);
  return task;
};

describe("a policy that follows another", () => {
  it("starts once, for the same slot, when two workers end the last two tasks at the same time", async () => {
    const { house, store: own } = await houseWith([first(), second()]);
    const [one, two] = house.tasksOf("first");
    expect(await house.records("second")).toEqual([]);
    expect(await house.audit(second())).toEqual({ slots: 1, findings: [] });
    house.nowMs += 2_000;
    await Promise.all([house.end(one as Task), house.record(two as Task)]);
    const replicas = Array.from({ length: 10 }, () => house.chains());
    await Promise.all(replicas.flatMap((chains) => [chains.released(two as Task), chains.sweep()]));
    expect(house.tasksOf("second").map(({ id }) => id)).toEqual([`second__run__42__${(chainStart + 5_000) / 1_000}`]);
    expect(house.tasksOf("second")).toMatchObject([{ slotMs: chainStart + 5_000, startByMs: chainStart + 3_607_000 }]);
    expect(await house.records("second")).toEqual([[5, "started", "followed", "first ended: 2 succeeded"]]);
    expect(await house.audit(second())).toEqual({ slots: 1, findings: [] });
    expect(await house.ledger.unqueued(Number.POSITIVE_INFINITY)).toEqual([]);
    expect(await own.redis.exists(tallyKey(own, "first", chainStart + 5_000))).toBe(0);
  });

  it("waits while one task is open, or ended and still holds its sync job", async () => {
    const { house } = await houseWith([first(), second()]);
    const [one, two] = house.tasksOf("first");
    await house.end(one as Task);
    await house.record(two as Task);
    await house.chains().sweep();
    expect(house.tasksOf("second")).toEqual([]);
    await house.chains().released(two as Task);
    expect(house.tasksOf("second")).toHaveLength(1);
  });

  it("starts after all when the worker died between the last outcome and the chain", async () => {
    const { house, scheduler } = await houseWith([first([1]), second()]);
    await house.record(taskAt(house.tasksOf("first"), 0));
    await house.lookAt(scheduler, 9);
    expect(house.tasksOf("second")).toEqual([]);
    await house.lookAt(scheduler, 20, 31);
    const slots = house.tasksOf("second").map(({ slotMs }) => (slotMs - chainStart) / 1_000);
    expect(slots).toEqual([5]);
    expect(await house.records("second")).toEqual([
      [5, "started", "followed", "first ended: 1 succeeded"],
      [10, "skipped", "predecessor", expect.stringContaining("first did not start: coalesced (2026-")],
      [15, "skipped", "predecessor", expect.stringContaining("first did not start: coalesced (2026-")],
      [25, "skipped", "predecessor", expect.stringContaining("first did not start: coalesced (2026-")],
    ]);
  });

  it("is queued after all when the worker died between its record and the queue", async () => {
    const { house, scheduler } = await houseWith([first([1]), second()]);
    const task = taskAt(house.tasksOf("first"), 0);
    const dying = house.chains(() => Promise.reject(new Error("killed here")));
    await expect(house.end(task, "succeeded", dying)).rejects.toThrow("killed here");
    expect(await house.records("second")).toHaveLength(1);
    expect(house.tasksOf("second")).toEqual([]);
    await house.lookAt(scheduler, 15.5);
    expect(house.tasksOf("second").map(({ slotMs }) => slotMs)).toEqual([chainStart + 5_000]);
  });

  it("is skipped, and all that follow it, when one task ended otherwise; the record names it", async () => {
    const { house } = await houseWith([first(), second(), third()]);
    const [one, two] = house.tasksOf("first");
    await house.end(one as Task, "failed");
    await house.end(two as Task);
    const id = `first__run__1__${(chainStart + 5_000) / 1_000}`;
    expect(await house.records("second")).toEqual([[5, "skipped", "predecessor", `${id} ended failed`]]);
    expect(await house.records("third")).toEqual([
      [5, "skipped", "predecessor", "second did not start: skipped (predecessor)"],
    ]);
    expect(await house.audit(third())).toEqual({ slots: 1, findings: [] });
  });

  it("starts after other endings when on says so", async () => {
    const { house } = await houseWith([first(), second({ after: following({ on: ["succeeded", "conflicts"] }) })]);
    const [one, two] = house.tasksOf("first");
    await house.end(one as Task, "conflicts");
    await house.end(two as Task);
    expect(await house.records("second")).toEqual([
      [5, "started", "followed", "first ended: 1 conflicts, 1 succeeded"],
    ]);
  });

  it("goes on along a chain, each policy when the one before has ended", async () => {
    const { house } = await houseWith([first([1]), second(), third()]);
    await house.end(taskAt(house.tasksOf("first"), 0));
    expect(house.tasksOf("third")).toEqual([]);
    await house.end(taskAt(house.tasksOf("second"), 0));
    expect(house.tasksOf("third")).toHaveLength(1);
    expect(await house.records("third")).toEqual([[5, "started", "followed", "second ended: 1 succeeded"]]);
  });

  it("waits for every sync job that masks were expanded into, also when one ends before that is noted", async () => {
    const policy = testPolicy({ name: "first", action: { kind: "run", fromMasks: {} } });
    const { house } = await houseWith([policy, second()]);
    const masks = taskAt(house.tasksOf("first"), 0);
    const child = (job: string) => ({ ...masks, target: job, id: masks.id.replace("masks", job) });
    await house.end(child("7"));
    expect(house.tasksOf("second")).toEqual([]);
    const chains = house.chains();
    for (const _ of [1, 2]) await chains.expanded(masks, ["7", "8"]);
    await chains.released(masks);
    house.nowMs += 6_000;
    await chains.sweep();
    expect(house.tasksOf("second")).toEqual([]);
    await house.end(child("8"));
    expect(await house.records("second")).toEqual([[5, "started", "followed", "first ended: 2 succeeded"]]);
  });

  it("is skipped at once when the predecessor's slot is skipped, missed or coalesced", async () => {
    const { house, scheduler } = await houseWith([first([1]), second(), third()]);
    house.pauses = [
      {
        v: 1,
        scope: "policy",
        name: "first",
        note: "move",
        actor: "ada",
        sinceMs: chainStart + 6_000,
        untilMs: null,
        endedBy: null,
      },
    ];
    await house.lookAt(scheduler, 10);
    expect((await house.records("second")).at(-1)).toEqual([
      10,
      "skipped",
      "predecessor",
      "first did not start: skipped (paused): move (ada)",
    ]);
    expect((await house.records("third")).map(([slot]) => slot)).toEqual([10]);
    expect(await house.audit(third())).toEqual({ slots: 2, findings: [] });
  });

  it("is missed when the predecessor takes longer than within, and does not start afterwards", async () => {
    const { house } = await houseWith([first([1]), second({ after: following({ withinMs: 20_000 }) })]);
    house.nowMs = chainStart + 25_001;
    await house.chains().sweep();
    await house.end(taskAt(house.tasksOf("first"), 0));
    expect(await house.records("second")).toEqual([[5, "missed", "after-within", "first had not ended"]]);
    expect(house.tasksOf("second")).toEqual([]);
  });

  it("is skipped when it is paused as the predecessor ends, whatever was before", async () => {
    const { house } = await houseWith([first([1]), second()]);
    const pause = { v: 1, scope: "policy", name: "second", note: "later", actor: "ada", endedBy: null } as const;
    house.pauses = [{ ...pause, sinceMs: chainStart + 6_000, untilMs: null }];
    house.nowMs = chainStart + 7_000;
    await house.end(taskAt(house.tasksOf("first"), 0));
    expect(await house.records("second")).toEqual([[5, "skipped", "paused", "later (ada)"]]);
  });

  it("does not follow what was run by hand, even at the instant of a slot", async () => {
    const { house } = await houseWith([first([1]), second()]);
    const task = taskAt(house.tasksOf("first"), 0);
    await house.end({ ...task, origin: "manual", id: "first__run__1__m1" });
    expect(house.tasksOf("second")).toEqual([]);
    await house.end(task);
    expect(house.tasksOf("second")).toHaveLength(1);
  });
});

describe("a chain in a reload", () => {
  it("begins with the next slot of its predecessor, not with one that is running", async () => {
    const { house, scheduler } = await houseWith([first([1])]);
    house.policies = [first([1]), second()];
    scheduler.replace(house.policies);
    await house.lookAt(scheduler, 6);
    await house.end(taskAt(house.tasksOf("first"), 0));
    await house.chains().sweep();
    expect(await house.records("second")).toEqual([]);
    await house.lookAt(scheduler, 10);
    await house.end(taskAt(house.tasksOf("first"), 1));
    expect((await house.records("second")).map(([slot, state]) => [slot, state])).toEqual([[10, "started"]]);
    expect(await house.audit(second())).toEqual({ slots: 1, findings: [] });
  });

  it("that came while nothing ran begins now: what is caught up of its predecessor has no followers", async () => {
    const { house } = await houseWith([testPolicy({ name: "first", catchUp: "all", catchUpWindowMs: 60_000 })]);
    house.policies = [testPolicy({ name: "first", catchUp: "all", catchUpWindowMs: 60_000 }), second()];
    const restarted = house.scheduler();
    await house.lookAt(restarted, 22, 25);
    for (const task of house.tasksOf("first")) await house.end(task);
    expect(house.tasksOf("first")).toHaveLength(5);
    expect((await house.records("second")).map(([slot]) => slot)).toEqual([25]);
    expect(await house.audit(second())).toEqual({ slots: 1, findings: [] });
  });

  it("ends what waits as removed once it is sure that nobody follows any more, and begins anew when it comes back", async () => {
    const {
      house,
      scheduler,
      store: own,
    } = await houseWith([first([1]), second({ after: following({ withinMs: 600_000 }) })]);
    house.policies = [first([1])];
    scheduler.replace(house.policies);
    await house.lookAt(scheduler, 6, 100);
    expect(await house.records("second")).toEqual([]);
    await house.lookAt(scheduler, 126);
    expect(await house.records("second")).toEqual([[5, "skipped", "removed", "second does not follow first any more"]]);
    expect(await own.redis.hexists(own.key("marks"), "second")).toBe(0);
    house.policies = [first([1]), second()];
    scheduler.replace(house.policies);
    await house.lookAt(scheduler, 131, 135);
    await house.end(taskAt(house.tasksOf("first"), -1 + house.tasksOf("first").length));
    expect((await house.records("second")).map(([slot]) => slot)).toEqual([5, 135]);
    expect(await house.audit(second())).toEqual({ slots: 1, findings: [] });
  });

  it("does not call slots lost that a replica planned which did not know it yet", async () => {
    const { house } = await houseWith([first([1]), second()]);
    const knowing = house.scheduler();
    await house.lookAt(knowing, 6);
    house.policies = [first([1])];
    const unknowing = house.scheduler();
    await house.lookAt(unknowing, 7, 10);
    house.policies = [first([1]), second()];
    await house.lookAt(knowing, 11, 15);
    await house.end(taskAt(house.tasksOf("first"), 2));
    expect((await house.records("second")).map(([slot]) => slot)).toEqual([15]);
    expect(await house.audit(second())).toEqual({ slots: 1, findings: [] });
  });
});
