// One trial of faults: for each kind a service of its own that meets starts and reads so, five
// policies over it, one scheduler and one worker for all of them. What the commands and the notices
// tell meanwhile and afterwards is gathered; check-faults.ts holds it against the ledgers. Called
// by faults.test.ts and, with every kind, by faults.ts.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { policyChecks } from "../../src/cli/shared-options.ts";
import { loadPolicies } from "../../src/config/load-policies.ts";
import type { Policy, PolicySet } from "../../src/config/policy-set.ts";
import { silentLog } from "../../src/core/event-log.ts";
import type { Outcome } from "../../src/model/outcome.ts";
import { parseServiceAlert } from "../../src/notify/alert-state.ts";
import { readSinks } from "../../src/queries/sinks.ts";
import type { SlotStory } from "../../src/queries/slot-story.ts";
import { NoticeQueues } from "../../src/queue/notice-queues.ts";
import { Producer } from "../../src/queue/producer.ts";
import { NotifyStore } from "../../src/store/notify-store.ts";
import { openStore, type Store } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { runHere } from "../support/commands-here.ts";
import { shortTiming } from "../support/short-timing.ts";
import { checkFaults } from "./check-faults.ts";
import { faultKinds } from "./fault-kinds.ts";
import type { FaultTrialOptions, FaultTrialReport, Sample, Told, ToldNotice } from "./fault-ledgers.ts";
import type { Fault, FaultScript } from "./fault-script.ts";
import { FaultyService } from "./faulty-service.ts";
import { Fleet } from "./fleet.ts";
import type { ReplicaEvent } from "./replica.ts";
import { createRandom, type SeededRandom } from "./seeded-random.ts";

const requestMs = 1_500;
const sampleEveryMs = 700;
const beginsWithinMs = 60_000;
const endsWithinMs = 150_000;
/** The lease of a notifier that was killed, its rounds, and two windows: many times over. */
const toldWithinMs = 60_000;
const groupWaitMs = 1_000;
/** A killed worker is back after this. */
const downMs = [200, 1_500] as const;
const killedEveryMs = [1_500, 6_000] as const;
/** A scheduler that was ended is not started again within a trial. */
const neverMs = 3_600_000;

const mapping =
  "mapping: { activity: { id: item.activityId, syncJobId: item.syncJobId, startedAt: item.startedAt, " +
  `finished: 'item.state != "Running"', succeeded: 'item.state == "Finished"' }, ` +
  "conflict: { id: item.conflictId, syncJobId: item.syncJobId } }";

function policyFile(services: ReadonlyMap<string, FaultyService>, everyMs: number): string {
  const schedule = `schedule: { every: ${everyMs / 1_000}s }, catchUpWindow: 15s`;
  const ofService = [...services].map(
    ([name, { baseUrl }]) =>
      `  ${name}: { baseUrl: "${baseUrl}", token: { env: TEST_TOKEN }, timeouts: { request: ${requestMs}ms }, breaker: { after: 5, probe: 2s }, ${mapping} }`,
  );
  const policies = [...services.keys()].flatMap((name) => [
    `  - { name: ${name}-settled, service: ${name}, run: { syncJobs: [1] }, ${schedule} }`,
    `  - { name: ${name}-accepted, service: ${name}, run: { syncJobs: [2] }, follow: { until: accepted }, ${schedule} }`,
    `  - { name: ${name}-vouched, service: ${name}, run: { syncJobs: [3] }, follow: { appearsWithin: 4s }, ${schedule} }`,
    `  - { name: ${name}-active, service: ${name}, activate: { syncJobs: [4] }, ${schedule} }`,
    `  - { name: ${name}-poll, service: ${name}, poll: { list: approvals, expect: "count < 5" }, ${schedule} }`,
  ]);
  return `apiVersion: syncline/v1
services:
${ofService.join("\n")}
defaults:
  follow: { deadline: 12s, unreadableFor: 3s, quietFor: 1500ms }
  notify: [{ sink: each, on: [every] }, { sink: changes, on: [change] }]
sinks: { each: { file: { path: each.jsonl } }, changes: { file: { path: changes.jsonl } } }
notifications: { groupWait: ${groupWaitMs / 1_000}s }
policies:
${policies.join("\n")}
`;
}

