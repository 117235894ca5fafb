import { describe, expect, it, vi } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import type { Pause } from "../../../src/model/pause.ts";
import type { Task } from "../../../src/model/task.ts";
import { tasksOf } from "../../../src/schedule/slot-tasks.ts";
import type { Store } from "../../../src/store/redis.ts";
import { joinCounterKey, slotRecordsMax } from "../../../src/store/slot-ledger.ts";
import { readTroubles } from "../../../src/store/troubles.ts";
import { ChainFixture, chainStart, followerPolicy } from "../../support/chain-fixture.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";

const target = redisForTest();
let houses = 0;

const store = await storeForTest(target);

const first = (syncJobs = [1, 2]) => testPolicy({ name: "first", action: { kind: "run", syncJobs } });
const second = (changes: Partial<Policy> = {}) => followerPolicy("second", "first", { root: "first", ...changes });
const third = (changes: Partial<Policy> = {}) => followerPolicy("third", "second", { root: "first", ...changes });
const following = (changes: object) => ({ ...second().after, ...changes }) as NonNullable<Policy["after"]>;

/**
 * A fixture with keys of its own, whose scheduler has looked at second 0 and at the slot of second
 * 5.
 */
async function houseWith(policies: readonly Policy[]) {
  houses += 1;
  const prefix = `${target.prefix}-${houses}`;
  const own: Store = { ...store, key: (...parts) => [prefix, ...parts].join(":") };
  const fixture = new ChainFixture(own, policies);
  const scheduler = fixture.scheduler();
  await fixture.inspect(scheduler, 0, 5);
  return { fixture, scheduler, store: own };
}

/** Both sets of policies are in force at once, after second 6: each on a replica of its own. */
async function rolloutOf(before: readonly Policy[], after: readonly Policy[]) {
  const house = await houseWith(before);
  house.fixture.policies = after;
  const knowing = house.fixture.scheduler();
  await house.fixture.inspect(knowing, 6);
  return { ...house, knowing, unknowing: house.scheduler };
}

const leftOut = (second: number) => [
  second,
  "missed",
  "left-out",
  "a replica without this policy planned its predecessor",
];

const pauseOfFirst = (second: number): Pause => ({
  v: 1,
  scope: "policy",
  name: "first",
  note: "move",
  actor: "ada",
  sinceMs: chainStart + second * 1_000,
  untilMs: null,
  endedBy: null,
});

const taskAt = (tasks: readonly Task[], index: number): Task => {
  const task = tasks[index];
  if (task === undefined) throw new Error(`there is no task ${index}`);
  return task;
};

describe("a waiting slot that this version cannot read", () => {
  it("is named by the audit, and stops no other chain", async () => {
    const other = followerPolicy("other", "first", { root: "first" });
    const { fixture, store: own } = await houseWith([first([1]), second(), other]);
    const field = `second/${chainStart + 5_000}`;
    const newer = JSON.stringify({ v: 2, after: "first", how: "another way" });
    await own.redis.hset(own.key("waiting"), field, newer);
    await expect(fixture.audit(second())).rejects.toThrow("this waiting slot is of version 2");
    await fixture.end(taskAt(fixture.tasksOf("first"), 0));
    await fixture.chains().sweep();
    expect(fixture.tasksOf("other")).toHaveLength(1);
    expect(fixture.tasksOf("second")).toEqual([]);
    expect(await own.redis.hget(own.key("waiting"), field)).toBe(newer);
  });
});

it("a predecessor's record of a newer version stops no other chain, and is told of", async () => {
  const lone = testPolicy({ name: "lone" });
  const other = followerPolicy("other", "lone", { root: "lone" });
  const { fixture, store: own } = await houseWith([first([1]), second(), lone, other]);
  const slotMs = chainStart + 5_000;
  await own.redis.hset(own.key("slots", "first"), slotMs, JSON.stringify({ v: 2, how: "another way" }));
  await own.redis.del(joinCounterKey(own, "first", slotMs));
  await fixture.record(taskAt(fixture.tasksOf("lone"), 0));
  fixture.nowMs += 10_000;
  const chains = fixture.chains();
  await chains.sweep();
  await chains.sweep();
  expect([fixture.tasksOf("other").length, await fixture.records("second")]).toEqual([1, []]);
  expect(fixture.log.named("slot.newer-version")).toMatchObject([
    { policy: "first", slot: new Date(slotMs).toISOString(), message: expect.stringContaining("of version 2") },
  ]);
  fixture.nowMs += 14 * 86_400_000;
  await chains.sweep();
  const note = "only a newer version can read what became of first";
  expect(await fixture.records("second")).toEqual([[5, "missed", "after-within", note]]);
});

