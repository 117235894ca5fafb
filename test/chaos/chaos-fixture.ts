// What a chaos plays on: a sandbox, a policy file, a key prefix of its own in a real Redis, a fleet
// over them, and those who come after the storm to end what the dead left behind. Used by every
// kind of chaos.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { startApp } from "../../src/app/app.ts";
import { policyChecks } from "../../src/cli/shared-options.ts";
import { loadPolicies } from "../../src/config/load-policies.ts";
import type { PolicySet } from "../../src/config/policy-set.ts";
import type { EventFields, EventLog } from "../../src/core/event-log.ts";
import { Producer } from "../../src/queue/producer.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { Scheduler } from "../../src/schedule/scheduler.ts";
import { openStore, redisTimeMs, type Store } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { entryKey } from "../../src/store/start-entry.ts";
import type { TaskTiming } from "../../src/tasks/timing.ts";
import { runHere } from "../support/commands-here.ts";
import { shortTiming } from "../support/short-timing.ts";
import type { FaultScript, Point } from "./fault-script.ts";
import { Fleet } from "./fleet.ts";
import type { ReplicaEvent } from "./replica.ts";
import type { ReplicaOrders } from "./replica-orders.ts";

const beginWithinMs = 180_000;
/**
 * Shorter than a lease: that nobody takes one over whose holder's end was forgotten with Redis's
 * memory is seen. On a busy machine a walk takes seconds, and its list rests five times as long:
 * three runs of one sync job, one after the other, need some twenty times a walk.
 */
const drainWithinMs = 600_000;
const reachableWithinMs = 20_000;
/**
 * When who works off takes a worker for dead. The services and checkers of many seeds run in this
 * process: on a busy machine it renews its own locks late.
 */
const heirTakesOverAfterMs = 5_000;
/** The sweep leaves entries of the outbox that are younger than this. */
const sweepAfterMs = 5_100;
const looksMax = 3;

/**
 * What a fixture is set up with. `name` keeps its keys apart from those of others; `policies` are
 * the items of `policies:`, indented by two.
 */
export interface HouseOptions {
  readonly redisUrl: string;
  readonly name: string;
  readonly policies: string;
  readonly sandbox?: Parameters<typeof startSandbox>[0];
  /** Further settings of the service, in YAML's short form. */
  readonly service?: string;
  /** Further services, as lines of YAML. */
  readonly moreServices?: string;
  /** An exchange that takes longer is told as `exchange.held`. */
  readonly exchangeMsMax?: number;
  /**
   * How patient work is, where it differs from 500 ms for a baseline and as much for a lost answer.
   */
  readonly timing?: Partial<TaskTiming>;
  /** When a worker that is silent is taken for dead; a second unless said. */
  readonly takeOverAfterMs?: number;
}

/** What all replicas are told alike: short of patience so that nobody waits long. */
function commonOrders({ redis, config, timing, takeOverAfterMs, exchangeMsMax }: HouseParts) {
  return {
    ...(exchangeMsMax === undefined ? {} : { exchangeMsMax }),
    config,
    redis,
    takeOverAfterMs,
    drainMs: 3_000,
    timing: { ...shortTiming, baselineWithinMs: 500, verifyForMs: 500, ...timing },
    pace: { gapMs: 100, fastestMs: 300, slowestMs: 1_000 },
  } satisfies Partial<ReplicaOrders>;
}

/** Sets a fixture up. */
export async function openFixture(options: HouseOptions): Promise<ChaosFixture> {
  const { redisUrl, name, policies, sandbox: told, service: more = "timeouts: { request: 2s }" } = options;
  const { timing = {}, takeOverAfterMs = 1_000, moreServices = "", exchangeMsMax } = options;
  const redis = { url: redisUrl, prefix: `chaos-${process.pid}-${name}` };
  const sandbox = await startSandbox({ activities: 0, runMs: [100, 300], ...told });
  const folder = await mkdtemp(join(tmpdir(), "syncline-chaos-"));
  const config = join(folder, "policies.yaml");
  const variables = { TEST_TOKEN: sandbox.token, SYNCLINE_OUTCOMES_KEPT: "100000" };
  const service = `  main: { baseUrl: "${sandbox.baseUrl}", token: { env: TEST_TOKEN }, ${more} }`;
  const defaults = "defaults: { follow: { unreadableFor: 8s } }";
  await writeFile(
    config,
    `apiVersion: syncline/v1\nservices:\n${service}\n${moreServices}${defaults}\npolicies:\n${policies}\n`,
  );
  const loaded = await loadPolicies(config, { variables, checks: policyChecks });
  if (!loaded.ok) throw new Error(`${name}: ${loaded.problems.map(({ message }) => message).join("; ")}\n${policies}`);
  const store = await openStore(redis);
  const patience = { timing, takeOverAfterMs, exchangeMsMax };
  return new ChaosFixture({ redis, sandbox, folder, config, variables, set: loaded.set, store, ...patience });
}

