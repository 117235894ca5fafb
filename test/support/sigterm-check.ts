// Ends real `syncline serve` processes with SIGTERM at seeded instants while starts are under way,
// and says what went wrong. Used by test/cli/sigterm.test.ts (a sample) and test/chaos/sigterm.ts
// (as many as one likes).
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { policyChecks } from "../../src/cli/shared-options.ts";
import { loadPolicies } from "../../src/config/load-policies.ts";
import type { Policy } from "../../src/config/policy-set.ts";
import { silentLog } from "../../src/core/event-log.ts";
import { taskId } from "../../src/model/task.ts";
import { Producer } from "../../src/queue/producer.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { tasksOf } from "../../src/schedule/slot-tasks.ts";
import { History } from "../../src/store/history.ts";
import { openStore, type RedisTarget } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { Syncline } from "./processes.ts";

/** What to do. */
export interface SigtermOptions {
  readonly redis: RedisTarget;
  readonly rounds: number;
  readonly seed: number;
  /** How many processes live side by side; 2 unless said. */
  readonly lanes?: number;
  /** Told after each round; for long runs. */
  readonly onRound?: (round: number) => void;
}

/** What was found. `wrong` is empty when all is well. */
export interface SigtermReport {
  readonly wrong: readonly string[];
  readonly tasks: number;
  readonly starts: number;
  /** Those that end as unknown, but for runs without a baseline. */
  readonly unknown: readonly string[];
  /**
   * The share of the followed runs that had a reading of their lists, from 0 to 1: the less, the
   * busier the machine. That a list goes on with the next process is held by test/cli/stop.test.ts.
   */
  readonly baselineShare: number;
  /** Tasks whose line `task.finished` came more than once. */
  readonly toldTwice: number;
  readonly slowestExitMs: number;
  /** How many processes ended with their drain, and not with their work. */
  readonly slowExits: number;
}

const drainMs = 15_000;
/** The grace period of a process: its drain, and what `serve` adds for closing connections. */
const graceMs = drainMs + 4_000;
/**
 * How many of the signals come at an instant after the start of the process instead of after it is
 * ready.
 */
const startingShare = 0.2;
const endsWithinMs = 120_000;
/**
 * Followed runs of one sync job within 20 s are taken for each other, so each round takes other
 * sync jobs.
 */
const followedJobs = Array.from({ length: 100 }, (_, index) => String(21 + index));

const policies = (url: string) => `apiVersion: syncline/v1
services:
  main:
    baseUrl: ${url}
    token: { env: TEST_TOKEN }
    limits: { concurrency: 8 }
    mapping:
      activity: { id: item.activityId, syncJobId: item.syncJobId, startedAt: item.startedAt, finished: 'item.state in ["Finished", "Failed"]', succeeded: item.state == "Finished" }
      conflict: { id: item.conflictId, syncJobId: item.syncJobId }
policies:
  - { name: often, service: main, run: { syncJobs: [1, 2] }, schedule: { every: 1s }, overlap: allow, follow: { until: accepted } }
  - { name: by-hand, service: main, run: { syncJobs: [3, 4, 6, 8] }, overlap: allow, follow: { until: accepted } }
  - { name: followed, service: main, run: { syncJobs: [${followedJobs.join(", ")}] }, overlap: allow, follow: { until: settled, deadline: 20s } }
`;

/** Does the rounds and compares Redis and the service's ledger afterwards. */
export async function checkSigterm(options: SigtermOptions): Promise<SigtermReport> {
  const folder = await mkdtemp(join(tmpdir(), "syncline-sigterm-"));
  const sandbox = await startSandbox({
    jobs: 20 + followedJobs.length,
    runMs: [100, 300],
    activities: 250,
    faults: [
      { kind: "latency", operation: "RunSyncJob", delayMs: 60 },
      { kind: "latency", operation: "RunSyncJob", every: 9, delayMs: 700 },
      { kind: "latency", operation: "GetActivities", delayMs: 40 },
    ],
  });
  const fixture = new Fixture(options, sandbox, folder);
  try {
    await fixture.open();
    const { lanes = 2, seed } = options;
    const randoms = Array.from({ length: lanes }, (_, lane) => seeded(seed * lanes + lane));
    await Promise.all(randoms.map((random) => fixture.work(random)));
    return await fixture.judge();
  } finally {
    await fixture.close();
    await sandbox.stop();
    await rm(folder, { recursive: true });
  }
}