describe("a policy that follows another", () => {
  it("starts once, for the same slot, when two workers end the last two tasks at once", async () => {
    const { fixture, store: own } = await houseWith([first(), second()]);
    const [one, two] = fixture.tasksOf("first");
    expect(await fixture.records("second")).toEqual([]);
    expect(await fixture.audit(second())).toEqual({ slots: 1, findings: [] });
    fixture.nowMs += 2_000;
    await Promise.all([fixture.end(one as Task), fixture.record(two as Task)]);
    const replicas = Array.from({ length: 10 }, () => fixture.chains());
    await Promise.all(replicas.flatMap((chains) => [chains.taskOver(two as Task), chains.sweep()]));
    expect(fixture.tasksOf("second").map(({ id }) => id)).toEqual([`second__run__42__${(chainStart + 5_000) / 1_000}`]);
    expect(fixture.tasksOf("second")).toMatchObject([
      { slotMs: chainStart + 5_000, startByMs: chainStart + 3_607_000 },
    ]);
    expect(await fixture.records("second")).toEqual([[5, "started", "followed", "first ended: 2 succeeded"]]);
    expect(await fixture.audit(second())).toEqual({ slots: 1, findings: [] });
    expect(await fixture.ledger.outbox()).toEqual([]);
    expect(await own.redis.exists(joinCounterKey(own, "first", chainStart + 5_000))).toBe(0);
  });

  it("waits while one task is open, or ended and still holds its sync job", async () => {
    const { fixture } = await houseWith([first(), second()]);
    const [one, two] = fixture.tasksOf("first");
    await fixture.end(one as Task);
    await fixture.record(two as Task);
    await fixture.chains().sweep();
    expect(fixture.tasksOf("second")).toEqual([]);
    await fixture.chains().taskOver(two as Task);
    expect(fixture.tasksOf("second")).toHaveLength(1);
  });

  it("starts after all when the worker died between the last outcome and the chain", async () => {
    const { fixture, scheduler } = await houseWith([first([1]), second()]);
    await fixture.record(taskAt(fixture.tasksOf("first"), 0));
    await fixture.inspect(scheduler, 9);
    expect(fixture.tasksOf("second")).toEqual([]);
    await fixture.inspect(scheduler, 20, 31);
    const slots = fixture.tasksOf("second").map(({ slotMs }) => (slotMs - chainStart) / 1_000);
    expect(slots).toEqual([5]);
    expect(await fixture.records("second")).toEqual([
      [5, "started", "followed", "first ended: 1 succeeded"],
      [10, "skipped", "predecessor", expect.stringContaining("first did not start: coalesced (2026-")],
      [15, "skipped", "predecessor", expect.stringContaining("first did not start: coalesced (2026-")],
      [25, "skipped", "predecessor", expect.stringContaining("first did not start: coalesced (2026-")],
    ]);
  });

  it("is queued after all when the worker died between its record and the queue", async () => {
    const { fixture, scheduler } = await houseWith([first([1]), second()]);
    const task = taskAt(fixture.tasksOf("first"), 0);
    const dying = fixture.chains(() => Promise.reject(new Error("killed here")));
    await expect(fixture.end(task, "succeeded", dying)).rejects.toThrow("killed here");
    expect(await fixture.records("second")).toHaveLength(1);
    expect(fixture.tasksOf("second")).toEqual([]);
    await fixture.inspect(scheduler, 15.5);
    expect(fixture.tasksOf("second").map(({ slotMs }) => slotMs)).toEqual([chainStart + 5_000]);
  });

  it("is queued after all when a worker skips its older slot in the same millisecond", async () => {
    const { fixture, scheduler } = await houseWith([first([1]), second()]);
    await fixture.inspect(scheduler, 10);
    const [older, newer] = fixture.tasksOf("first");
    const crashed = async () => Promise.reject(new Error("killed"));
    const endWaiting = fixture.book.endWaiting.bind(fixture.book);
    vi.spyOn(fixture.book, "endWaiting").mockImplementationOnce(async (...given) => {
      const watermarkMs = await endWaiting(...given);
      await expect(fixture.end(newer as Task, "succeeded", fixture.chains(crashed))).rejects.toThrow("killed");
      return watermarkMs;
    });
    await fixture.end(older as Task, "failed");
    const states = (await fixture.records("second")).map(([slot, state]) => [slot, state]);
    expect(states).toEqual([
      [5, "skipped"],
      [10, "started"],
    ]);
    await fixture.inspect(scheduler, 14, 600);
    expect(fixture.tasksOf("second").filter(({ slotMs }) => slotMs === chainStart + 10_000)).toHaveLength(1);
  });

  it("is skipped with all its followers when one task ended otherwise; names that task", async () => {
    const { fixture } = await houseWith([first(), second(), third()]);
    const [one, two] = fixture.tasksOf("first");
    await fixture.end(one as Task, "failed");
    await fixture.end(two as Task);
    const id = `first__run__1__${(chainStart + 5_000) / 1_000}`;
    expect(await fixture.records("second")).toEqual([[5, "skipped", "predecessor", `${id} ended failed`]]);
    expect(await fixture.records("third")).toEqual([
      [5, "skipped", "predecessor", "second did not start: skipped (predecessor)"],
    ]);
    expect(await fixture.audit(third())).toEqual({ slots: 1, findings: [] });
  });

  it("starts after other endings when on says so", async () => {
    const { fixture } = await houseWith([first(), second({ after: following({ on: ["succeeded", "conflicts"] }) })]);
    const [one, two] = fixture.tasksOf("first");
    await fixture.end(one as Task, "conflicts");
    await fixture.end(two as Task);
    expect(await fixture.records("second")).toEqual([
      [5, "started", "followed", "first ended: 1 conflicts, 1 succeeded"],
    ]);
  });

  it("goes on along a chain, each policy when the one before has ended", async () => {
    const { fixture } = await houseWith([first([1]), second(), third()]);
    await fixture.end(taskAt(fixture.tasksOf("first"), 0));
    expect(fixture.tasksOf("third")).toEqual([]);
    await fixture.end(taskAt(fixture.tasksOf("second"), 0));
    expect(fixture.tasksOf("third")).toHaveLength(1);
    expect(await fixture.records("third")).toEqual([[5, "started", "followed", "second ended: 1 succeeded"]]);
  });

  it("waits for each sync job of a mask, also one that ends before it is noted", async () => {
    const policy = testPolicy({ name: "first", action: { kind: "run", fromMasks: {} } });
    const { fixture } = await houseWith([policy, second()]);
    const masks = taskAt(fixture.tasksOf("first"), 0);
    const child = (job: string) => ({ ...masks, target: job, id: masks.id.replace("masks", job) });
    await fixture.end(child("7"));
    expect(fixture.tasksOf("second")).toEqual([]);
    const chains = fixture.chains();
    for (const _ of [1, 2]) await chains.noteFannedOut(masks, ["7", "8"]);
    await chains.taskOver(masks);
    fixture.nowMs += 6_000;
    await chains.sweep();
    expect(fixture.tasksOf("second")).toEqual([]);
    await fixture.end(child("8"));
    expect(await fixture.records("second")).toEqual([[5, "started", "followed", "first ended: 2 succeeded"]]);
  });

  it("is skipped at once when the predecessor's slot is skipped, missed or coalesced", async () => {
    const { fixture, scheduler } = await houseWith([first([1]), second(), third()]);
    fixture.pauses = [pauseOfFirst(6)];
    await fixture.inspect(scheduler, 10);
    expect((await fixture.records("second")).at(-1)).toEqual([
      10,
      "skipped",
      "predecessor",
      "first did not start: skipped (paused): move (ada)",
    ]);
    expect((await fixture.records("third")).map(([slot]) => slot)).toEqual([10]);
    expect(await fixture.audit(third())).toEqual({ slots: 2, findings: [] });
  });

  it("is missed when its predecessor exceeds `within`, and does not start later", async () => {
    const { fixture, store } = await houseWith([first([1]), second({ after: following({ withinMs: 20_000 }) })]);
    fixture.nowMs = chainStart + 25_001;
    await fixture.chains().sweep();
    await fixture.end(taskAt(fixture.tasksOf("first"), 0));
    expect(await fixture.records("second")).toEqual([[5, "missed", "after-within", "first had not ended"]]);
    // The step of the chain notes it as that of the ledger does, for the gauges.
    expect(await readTroubles(store)).toEqual([{ trouble: "missed", policy: "second", atMs: fixture.nowMs }]);
    expect(fixture.tasksOf("second")).toEqual([]);
  });

  it("is skipped when it is paused as the predecessor ends, whatever was before", async () => {
    const { fixture } = await houseWith([first([1]), second()]);
    const pause = { v: 1, scope: "policy", name: "second", note: "later", actor: "ada", endedBy: null } as const;
    fixture.pauses = [{ ...pause, sinceMs: chainStart + 6_000, untilMs: null }];
    fixture.nowMs = chainStart + 7_000;
    await fixture.end(taskAt(fixture.tasksOf("first"), 0));
    expect(await fixture.records("second")).toEqual([[5, "skipped", "paused", "later (ada)"]]);
  });

  it("counts a task whose outcome is older than the slot, as after a loss of Redis", async () => {
    const { fixture, scheduler } = await houseWith([first(), second()]);
    const slot = { slotMs: chainStart + 10_000, origin: "schedule", covers: [] } as const;
    const [restored, other] = tasksOf(first(), slot);
    await fixture.record(restored as Task);
    await fixture.inspect(scheduler, 10);
    for (const _ of [1, 2]) await fixture.chains().taskOver(restored as Task);
    expect(fixture.tasksOf("second")).toEqual([]);
    await fixture.end(other as Task);
    expect(await fixture.records("second")).toEqual([[10, "started", "followed", "first ended: 2 succeeded"]]);
  });

  it("does not follow what was run by hand, even at the instant of a slot", async () => {
    const { fixture } = await houseWith([first([1]), second()]);
    const task = taskAt(fixture.tasksOf("first"), 0);
    await fixture.end({ ...task, origin: "manual", id: "first__run__1__m1" });
    expect(fixture.tasksOf("second")).toEqual([]);
    await fixture.end(task);
    expect(fixture.tasksOf("second")).toHaveLength(1);
  });
});