interface HouseParts {
  readonly redis: ReplicaOrders["redis"];
  readonly sandbox: Sandbox;
  readonly folder: string;
  readonly config: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly set: PolicySet;
  readonly store: Store;
  readonly timing: Partial<TaskTiming>;
  readonly takeOverAfterMs: number;
  readonly exchangeMsMax: number | undefined;
}

/** A fixture, from its set-up to `close`. */
export class ChaosFixture {
  readonly parts: HouseParts;
  /**
   * Every line of every replica, and of those who come after the storm, in the order in which they
   * were read.
   */
  readonly events: ReplicaEvent[] = [];
  readonly #log: EventLog;
  readonly #fleets: Fleet[] = [];

  constructor(parts: HouseParts) {
    this.parts = parts;
    const add = (event: string, fields: EventFields = {}) => {
      this.events.push({ ...fields, event, replica: "after the storm" });
    };
    this.#log = { info: add, warn: add, error: add };
  }

  /** The fleet of a script in this fixture, not yet started. */
  fleet(script: FaultScript): Fleet {
    const { variables } = this.parts;
    const onEvent = (event: ReplicaEvent, replica: number) => void this.events.push({ ...event, replica });
    const fleet = new Fleet({ script, orders: commonOrders(this.parts), environment: variables, onEvent });
    this.#fleets.push(fleet);
    return fleet;
  }

  /**
   * Waits until every policy has begun, so that what is due from then on is known; answers since
   * when, by policy.
   */
  async untilBegun(): Promise<Map<string, number>> {
    const { redis, key } = this.parts.store;
    const names = this.parts.set.policies.map(({ name }) => name);
    for (const untilMs = performance.now() + beginWithinMs; performance.now() < untilMs; ) {
      const since = await redis.hmget(key("kept-since"), ...names);
      if (since.every((value) => value !== null))
        return new Map(names.map((name, index) => [name, Number(since[index])]));
      await delay(20);
    }
    throw new Error("no scheduler began in three minutes");
  }

  /** Waits until a first replica works. */
  async untilReady(): Promise<void> {
    for (const untilMs = performance.now() + beginWithinMs; performance.now() < untilMs; await delay(20))
      if (this.events.some(({ event }) => event === "serve.ready")) return;
    const ends = this.#fleets.flatMap(({ unexpectedEnds }) => unexpectedEnds);
    throw new Error(["no replica was ready in three minutes", ...ends].join("\n"));
  }

  /** Waits until a replica came to the trap at this point; false: none did in three minutes. */
  async untilSprung(trap: Point): Promise<boolean> {
    const isSprung = () => this.events.some(({ event, point }) => event === "trap.sprung" && point === trap);
    for (const untilMs = performance.now() + beginWithinMs; performance.now() < untilMs; await delay(50))
      if (isSprung()) return true;
    return false;
  }