class Fixture {
  readonly #options: SigtermOptions;
  readonly #sandbox: Sandbox;
  readonly #file: string;
  readonly #producer: Producer;
  readonly #running = new Set<Syncline>();
  readonly #wrong: string[] = [];
  readonly #queued: string[] = [];
  readonly #told = new Map<string, number>();
  /** The tasks of the runs without a reading of their lists. */
  readonly #withoutBaseline = new Set<string>();
  #policies: readonly Policy[] = [];
  #rounds = 0;
  #slowestExitMs = 0;
  #slowExits = 0;

  constructor(options: SigtermOptions, sandbox: Sandbox, folder: string) {
    this.#options = options;
    this.#sandbox = sandbox;
    this.#file = join(folder, "policies.yaml");
    this.#producer = new Producer(options.redis, silentLog);
  }

  async open(): Promise<void> {
    await writeFile(this.#file, policies(this.#sandbox.baseUrl));
    const variables = { TEST_TOKEN: this.#sandbox.token };
    const loaded = await loadPolicies(this.#file, { variables, checks: policyChecks });
    if (!loaded.ok) throw new Error(loaded.problems.map(({ message }) => message).join("\n"));
    this.#policies = loaded.set.policies;
  }

  async close(): Promise<void> {
    for (const one of this.#running) one.kill("SIGKILL");
    await this.#producer.close();
  }

  /** One lane: process after process, each ended at an instant that the seed says. */
  async work(random: () => number): Promise<void> {
    for (; this.#rounds < this.#options.rounds; ) {
      this.#rounds += 1;
      const round = this.#rounds;
      const one = this.#serve("scheduler,worker");
      // Some are ended while they load or start.
      if (random() >= startingShare) {
        await one.until(({ event }) => event === "serve.ready");
        await this.#queue(round);
      }
      await delay(Math.floor(random() * 900));
      const sentMs = performance.now();
      one.kill("SIGTERM");
      const { code, signal, err } = await one.ended();
      const tookMs = performance.now() - sentMs;
      this.#slowestExitMs = Math.max(this.#slowestExitMs, tookMs);
      if (tookMs >= drainMs) this.#slowExits += 1;
      // Before it listens, the signal ends it as any process; nothing has begun then.
      const isUnborn = signal === "SIGTERM" && one.events.length === 0;
      if (code !== 0 && !isUnborn) this.#wrong.push(`round ${round}: exit ${code ?? signal}: ${err.slice(0, 500)}`);
      if (tookMs > graceMs) this.#wrong.push(`round ${round}: ended after ${Math.round(tookMs)} ms`);
      const stoppedAt = one.events.findIndex(({ event }) => event === "serve.stopping");
      const late = one.events.slice(stoppedAt + 1).filter(({ event }) => event === "queue.drain-incomplete");
      if (late.length > 0) this.#wrong.push(`round ${round}: still busy at the end of its drain`);
      this.#note(one);
      this.#options.onRound?.(round);
    }
  }

  /** A last process works off what is left; then every task must have one true outcome. */
  async judge(): Promise<SigtermReport> {
    const store = await openStore(this.#options.redis);
    try {
      const heir = this.#serve("worker");
      await heir.until(({ event }) => event === "serve.ready");
      const tasks = [...new Set([...this.#queued, ...(await this.#scheduled(new SlotLedger(store)))])];
      const history = new History(store);
      const ended = async () => {
        const kept = [...Map.groupBy(tasks, (id) => id.split("__")[0] ?? "")];
        const found = await Promise.all(kept.map(([policy, ids]) => history.outcomes(policy, ids)));
        return new Map(found.flatMap((some) => [...some]));
      };
      const untilMs = performance.now() + endsWithinMs;
      let outcomes = await ended();
      while (outcomes.size < tasks.length && performance.now() < untilMs) {
        await delay(200);
        outcomes = await ended();
      }
      heir.kill("SIGTERM");
      await heir.ended();
      this.#note(heir);
      const starts = this.#sandbox.ledger().filter(({ operation }) => operation === "RunSyncJob");
      const keys = starts.map(({ idempotencyKey }) => String(idempotencyKey));
      for (const [key, all] of Map.groupBy(keys, (one) => one))
        if (all.length > 1) this.#wrong.push(`${key} was started ${all.length} times`);
      for (const task of tasks) {
        const outcome = outcomes.get(task);
        const isStarted = keys.includes(task);
        if (outcome === undefined) this.#wrong.push(`${task} has no outcome`);
        else if (outcome.startedAt === null && isStarted)
          this.#wrong.push(`${task} is ${outcome.status}, but was started`);
        else if (["accepted", "succeeded"].includes(outcome.status) && !isStarted)
          this.#wrong.push(`${task} is ${outcome.status}, but was not started`);
        else if (outcome.status === "timed-out") this.#wrong.push(`${task} is timed-out, but ended within a second`);
        if (outcome !== undefined && !this.#told.has(task)) this.#wrong.push(`${task} has no line task.finished`);
      }
      return {
        wrong: this.#wrong,
        tasks: tasks.length,
        starts: keys.length,
        unknown: [...outcomes.values()]
          .filter(({ status, taskId: task }) => status === "unknown" && !this.#withoutBaseline.has(task))
          .map(({ taskId: task, detail }) => `${task}: ${detail}`),
        baselineShare: 1 - this.#withoutBaseline.size / this.#queued.filter((id) => id.startsWith("followed__")).length,
        toldTwice: [...this.#told.values()].filter((times) => times > 1).length,
        slowestExitMs: Math.round(this.#slowestExitMs),
        slowExits: this.#slowExits,
      };
    } finally {
      await store.close();
    }
  }

  #serve(roles: string): Syncline {
    const { redis } = this.#options;
    const times = ["--take-over-after", "2s", "--drain", `${drainMs / 1_000}s`];
    const one = new Syncline(["serve", "--config", this.#file, "--prefix", redis.prefix, "--roles", roles, ...times], {
      REDIS_URL: redis.url,
      SYNCLINE_OUTCOMES_KEPT: "100000",
      TEST_TOKEN: this.#sandbox.token,
    });
    this.#running.add(one);
    return one;
  }

  /** Queues four short starts, and two runs to follow. */
  async #queue(round: number): Promise<void> {
    const slotMs = Date.now() + this.#queued.length;
    const all = this.#policies.flatMap((policy) => tasksOf(policy, { slotMs, origin: "manual", covers: [] }));
    const followed = [2 * round, 2 * round + 1].map((index) => followedJobs[index % followedJobs.length]);
    const tasks = all.filter(
      ({ policy, target }) => policy === "by-hand" || (policy === "followed" && followed.includes(target)),
    );
    this.#queued.push(...tasks.map(({ id }) => id));
    await this.#producer.enqueue(tasks);
  }

  async #scheduled(ledger: SlotLedger): Promise<string[]> {
    const { records } = await ledger.holdings("often");
    const started = records.filter(({ state }) => state === "started");
    return started.flatMap(({ slotMs, kind, targets }) =>
      (targets ?? []).map((target) =>
        taskId({ policy: "often", kind: kind ?? "run", target, slotMs, origin: "schedule" }),
      ),
    );
  }

  #note(one: Syncline): void {
    this.#running.delete(one);
    for (const { event, taskId: task, lists } of one.events) {
      if (event === "run.without-baseline" && String(lists) !== "approvals") this.#withoutBaseline.add(String(task));
      if (event === "task.finished") this.#told.set(String(task), (this.#told.get(String(task)) ?? 0) + 1);
    }
  }
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296;
  };
}