describe("a chain in a reload", () => {
  it("begins with the next slot of its predecessor, not with one that is running", async () => {
    const { fixture, scheduler } = await houseWith([first([1])]);
    fixture.policies = [first([1]), second()];
    scheduler.adopt(fixture.policies);
    await fixture.inspect(scheduler, 6);
    await fixture.end(taskAt(fixture.tasksOf("first"), 0));
    await fixture.chains().sweep();
    expect(await fixture.records("second")).toEqual([]);
    await fixture.inspect(scheduler, 10);
    await fixture.end(taskAt(fixture.tasksOf("first"), 1));
    expect((await fixture.records("second")).map(([slot, state]) => [slot, state])).toEqual([[10, "started"]]);
    expect(await fixture.audit(second())).toEqual({ slots: 1, findings: [] });
  });

  // What is caught up of its predecessor has no followers.
  it("begins now when its predecessor was added while nothing ran", async () => {
    const { fixture } = await houseWith([testPolicy({ name: "first", catchUp: "all", catchUpWindowMs: 60_000 })]);
    fixture.policies = [testPolicy({ name: "first", catchUp: "all", catchUpWindowMs: 60_000 }), second()];
    const restarted = fixture.scheduler();
    await fixture.inspect(restarted, 22, 25);
    for (const task of fixture.tasksOf("first")) await fixture.end(task);
    expect(fixture.tasksOf("first")).toHaveLength(5);
    expect((await fixture.records("second")).map(([slot]) => slot)).toEqual([25]);
    expect(await fixture.audit(second())).toEqual({ slots: 1, findings: [] });
  });

  it("ends waiting slots as removed once no policy follows, and begins anew on return", async () => {
    const policies = [first([1]), second({ after: following({ withinMs: 600_000 }) })];
    const { fixture, store: own } = await houseWith(policies);
    const scheduler = fixture.scheduler(async () => chainStart);
    await fixture.inspect(scheduler, 5);
    fixture.policies = [first([1])];
    scheduler.adopt(fixture.policies);
    await fixture.inspect(scheduler, 6, 604);
    expect(await fixture.records("second")).toEqual([]);
    await fixture.inspect(scheduler, 615);
    expect(await fixture.records("second")).toEqual([
      [5, "skipped", "removed", "second does not follow first any more"],
    ]);
    expect(await own.redis.hexists(own.key("watermarks"), "second")).toBe(0);
    const expiries = () => Promise.all(["slots", "slot-index"].map((name) => own.redis.pttl(own.key(name, "second"))));
    for (const leftMs of await expiries()) expect(leftMs).toBeGreaterThan(0);
    fixture.policies = [first([1]), second()];
    scheduler.adopt(fixture.policies);
    await fixture.inspect(scheduler, 616, 620);
    await fixture.end(taskAt(fixture.tasksOf("first"), -1 + fixture.tasksOf("first").length));
    expect((await fixture.records("second")).map(([slot]) => slot)).toEqual([5, 620]);
    expect(await expiries()).toEqual([-1, -1]);
    expect(await fixture.audit(second())).toEqual({ slots: 1, findings: [] });
  });

  it("misses what a replica planned that did not know it yet, and says so", async () => {
    const { fixture, knowing, unknowing, store: own } = await rolloutOf([first([1])], [first([1]), second()]);
    await fixture.inspect(unknowing, 7, 10);
    await fixture.inspect(knowing, 11);
    expect(await fixture.audit(second())).toEqual({ slots: 1, findings: [] });
    await fixture.inspect(knowing, 15);
    await fixture.end(taskAt(fixture.tasksOf("first"), 2));
    await fixture.chains().sweep();
    expect(await fixture.records("second")).toEqual([leftOut(10), [15, "started", "followed", expect.any(String)]]);
    expect(await readTroubles(own)).toEqual([{ trouble: "missed", policy: "second", atMs: fixture.nowMs }]);
    expect(await fixture.audit(second())).toEqual({ slots: 2, findings: [] });
  });

  it("misses what its predecessor had while its own file was away for a moment", async () => {
    const { fixture, scheduler } = await houseWith([first([1]), second()]);
    for (const [policies, ...seconds] of [
      [[first([1])], 6, 10],
      [[first([1]), second()], 11, 15],
    ] as const) {
      fixture.policies = policies;
      scheduler.adopt(policies);
      await fixture.inspect(scheduler, ...seconds);
    }
    for (const task of fixture.tasksOf("first")) await fixture.end(task);
    await fixture.chains().sweep();
    const followed = ["started", "followed", "first ended: 1 succeeded"];
    expect(await fixture.records("second")).toEqual([[5, ...followed], leftOut(10), [15, ...followed]]);
    expect(await fixture.audit(second())).toEqual({ slots: 3, findings: [] });
  });

  it("misses the same when it followed another policy until now", async () => {
    const root = { name: "other", schedule: { kind: "every", everyMs: 5_000, spreadMs: 0 } } as const;
    const other = testPolicy({ name: "other" });
    const before = second({ after: following({ policy: "other", root }) });
    const { fixture, knowing, unknowing } = await rolloutOf([first([1]), other, before], [first([1]), other, second()]);
    await fixture.inspect(knowing, 6);
    await fixture.inspect(unknowing, 10);
    await fixture.inspect(knowing, 15);
    await fixture.chains().sweep();
    expect((await fixture.records("second")).filter(([slot]) => slot === 10)).toEqual([leftOut(10)]);
    expect(await fixture.audit(second())).toEqual({ slots: 2, findings: [] });
  });

  it("misses what others planned while the only replica that knew it restarted", async () => {
    const { fixture, unknowing } = await rolloutOf([first([1])], [first([1]), second(), third()]);
    await fixture.inspect(unknowing, 10);
    fixture.pauses = [pauseOfFirst(11)];
    await fixture.inspect(unknowing, 15);
    fixture.pauses = [];
    await fixture.inspect(fixture.scheduler(), 16, 20);
    await fixture.chains().sweep();
    const noStart = (text: string) => expect.stringContaining(`did not start: ${text}`);
    expect(await fixture.records("second")).toEqual([
      leftOut(10),
      [15, "skipped", "predecessor", noStart("skipped (paused)")],
    ]);
    expect(await fixture.records("third")).toEqual([
      [10, "skipped", "predecessor", noStart("missed (left-out)")],
      [15, "skipped", "predecessor", noStart("skipped (predecessor)")],
    ]);
    expect(await fixture.audit(third())).toEqual({ slots: 3, findings: [] });
  });

  it("is taken back after a rollout that is undone, and misses what came meanwhile", async () => {
    const middle = followerPolicy("middle", "first", { root: "first" });
    const after = [first([1]), middle, second({ after: following({ policy: "middle" }) }), third()];
    const { fixture } = await houseWith([first([1]), second(), third()]);
    await fixture.end(taskAt(fixture.tasksOf("first"), 0), "failed");
    const undone = fixture.scheduler(async () => chainStart);
    await fixture.inspect(undone, 6);
    fixture.policies = after;
    await fixture.inspect(fixture.scheduler(), 7);
    fixture.policies = [first([1]), second(), third()];
    await fixture.inspect(undone, 10, 69, 71, 75);
    for (const task of fixture.tasksOf("first").filter(({ slotMs }) => slotMs === chainStart + 75_000))
      await fixture.end(task);
    const missed = Array.from({ length: 13 }, (_, index) => `${10 + 5 * index} missed left-out`);
    const toLines = (records: readonly (readonly unknown[])[]) => records.map((one) => one.slice(0, 3).join(" "));
    const failed = "5 skipped predecessor";
    expect(toLines(await fixture.records("second"))).toEqual([failed, ...missed, "75 started followed"]);
    expect(toLines(await fixture.records("third"))).toEqual([failed, ...missed]);
    for (const policy of [second(), third()]) expect((await fixture.audit(policy)).findings).toEqual([]);
  });

  it("keeps its slots when two replicas get a longer chain right before a slot", async () => {
    const { fixture, scheduler } = await houseWith([first([1]), second(), third()]);
    const other = fixture.scheduler();
    await fixture.inspect(other, 6);
    const middle = followerPolicy("middle", "first", { root: "first" });
    fixture.policies = [first([1]), middle, second({ after: following({ policy: "middle" }) }), third()];
    scheduler.adopt(fixture.policies);
    await fixture.inspect(scheduler, 9);
    other.adopt(fixture.policies);
    await fixture.inspect(other, 10, 15, 20);
    for (const name of ["second", "third"]) {
      const waiting = (await fixture.book.waitingOf(name)).map(({ slotMs }) => (slotMs - chainStart) / 1_000);
      expect(waiting).toEqual(expect.arrayContaining([15, 20]));
    }
  });

  it("has a record of each slot that it was behind with when it is edited", async () => {
    const { fixture } = await rolloutOf([first([1])], [first([1]), second()]);
    const now = fixture.policies;
    fixture.policies = [first([1])];
    await fixture.inspect(fixture.scheduler(), 10);
    fixture.policies = now;
    const restarted = fixture.scheduler();
    await fixture.inspect(restarted, 11);
    const middle = followerPolicy("middle", "first", { root: "first" });
    restarted.adopt([first([1]), middle, second({ after: following({ policy: "middle" }) })]);
    await fixture.inspect(restarted, 12, 15);
    expect((await fixture.records("second")).map((one) => one.slice(0, 3))).toEqual([[10, "missed", "left-out"]]);
  });

  it("has them, too, when its predecessor had moved to another chain meanwhile", async () => {
    const hourly = { name: "hourly", schedule: { kind: "every", everyMs: 3_600_000, spreadMs: 0 } } as const;
    const slow = testPolicy(hourly);
    const moving = (changes: Partial<Policy> = {}) => followerPolicy("moving", "first", { root: "first", ...changes });
    const before = [first([1]), slow, moving({ after: following({ policy: "hourly", root: hourly }) }), second()];
    const { fixture } = await houseWith(before);
    const stays = fixture.scheduler(async () => chainStart);
    await fixture.inspect(stays, 6);
    const root = { name: "first", schedule: { kind: "every", everyMs: 7_000, spreadMs: 0 } } as const;
    const after = [moving({ after: following({ root }) }), second({ after: following({ policy: "moving", root }) })];
    fixture.policies = [{ ...first([1]), schedule: root.schedule }, slow, ...after];
    await fixture.inspect(fixture.scheduler(), 8);
    fixture.policies = before;
    await fixture.inspect(stays, 10, 71);
    const records = (await fixture.records("second")).filter(([slot]) => slot !== 5);
    expect(records.map((one) => one.slice(0, 3).join(" "))).toEqual(
      Array.from({ length: 9 }, (_, index) => `${9 + 7 * index} missed left-out`),
    );
  });

  it("starts late what was left out where its predecessor has another follower", async () => {
    const other = followerPolicy("other", "first", { root: "first" });
    const { fixture, knowing, unknowing } = await rolloutOf([first([1]), other], [first([1]), other, second()]);
    await fixture.inspect(unknowing, 10);
    await fixture.inspect(knowing, 11);
    fixture.policies = [first([1]), second()];
    await fixture.end(taskAt(fixture.tasksOf("first"), 1));
    fixture.policies = [first([1]), other];
    await fixture.chains().sweep();
    for (const name of ["other", "second"])
      expect(await fixture.records(name)).toEqual([[10, "started", "followed", "first ended: 1 succeeded"]]);
  });

  it("has a record for each slot though the newest policies lack and forget it", async () => {
    const { fixture, scheduler } = await houseWith([first([1]), second()]);
    fixture.policies = [first([1])];
    const lacking = fixture.scheduler();
    await fixture.inspect(lacking, 6);
    fixture.policies = [first([1]), second()];
    await fixture.ledger.tidy(new Set(["first"]));
    await fixture.inspect(scheduler, 10);
    await fixture.inspect(lacking, 11);
    await fixture.ledger.tidy(new Set(["first"]));
    await fixture.inspect(lacking, 15);
    await fixture.inspect(scheduler, 15);
    for (const task of fixture.tasksOf("first")) await fixture.end(task);
    await fixture.chains().sweep();
    const followed = ["started", "followed", "first ended: 1 succeeded"];
    expect(await fixture.records("second")).toEqual([[5, ...followed], [10, ...followed], leftOut(15)]);
    expect(await fixture.audit(second())).toEqual({ slots: 1, findings: [] });
  });

  it("is left out of no more slots than its predecessor has records", async () => {
    const { fixture, knowing, unknowing } = await rolloutOf([first([1])], [first([1]), second()]);
    await fixture.inspect(unknowing, 5_000, 5_500);
    await fixture.inspect(knowing, 5_501);
    await fixture.chains().sweep();
    const [records, waiting] = [await fixture.records("second"), await fixture.book.waitingOf("second")];
    expect(records.length + waiting.length).toBe(slotRecordsMax);
    expect(await fixture.audit(second())).toEqual({ slots: slotRecordsMax, findings: [] });
  });

  it("leaves what was left out to the newest policies, which may have removed it", async () => {
    const { fixture, knowing, unknowing } = await rolloutOf([first([1])], [first([1]), second()]);
    await fixture.inspect(unknowing, 10);
    fixture.newestSinceMs = Number.POSITIVE_INFINITY;
    await fixture.inspect(knowing, 11);
    await fixture.chains().sweep();
    expect(await fixture.records("second")).toEqual([]);
    expect((await fixture.book.waitingOf("second")).map(({ slotMs }) => (slotMs - chainStart) / 1_000)).toEqual([10]);
  });
});