/** Runs a trial, and says what was told and is not so. */
export async function tryFaults(options: FaultTrialOptions): Promise<FaultTrialReport> {
  const redis = { url: options.redisUrl, prefix: `faults-${process.pid}-${options.seed}-${options.crashes}` };
  const folder = await mkdtemp(join(tmpdir(), "syncline-faults-"));
  const services = new Map<string, FaultyService>();
  const store = await openStore(redis);
  const producer = new Producer(redis, silentLog);
  try {
    for (const [index, kind] of options.kinds.entries())
      services.set(kind, await FaultyService.start(faultKinds[kind] ?? {}, options.seed * 1_000 + index));
    const config = join(folder, "policies.yaml");
    await writeFile(config, policyFile(services, options.everyMs));
    // What one policy is asked for needs no others: a command that reads all of them takes ten
    // times as long.
    for (const [kind, service] of services)
      await writeFile(join(folder, `${kind}.yaml`), policyFile(new Map([[kind, service]]), options.everyMs));
    const loaded = await loadPolicies(config, { variables: { TEST_TOKEN: "secret" }, checks: policyChecks });
    if (!loaded.ok) throw new Error(loaded.problems.map(({ message }) => message).join("\n"));
    const trial = new Trial({ options, redis, folder, config, services, set: loaded.set, store, producer });
    return checkFaults(await trial.run());
  } finally {
    await producer.close();
    for (const service of services.values()) service.stop();
    const client = store.redis as Redis;
    for await (const keys of client.scanStream({ match: `${redis.prefix}:*`, count: 1_000 }))
      if (keys.length > 0) await store.redis.unlink(keys);
    await store.close();
    await rm(folder, { recursive: true });
  }
}

interface TrialParts {
  readonly options: FaultTrialOptions;
  readonly redis: { readonly url: string; readonly prefix: string };
  readonly folder: string;
  readonly config: string;
  readonly services: ReadonlyMap<string, FaultyService>;
  readonly set: PolicySet;
  readonly store: Store;
  readonly producer: Producer;
}

class Trial {
  readonly #parts: TrialParts;
  readonly #random: SeededRandom;
  readonly #events: ReplicaEvent[] = [];
  readonly #statuses: Sample[] = [];
  readonly #liveStories: (Sample & { policy: string })[] = [];

  constructor(parts: TrialParts) {
    this.#parts = parts;
    this.#random = createRandom(parts.options.seed);
  }

  async run(): Promise<Told> {
    const { options, set, services } = this.#parts;
    const fleet = this.#fleet();
    const unexpected: string[] = [];
    try {
      fleet.start();
      await this.#untilBegun();
      const over = new AbortController();
      const sampling = this.#sampleUntil(over.signal);
      await fleet.storm();
      await this.#untilEnded();
      await this.#untilTold();
      over.abort();
      await sampling;
      unexpected.push(...(await fleet.end("SIGTERM")).unexpectedEnds);
    } finally {
      await fleet.kill();
    }
    const endedMs = Date.now();
    for (const end of unexpected) this.#events.push({ event: "trial.unexpected-end", detail: end });
    const stories = await this.#stories();
    const { code, out } = await this.#command("status", "--config", this.#parts.config, "--json");
    return {
      ...{ options, set, services, endedMs, ...stories },
      outcomes: await this.#outcomes(),
      statuses: this.#statuses,
      liveStories: this.#liveStories,
      lastStatus: { code, out },
      notices: { each: await this.#notices("each"), changes: await this.#notices("changes") },
      events: this.#events,
    };
  }

  #fleet(): Fleet {
    const { options, redis, config } = this.#parts;
    const stormMs = options.slots * options.everyMs + 300;
    const faults: Fault[] = [{ atMs: stormMs - 100, replicas: [0], action: "term", forMs: neverMs }];
    const nextKill = () => this.#random.integer(...killedEveryMs);
    if (options.crashes)
      for (let atMs = nextKill(); atMs < stormMs; atMs += nextKill())
        faults.push({ atMs, replicas: [1], action: "kill", forMs: this.#random.integer(...downMs) });
    const script: FaultScript = {
      replicas: [
        { roles: ["scheduler"], clockShiftMs: 0, traps: [] },
        { roles: ["worker"], clockShiftMs: 0, traps: [] },
      ],
      faults,
      stormMs,
    };
    const orders = {
      ...{ config, redis, takeOverAfterMs: options.crashes ? 1_000 : 30_000, drainMs: 5_000 },
      timing: { ...shortTiming, baselineWithinMs: 500 },
      pace: { gapMs: 100, fastestMs: 300, slowestMs: 1_000 },
    };
    const onEvent = (event: ReplicaEvent, replica: number) => void this.#events.push({ ...event, replica });
    return new Fleet({ script, orders, environment: { TEST_TOKEN: "secret" }, onEvent });
  }

  async #untilBegun(): Promise<void> {
    const { store, set } = this.#parts;
    const names = set.policies.map(({ name }) => name);
    for (const untilMs = performance.now() + beginsWithinMs; performance.now() < untilMs; await delay(20)) {
      const since = await store.redis.hmget(store.key("kept-since"), ...names);
      const ready = this.#events.filter(({ event }) => event === "serve.ready").length;
      if (ready >= 2 && since.every((value) => value !== null)) return;
    }
    throw new Error("the replicas did not begin within a minute");
  }

  /** Until each task of each slot has its outcome; what has none by then is for the checker. */
  async #untilEnded(): Promise<void> {
    const { producer, services, options } = this.#parts;
    const names = [...services.keys()];
    for (const untilMs = performance.now() + endsWithinMs; performance.now() < untilMs; await delay(300)) {
      // A breaker that stays open, or a list that stays unreadable, would hold up what is left for
      // long.
      if (performance.now() > untilMs - endsWithinMs + options.recoversAfterMs)
        for (const one of services.values()) one.recover();
      const pending = await Promise.all(names.map((name) => producer.pending(name)));
      if (pending.every((count) => count === 0)) return;
    }
  }