  /**
   * One more scheduler looks, as one that is started anyhow would; again when something lies in the
   * outbox that was too young to be swept. Answers the time of Redis before its last look: what was
   * due until then has to be there.
   */
  async lookUntilQuiet(): Promise<number> {
    const { store, redis, set } = this.parts;
    const ledger = new SlotLedger(store);
    const producer = new Producer(redis, this.#log);
    const enqueue = producer.enqueue.bind(producer);
    try {
      for (let look = 1; ; look += 1) {
        const endMs = await redisTimeMs(store);
        await new Scheduler({ policies: set.policies, ledger, enqueue, log: this.#log }).runOnce();
        const waiting = await ledger.outbox();
        if (waiting.length === 0 || look === looksMax) return endMs;
        const youngestMs = Math.max(...waiting.map((slots) => slots.plannedAtMs ?? slots.newWatermarkMs));
        // Planned by a clock that is ahead, it is not swept today: the checker finds it in the
        // outbox.
        await delay(Math.min(Math.max(0, youngestMs + sweepAfterMs - endMs), sweepAfterMs));
      }
    } finally {
      await producer.close();
    }
  }

  /**
   * One more worker ends what the dead left behind, until no task is queued. A list that a dead one
   * waited for is read some minutes longer (src/tasks/followed-lists.ts): that is not awaited.
   */
  async workOff(): Promise<void> {
    const { redis, set, variables } = this.parts;
    const { timing, pace, drainMs } = commonOrders(this.parts);
    const how = { timing, pace, takeOverAfterMs: heirTakesOverAfterMs, drainMs, log: this.#log };
    const app = await startApp({ set, redis, roles: ["worker"], variables, ...how });
    try {
      for (const untilMs = performance.now() + drainWithinMs; performance.now() < untilMs; await delay(250))
        // On a machine that is too busy to answer, it is asked again.
        if ((await this.#queuedTasks().catch(() => undefined))?.length === 0) return;
      throw new Error(`the queues did not get empty in time: ${await this.#leftInQueues()}`);
    } finally {
      await app.stop();
    }
  }

  /** The tasks in the queues of the service at one instant, each with its list of BullMQ. */
  async #queuedTasks(): Promise<{ readonly list: string; readonly id: string }[]> {
    const { store, redis } = this.parts;
    const lists = ["wait", "active", "prioritized", "delayed"] as const;
    const reading = (store.redis as Redis).multi();
    for (const queue of ["main-actions", "main-polls"]) {
      const of = (list: (typeof lists)[number]) => [redis.prefix, queue, list].join(":");
      reading.lrange(of("wait"), 0, -1).lrange(of("active"), 0, -1);
      reading.zrange(of("prioritized"), "0", "-1").zrange(of("delayed"), "0", "-1");
    }
    const answers = (await reading.exec()) ?? [];
    const found = answers.flatMap(([error, ids], index) => {
      if (error !== null) throw error;
      return (ids as string[]).map((id) => ({ list: lists[index % lists.length] ?? "", id }));
    });
    return found.filter(({ id }) => id.includes("__"));
  }

  /** Waits until Redis answers again; its connection may be resting between two tries. */
  async untilReachable(): Promise<void> {
    for (const untilMs = performance.now() + reachableWithinMs; ; await delay(100)) {
      try {
        await this.parts.store.redis.ping();
        return;
      } catch (error) {
        if (performance.now() > untilMs) throw error;
      }
    }
  }

  async #leftInQueues(): Promise<string> {
    const { store, redis } = this.parts;
    const held = (await this.#queuedTasks()).map(async ({ list, id }) => {
      const entry = await store.redis.hgetall(entryKey(store, id));
      return `${list} ${id} (${entry["state"] ?? "not in the journal"}, ${entry["sends"] ?? 0} sent)`;
    });
    const leases: string[] = [];
    const client = store.redis as Redis;
    for await (const keys of client.scanStream({ match: `${redis.prefix}:lease:*`, count: 1_000 }))
      for (const key of keys.map(String)) leases.push(`${key} is held by ${await client.get(key)}`);
    return [...(await Promise.all(held)), ...leases].join(", ");
  }

  /**
   * What the command that operators have says of everything up to this instant: nothing when all is
   * well.
   */
  async auditByCommand(toMs: number): Promise<string[]> {
    const { redis, config, variables } = this.parts;
    const args = ["audit", "--config", config, "--prefix", redis.prefix, "--until", new Date(toMs).toISOString()];
    const { code, out, err } = await runHere(args, { ...variables, REDIS_URL: redis.url });
    return code === 0 ? [] : [`syncline audit ended with ${code}: ${out}${err}`];
  }

  /** Takes everything away, also replicas that nobody has ended. */
  async close(): Promise<void> {
    const { store, redis, sandbox, folder } = this.parts;
    await Promise.all(this.#fleets.map((fleet) => fleet.kill()));
    const client = store.redis as Redis;
    for await (const keys of client.scanStream({ match: `${redis.prefix}:*`, count: 1_000 })) {
      if (keys.length > 0) await store.redis.unlink(keys);
    }
    await store.close();
    await sandbox.stop();
    await rm(folder, { recursive: true });
  }
}