describe("a chain that was changed while nothing ran", () => {
  const every = (seconds: number) => ({ kind: "every", everyMs: seconds * 1_000, spreadMs: 0 }) as const;

  it("has what it owed by its old schedule, each after its predecessor", async () => {
    const { fixture } = await houseWith([first([1]), second()]);
    await fixture.end(taskAt(fixture.tasksOf("first"), 0));
    const root = { name: "first", schedule: every(60) };
    fixture.policies = [{ ...first([1]), schedule: every(60) }, second({ after: following({ root }) })];
    await fixture.inspect(fixture.scheduler(), 11);
    expect(await fixture.records("second")).toHaveLength(1);
    await fixture.end(taskAt(fixture.tasksOf("first"), 1));
    const note = "first ended: 1 succeeded";
    expect(await fixture.records("second")).toEqual([
      [5, "started", "followed", note],
      [10, "started", "followed", note],
    ]);
    await fixture.inspect(fixture.scheduler(), 60);
    expect((await fixture.records("first")).map(([slot]) => slot)).toEqual([5, 10, 60]);
  });

  it("leaves no slot of a policy out that follows another one now", async () => {
    const alone = testPolicy({ name: "second", schedule: every(10) });
    const { fixture } = await houseWith([first([1]), alone]);
    fixture.policies = [first([1]), second()];
    await fixture.inspect(fixture.scheduler(), 32, 35);
    const records = await fixture.records("second");
    expect(records.map(([second, state]) => `${second} ${state}`)).toEqual([
      "10 coalesced",
      "20 coalesced",
      "30 started",
    ]);
    expect((await fixture.book.waitingOf("second")).map(({ slotMs }) => (slotMs - chainStart) / 1_000)).toEqual([35]);
  });

  it("leaves followers with their predecessor to the replica that was faster", async () => {
    const { fixture, scheduler } = await houseWith([first([1]), second()]);
    const root = { name: "first", schedule: every(7) };
    fixture.policies = [{ ...first([1]), schedule: every(7) }, second({ after: following({ root }) })];
    const faster = fixture.scheduler();
    await fixture.inspect(faster, 6);
    scheduler.adopt(fixture.policies);
    await fixture.inspect(scheduler, 10, 14);
    await fixture.inspect(faster, 14);
    expect(fixture.tasksOf("first").map(({ slotMs }) => (slotMs - chainStart) / 1_000)).toEqual([5, 9]);
    expect(fixture.tasksOf("second")).toEqual([]);
  });

  it("starts nothing that a follower owes whose predecessor is gone", async () => {
    const { fixture } = await houseWith([first([1]), second(), third()]);
    await fixture.end(taskAt(fixture.tasksOf("first"), 0), "failed");
    const now = followerPolicy("third", "first", { root: "first" });
    fixture.policies = [first([1]), now];
    await fixture.inspect(fixture.scheduler(), 12, 15);
    await fixture.end(taskAt(fixture.tasksOf("first"), 2));
    expect(await fixture.records("third")).toEqual([
      [5, "skipped", "predecessor", expect.any(String)],
      [10, "missed", "left-out", undefined],
      [15, "started", "followed", "first ended: 1 succeeded"],
    ]);
    expect((await fixture.audit(now)).findings).toEqual([]);
  });

  it("starts nothing that it owes either when its whole chain is gone", async () => {
    const { fixture } = await houseWith([first([1]), second()]);
    await fixture.end(taskAt(fixture.tasksOf("first"), 0));
    fixture.policies = [testPolicy({ name: "second", schedule: every(60) })];
    await fixture.inspect(fixture.scheduler(), 12, 60);
    const records = await fixture.records("second");
    expect(records.map(([second, state]) => `${second} ${state}`)).toEqual(["5 started", "10 missed", "60 started"]);
  });
});