  /**
   * Until each outcome is told and no notice is muted or waits; what is not by then is for the
   * checker. In this order: what is looked at later holds what has left the places before it.
   */
  async #untilTold(): Promise<void> {
    const { store, redis, set } = this.#parts;
    const notifyStore = new NotifyStore(store);
    const ids = (await this.#outcomes()).map(({ taskId }) => taskId);
    for (const untilMs = performance.now() + toldWithinMs; performance.now() < untilMs; await delay(300)) {
      const told = new Set((await this.#notices("each")).map(({ data }) => data["taskId"]));
      if (!ids.every((id) => told.has(id))) continue;
      const services = [...(await notifyStore.texts("services")).values()];
      if (services.some((text) => parseServiceAlert(text).phase === "window")) continue;
      if ((await notifyStore.texts("outbox")).size > 0) continue;
      await using queues = new NoticeQueues(redis, silentLog);
      if ((await readSinks(set, store, queues)).every(({ waiting }) => waiting === 0)) return;
    }
  }

  async #sampleUntil(signal: AbortSignal): Promise<void> {
    const { config, set } = this.#parts;
    while (!signal.aborted) {
      const policy = this.#random.pick(set.policies);
      this.#statuses.push(await this.#sample("status", "--config", config, "--json"));
      const story = await this.#sample("explain", policy.name, "--config", this.#configOf(policy), "--json");
      this.#liveStories.push({ ...story, policy: policy.name });
      await delay(sampleEveryMs);
    }
  }

  async #sample(...args: string[]): Promise<Sample> {
    const fromMs = Date.now();
    const { out } = await this.#command(...args);
    return { fromMs, toMs: Date.now(), text: out };
  }

  async #outcomes(): Promise<readonly Outcome[]> {
    const told: Outcome[] = [];
    for (const { name } of this.#parts.set.policies) {
      const { out } = await this.#command("history", name, "--limit", "1000", "--json");
      if (out !== "") told.push(...JSON.parse(out));
    }
    return told;
  }

  async #stories(): Promise<Pick<Told, "stories" | "texts">> {
    const { store, set } = this.#parts;
    const ledger = new SlotLedger(store);
    const stories: SlotStory[] = [];
    const texts = new Map<string, string>();
    for (const policy of set.policies) {
      const { name } = policy;
      const config = this.#configOf(policy);
      const { records } = await ledger.holdings(name);
      for (const { slotMs } of records) {
        const at = new Date(slotMs).toISOString();
        stories.push(JSON.parse((await this.#command("explain", name, at, "--config", config, "--json")).out));
        if (this.#random.chance(0.2))
          texts.set(`${name} ${at}`, (await this.#command("explain", name, at, "--config", config)).out);
      }
    }
    return { stories, texts };
  }

  #configOf({ service }: Pick<Policy, "service">): string {
    return join(this.#parts.folder, `${service}.yaml`);
  }

  async #notices(sink: string): Promise<readonly ToldNotice[]> {
    const text = await readFile(join(this.#parts.folder, `${sink}.jsonl`), "utf8").catch(() => "");
    // A process that was killed at it leaves half a line.
    return text.split("\n").flatMap((line) => {
      try {
        return line === "" ? [] : [JSON.parse(line)];
      } catch {
        return [];
      }
    });
  }

  #command(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const { url, prefix } = this.#parts.redis;
    return runHere([...args, "--prefix", prefix, "--redis-url", url], { TEST_TOKEN: "secret" });
  }
}
