// Chains while sets of policies change, by seed: two replicas reload and restart at any time, with
// one of three sets. No slot may be lost or started twice, and no follower may start by itself.
import { expect, it } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import type { ScheduledPolicy } from "../../../src/model/slot-record.ts";
import type { Scheduler } from "../../../src/schedule/scheduler.ts";
import { createChainSource, withSchedule } from "../../../src/schedule/slots.ts";
import type { Store } from "../../../src/store/redis.ts";
import { createRandom, type SeededRandom } from "../../chaos/seeded-random.ts";
import { ChainFixture, chainStart, followerPolicy } from "../../support/chain-fixture.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";

const target = redisForTest();
const store = await storeForTest(target);
const followers = ["a", "b", "c"];
const seeds = 20;
const steps = 60;

/** Two policies with schedules, and three that follow one of those before them. */
function drawSet(random: SeededRandom): Policy[] {
  const policies: Policy[] = ["one", "two"].map((name) => {
    const everyMs = random.pick([5_000, 5_000, 7_000]);
    return testPolicy({ name, schedule: { kind: "every", everyMs, spreadMs: 0 } });
  });
  for (const name of random.chance(0.5) ? followers : followers.toReversed()) {
    const { name: first, schedule, after } = random.pick(policies);
    const root = after?.root ?? { name: first, schedule: schedule as NonNullable<Policy["schedule"]> };
    const following = { policy: first, on: ["succeeded"], withinMs: 60_000, root } as const;
    policies.push(followerPolicy(name, first, { root: root.name, after: following }));
  }
  return policies;
}

/** Notes each slot that a watermark jumps over when another schedule comes into force. */
function watchJumps({ ledger }: ChainFixture, own: Store, lost: string[]): void {
  const open = ledger.openWatermarks.bind(ledger);
  ledger.openWatermarks = async (policies: readonly ScheduledPolicy[], nowMs: number) => {
    const names = policies.map(({ policy }) => policy);
    const [before, texts] = [await ledger.plannedUpTo(names), await own.redis.hgetall(own.key("schedules"))];
    const answers = await open(policies, nowMs);
    for (const name of names) {
      const [fromMs, text, after] = [before.get(name), texts[name], answers.get(name)];
      if (fromMs === undefined || text === undefined || after === undefined || after.schedule === text) continue;
      const old = withSchedule(testPolicy({ name }), text);
      const slots = (old && createChainSource(old)?.due(fromMs, after.watermarkMs)) ?? [];
      lost.push(...slots.map((slotMs) => `${name} ${(slotMs - chainStart) / 1_000}`));
    }
    return answers;
  };
}

/** Lets two replicas live through one seed; answers the slots that were lost. */
async function live(seed: number): Promise<{ readonly fixture: ChainFixture; readonly lost: readonly string[] }> {
  const random = createRandom(seed);
  const own: Store = { ...store, key: (...parts) => [`${target.prefix}-${seed}`, ...parts].join(":") };
  const sets = [drawSet(random), drawSet(random), drawSet(random)];
  const fixture = new ChainFixture(own, sets[0] ?? []);
  const lost: string[] = [];
  watchJumps(fixture, own, lost);
  let newest = sets[0];
  const begin = (set: Policy[] | undefined) => {
    const replica = { set, scheduler: undefined as Scheduler | undefined };
    fixture.policies = set ?? [];
    replica.scheduler = fixture.scheduler(async () => (replica.set === newest ? chainStart : Number.POSITIVE_INFINITY));
    return replica;
  };
  const replicas = [begin(newest), begin(newest)];
  for (let step = 0; step < steps; step += 1) {
    fixture.nowMs += random.chance(0.05) ? 61_000 : random.pick([500, 1_000, 2_000, 3_000, 5_000]);
    const index = random.integer(0, 1);
    const replica = replicas[index];
    const happens = random.weighted({ nothing: 12, rollout: 2, reload: 1, restart: 1, undone: 1 });
    if (happens === "rollout") newest = random.pick(sets);
    if (happens === "undone") newest = replica?.set;
    if (happens === "restart" || (happens === "rollout" && random.chance(0.5)))
      replicas[index] = begin(happens === "restart" ? replica?.set : newest);
    else if (replica !== undefined && (happens === "rollout" || happens === "reload")) {
      replica.set = newest;
      replica.scheduler?.adopt(newest ?? []);
    }
    for (const one of random.chance(0.5) ? replicas : replicas.toReversed()) {
      fixture.policies = one.set ?? [];
      if (random.chance(0.85)) await one.scheduler?.runOnce();
      for (const task of fixture.queued.slice(fixture.queued.length - random.integer(0, 3))) await fixture.end(task);
    }
  }
  // In the end both have the newest set: one takes back what they left to others.
  fixture.policies = newest ?? [];
  for (const replica of replicas) {
    replica.set = newest;
    replica.scheduler?.adopt(fixture.policies);
  }
  for (let round = 0; round < 14; round += 1) {
    fixture.nowMs += 5_000;
    for (const { scheduler } of replicas) await scheduler?.runOnce();
  }
  return { fixture, lost };
}

it.each(Array.from({ length: seeds }, (_, index) => index + 1))("loses and repeats no slot, seed %i", async (seed) => {
  const { fixture, lost } = await live(seed);
  expect(lost).toEqual([]);
  const ids = fixture.queued.map(({ id }) => id);
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  const planned = await fixture.ledger.plannedUpTo(followers);
  for (const policy of fixture.policies.filter(({ after }) => after !== undefined)) {
    const { name } = policy;
    expect((await fixture.audit(policy)).findings).toEqual([]);
    expect(planned.get(name)).toBeGreaterThan(fixture.nowMs - 7_000);
    const started = (await fixture.records(name)).filter(([, state]) => state === "started");
    expect(started.filter(([, , detail]) => detail !== "followed")).toEqual([]);
  }
});
