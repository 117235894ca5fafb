// One chaos of starts from its seed to its findings: policies, workers, tasks put into the queue,
// what befalls them, the end, the checker.
import { setTimeout as delay } from "node:timers/promises";
import { silentLog } from "../../src/core/event-log.ts";
import type { Task } from "../../src/model/task.ts";
import { Producer } from "../../src/queue/producer.ts";
import { tasksOf } from "../../src/schedule/slot-tasks.ts";
import { type ChaosFixture, openFixture } from "./chaos-fixture.ts";
import { ChaosRedis } from "./chaos-redis.ts";
import { findShownSecrets } from "./check-secrets.ts";
import { checkStarts, type StartVerdict, whysUnknown } from "./check-starts.ts";
import { tellScript } from "./fault-script.ts";
import { type Batch, planStartChaos, type StartChaos } from "./plan-starts.ts";
import { planStepChaos } from "./plan-steps.ts";
import type { ChaosResult, RunSeed } from "./run-seeds.ts";

const toldEventsMax = 400;
const jobs = 60;
/** A Redis that is started again on a busy machine takes its time. */
const againMax = 120;
const serviceSettings = (showsActive: boolean) =>
  "timeouts: { request: 2s }, limits: { concurrency: 8 }, breaker: { after: 5, probe: 1s }, " +
  "mapping: { activity: { id: item.activityId, syncJobId: item.syncJobId, startedAt: item.startedAt, " +
  `finished: 'item.state in ["Finished", "Failed"]', succeeded: 'item.state == "Finished"' }, ` +
  `conflict: { id: item.conflictId, syncJobId: item.syncJobId }${showsActive ? ", syncJob: { active: item.isActive }" : ""} }`;

/**
 * Longer than a process is held up here: who comes back brings its answer. A walk may have to be
 * taken over, too.
 */
const timing = { baselineWithinMs: 3_000, verifyForMs: 3_500, syncJobUnreadableForMs: 8_000 };

/**
 * Shorter than most stops, and longer than a busy machine keeps a process from renewing its locks.
 */
const takeOverAfterMs = 1_500;

/** Runs the chaos of starts of this seed. */
export const runStartChaos: RunSeed = (seed, ...rest) => runPlan(planStartChaos(seed), seed, ...rest);

/** Runs the chaos in which the workers die at the step of this seed. */
export const runStepChaos: RunSeed = (seed, ...rest) => runPlan(planStepChaos(seed), seed, ...rest);

async function runPlan(plan: StartChaos, ...[seed, redisUrl, stormIsOver]: Parameters<RunSeed>): Promise<ChaosResult> {
  const redis = plan.kind === "redis" ? await ChaosRedis.start(plan.redisTrouble) : undefined;
  try {
    const fixture = await openFixture({
      redisUrl: redis?.url ?? redisUrl,
      name: `starts-${seed}`,
      policies: plan.policies,
      sandbox: { seed, jobs, faults: plan.serviceFaults, fieldNames: { isActive: "isActive" } },
      service: serviceSettings(plan.showsActive),
      timing,
      takeOverAfterMs,
    });
    try {
      return await passThrough(seed, { plan, fixture, redis, stormIsOver });
    } finally {
      await fixture.close();
    }
  } finally {
    await redis?.stop();
  }
}

interface Scene {
  readonly plan: StartChaos;
  readonly fixture: ChaosFixture;
  readonly redis: ChaosRedis | undefined;
  readonly stormIsOver: () => void;
}

async function passThrough(seed: number, { plan, fixture, redis, stormIsOver }: Scene): Promise<ChaosResult> {
  const producer = new Producer(fixture.parts.redis, silentLog);
  const tasks: Task[] = [];
  const story: string[] = [];
  try {
    const fleet = fixture.fleet(plan.script);
    fleet.start();
    await fixture.untilReady();
    const queued = plan.batches.map((batch) => queue(batch, { fixture, producer, tasks }));
    const troubled = plan.redisTrouble.map(async (trouble) => {
      await delay(trouble.atMs);
      await redis?.strike(trouble);
    });
    await fleet.storm();
    const { awaitsTrap } = plan;
    const isSprung = awaitsTrap === undefined || (await fixture.untilSprung(awaitsTrap));
    const report = await fleet.end(plan.endsWith);
    stormIsOver();
    story.push(...report.story);
    await Promise.all([...queued, ...troubled]);
    // As a sweep does, or an operator: what is known already is dropped, what Redis lost comes
    // again.
    await again(() => producer.enqueue(tasks));
    await fixture.untilReachable();
    await fixture.workOff();
    const verdict = await checkStarts(fixture, { plan, tasks });
    return {
      seed,
      // A process that starts while Redis is away says so and ends, as it should.
      findings: [
        ...(isSprung ? [] : [`nobody came to ${awaitsTrap}`]),
        ...report.unexpectedEnds.filter((end) => redis === undefined || !end.includes("OutOfReachError")),
        ...verdict.findings,
        ...(await findShownSecrets(fixture)),
      ],
      story: () => tell(plan, story, fixture),
      counts: {
        processes: report.starts,
        strikes: report.strikes + plan.redisTrouble.length,
        ...count(plan, verdict),
      },
    };
  } finally {
    await producer.close();
  }
}

/**
 * Puts one task of each policy's sync jobs into the queue; for as long as it takes, since Redis may
 * be away.
 */
async function queue(
  { atMs, startWithinMs }: Batch,
  { fixture, producer, tasks }: { fixture: ChaosFixture; producer: Producer; tasks: Task[] },
): Promise<void> {
  await delay(atMs);
  // Names of its own, also when the machine is so busy that two batches come in one millisecond.
  const slotMs = Math.max(Date.now(), 1 + (tasks.at(-1)?.slotMs ?? 0));
  const made = fixture.parts.set.policies
    .flatMap((policy) => tasksOf(policy, { slotMs, origin: "manual", covers: [] }))
    .map((task) => (startWithinMs === undefined ? task : { ...task, startByMs: slotMs + startWithinMs }));
  tasks.push(...made);
  await again(() => producer.enqueue(made));
}

async function again(what: () => Promise<void>): Promise<void> {
  for (let round = 1; ; round += 1) {
    try {
      return await what();
    } catch (error) {
      if (round === againMax) throw error;
      await delay(500);
    }
  }
}

function count({ kind }: StartChaos, { tasks, unknown, starts }: StartVerdict): Record<string, number> {
  const why = whysUnknown.map((word) => [`unknown (${word}) under ${kind}`, unknown[word]]);
  return { tasks, starts, [`tasks under ${kind}`]: tasks, ...Object.fromEntries(why) };
}

function tell(plan: StartChaos, story: readonly string[], fixture: ChaosFixture): string[] {
  const { kind, showsActive, policies, batches, script, serviceFaults, redisTrouble } = plan;
  return [
    `trouble with: ${kind}; the mapping ${showsActive ? "says" : "does not say"} what an active sync job looks like`,
    policies,
    ...tellScript(script),
    ...batches.map((batch) => `batch ${JSON.stringify(batch)}`),
    ...serviceFaults.map((fault) => `the service: ${JSON.stringify(fault)}`),
    ...redisTrouble.map((trouble) => `Redis: ${JSON.stringify(trouble)}`),
    ...story,
    ...fixture.events.slice(-toldEventsMax).map((event) => JSON.stringify(event)),
    ...fixture.parts.sandbox.ledger().map((entry) => JSON.stringify(entry)),
  ];
}
