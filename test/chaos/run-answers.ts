// One chaos of answers from its seed to its findings: a replica that works for two services, of
// which one answers oddly, the commands that ask that one, and the checker: no process ends, no
// exchange is held, what is told of each start is so, and the other service's starts go on.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { silentLog } from "../../src/core/event-log.ts";
import type { Task } from "../../src/model/task.ts";
import { Producer } from "../../src/queue/producer.ts";
import { tasksOf } from "../../src/schedule/slot-tasks.ts";
import { createAuthority, signedBy } from "../support/certificates.ts";
import { syncline } from "../support/processes.ts";
import { type ChaosFixture, openFixture } from "./chaos-fixture.ts";
import { findShownSecrets } from "./check-secrets.ts";
import { OddServer, type OddStart } from "./odd-server.ts";
import { type AnswerChaos, oddStarts, planAnswerChaos } from "./plan-answers.ts";
import type { ReplicaEvent } from "./replica.ts";
import type { ChaosResult, RunSeed } from "./run-seeds.ts";

const requestMs = 1_000;
/** What no exchange may outlive. */
const exchangeMsMax = requestMs + 5_000;
const paceMs = 30;
/** Starts of each service before the odd answers begin, to compare with: as many as meet them. */
const calmStarts = oddStarts;
const endsWithinMs = 180_000;
const toldEventsMax = 300;
/** Every so many seeds the commands ask the odd service, too: each is a process. */
const commandsEvery = 2;
const jobsOf = (kind: number) =>
  Array.from({ length: 2 * oddStarts }, (_, index) => 1 + index).filter((job) => job % 3 === kind);

const activityMapping =
  "activity: { id: item.activityId, syncJobId: item.syncJobId, startedAt: item.startedAt, " +
  `finished: 'item.state == "Finished"', succeeded: 'item.state == "Finished"' }`;
const policies = [
  `  - { name: healthy, service: main, activate: { syncJobs: [${[...jobsOf(0), ...jobsOf(1), ...jobsOf(2)].join(", ")}] } }`,
  `  - { name: odd-accepted, service: odd, run: { syncJobs: [${jobsOf(0).join(", ")}] }, follow: { until: accepted } }`,
  `  - { name: odd-settled, service: odd, run: { syncJobs: [${jobsOf(1).join(", ")}] }, follow: { until: settled, deadline: 2m, unreadableFor: 3s } }`,
  "  - { name: odd-poll, service: odd, poll: { list: approvals } }",
  `  - { name: odd-active, service: odd, activate: { syncJobs: [${jobsOf(2).join(", ")}] } }`,
].join("\n");

/**
 * How long the healthy service's starts took from the queue to the service, in ms, over all seeds
 * of this process.
 */
const healthyDelays = { calm: [] as number[], storm: [] as number[] };

/** One line on them. */
export function tellHealthy(): string {
  const tell = (name: keyof typeof healthyDelays) => {
    const sorted = healthyDelays[name].toSorted((a, b) => a - b);
    const at = (share: number) => `${sorted[Math.ceil(share * sorted.length) - 1] ?? 0} ms`;
    return `${name} p50 ${at(0.5)}, p95 ${at(0.95)}, p99 ${at(0.99)} (${sorted.length} starts)`;
  };
  return `the healthy service's starts: ${tell("calm")}; ${tell("storm")}`;
}

/** Runs the chaos of answers of this seed. */
export const runAnswerChaos: RunSeed = async (seed, redisUrl) => {
  const plan = planAnswerChaos(seed);
  const { caFile, certificate } = await certificates();
  const odd = await OddServer.start(plan, certificate);
  const tls = plan.isTls ? `, tls: { caFile: "${caFile}" }` : "";
  // A breaker that never opens: it would keep the odd answers away.
  const settings = `token: { env: TEST_TOKEN }, timeouts: { request: ${requestMs}ms }, breaker: { after: 1000 }`;
  try {
    const fixture = await openFixture({
      redisUrl,
      name: `answers-${seed}`,
      policies,
      sandbox: { seed, jobs: 2 * oddStarts },
      // Longer than a busy machine keeps a good answer.
      service: "timeouts: { request: 1m }",
      moreServices: `  odd: { baseUrl: "${odd.baseUrl}", ${settings}${tls}, mapping: { ${activityMapping} } }\n`,
      exchangeMsMax,
      // No second worker takes anything over from one that is merely slow.
      takeOverAfterMs: 30_000,
    });
    try {
      return await passThrough(seed, { plan, fixture, odd });
    } finally {
      await fixture.close();
    }
  } finally {
    odd.stop();
  }
};

interface Scene {
  readonly plan: AnswerChaos;
  readonly fixture: ChaosFixture;
  readonly odd: OddServer;
}

async function passThrough(seed: number, { plan, fixture, odd }: Scene): Promise<ChaosResult> {
  const producer = new Producer(fixture.parts.redis, silentLog);
  try {
    const replica = { roles: ["worker"], clockShiftMs: 0, traps: [] } as const;
    const fleet = fixture.fleet({ replicas: [replica], faults: [], stormMs: 0 });
    fleet.start();
    await fixture.untilReady();
    const calm = await queue(fixture, producer, { first: 1, count: calmStarts });
    await untilEnded(fixture, calm);
    odd.manner = "planned";
    const storm = await queue(fixture, producer, { first: oddStarts + 1, count: oddStarts });
    await untilEnded(fixture, storm);
    odd.manner = "to-commands";
    const commands = seed % commandsEvery === 0 ? await askByCommands(fixture) : [];
    const report = await fleet.end("SIGTERM");
    const told = fixture.events.filter(({ event }) => event === "task.finished");
    return {
      seed,
      findings: [
        ...report.unexpectedEnds,
        ...checkHeld(fixture.events),
        ...[...calm, ...storm].flatMap((task) => checkTask(task, { told, fixture, odd })),
        ...commands,
        ...(await findShownSecrets(fixture)),
      ],
      story: () => [
        JSON.stringify(plan),
        ...report.story,
        ...fixture.events.slice(-toldEventsMax).map((event) => JSON.stringify(event)),
        ...odd.book.map((start) => JSON.stringify(start)),
      ],
      counts: { ...count(told), "odd answers": odd.oddCount, ...noteDelays(fixture, { calm, storm }) },
    };
  } finally {
    await producer.close();
  }
}

/** Sync jobs of either service, by their ids. */
interface Jobs {
  readonly first: number;
  readonly count: number;
}

/**
 * Queues a start of the healthy service, and a start and a poll of the odd one, at a time, at a
 * steady pace.
 */
async function queue({ parts }: ChaosFixture, producer: Producer, jobs: Jobs): Promise<readonly Task[]> {
  const made: Task[] = [];
  for (let job = jobs.first; job < jobs.first + jobs.count; job += 1) {
    const slotMs = Date.now();
    const all = parts.set.policies.flatMap((policy) => tasksOf(policy, { slotMs, origin: "manual", covers: [] }));
    const tasks = all.filter(({ kind, target }) => kind === "poll" || target === String(job));
    made.push(...tasks);
    await producer.enqueue(tasks);
    await delay(paceMs);
  }
  return made;
}

/** Waits until each of them has its outcome, or nothing more is to be hoped for. */
async function untilEnded({ events }: ChaosFixture, tasks: readonly Task[]): Promise<void> {
  for (const untilMs = performance.now() + endsWithinMs; performance.now() < untilMs; await delay(50)) {
    const ended = new Set(events.filter(({ event }) => event === "task.finished").map(({ taskId }) => taskId));
    if (tasks.every(({ id }) => ended.has(id))) return;
  }
}

function checkHeld(events: readonly ReplicaEvent[]): string[] {
  return events
    .filter(({ event }) => event === "exchange.held" || event === "bug.caught")
    .map((event) => JSON.stringify(event));
}

interface Check {
  readonly told: readonly ReplicaEvent[];
  readonly fixture: ChaosFixture;
  readonly odd: OddServer;
}

function checkTask({ id, kind, service }: Task, { told, fixture, odd }: Check): string[] {
  const outcomes = told.filter(({ taskId }) => taskId === id);
  const [outcome] = outcomes;
  if (outcome === undefined || outcomes.length > 1) return [`${id} has ${outcomes.length} outcomes`];
  const { status, detail } = outcome;
  if (service === "main") {
    const times = fixture.parts.sandbox.ledger().filter(({ idempotencyKey }) => idempotencyKey === id).length;
    return status === "succeeded" && times === 1
      ? []
      : [`${id}, of the healthy service, is ${String(status)}, done ${times} times`];
  }
  // What a poll of such a service sees is anything.
  if (kind === "poll") return [];
  return untrue(
    odd.book.filter(({ taskId }) => taskId === id),
    String(status),
  ).map((what) => `${id} is ${String(status)} (${String(detail)}), but ${what}`);
}

/** What is wrong with an outcome, by the book of the server; an `unknown` is never untrue. */
function untrue(starts: readonly OddStart[], status: string): string[] {
  const done = starts.filter(({ isDone }) => isDone).length;
  // A refusal that asks for patience is sent again, and each request is answered in another way.
  const findings = done > 1 ? [`it was carried out ${done} times`] : [];
  if (status === "unknown") return findings;
  if (["not-started", "skipped", "missed"].includes(status) && done > 0) return [...findings, "it was carried out"];
  if (["accepted", "succeeded", "timed-out"].includes(status) && done === 0)
    return [...findings, "it was not carried out"];
  return ["not-started", "skipped", "missed", "accepted", "succeeded", "timed-out"].includes(status)
    ? findings
    : [...findings, "nothing that the server does means that"];
}

/** The commands that ask a service: each ends by itself, says why, and with a code that it has. */
async function askByCommands({ parts: { config, redis, variables } }: ChaosFixture): Promise<string[]> {
  const asked = [
    ["api", "GetSyncJobById", "--service", "odd", "--key", "1"],
    ["api", "GetActivities", "--service", "odd", "--all"],
    ["discover", "--service", "odd", "--list", "activities", "--pages", "1"],
    ["doctor", "--service", "odd", "--prefix", redis.prefix, "--within", "20s"],
  ];
  const environment = { ...variables, REDIS_URL: redis.url };
  const ended = asked.map(async (args) => {
    const { code, signal, out, err } = await syncline([...args, "--config", config], environment);
    const isClear = code === 0 || ((code === 1 || code === 3) && /error|problem/i.test(out + err));
    const isBug = /bug:|unsettled/i.test(err);
    return isClear && !isBug ? [] : [`syncline ${args.join(" ")} ended with ${code ?? signal}: ${out}${err}`];
  });
  return (await Promise.all(ended)).flat();
}

function count(told: readonly ReplicaEvent[]): Record<string, number> {
  const statuses = Map.groupBy(
    told.filter(({ service }) => service === "odd"),
    ({ kind, status }) => `${kind === "poll" ? "polls" : "starts"} ${String(status)}`,
  );
  return Object.fromEntries([...statuses].map(([name, events]) => [name, events.length]));
}

function noteDelays(
  { parts: { sandbox } }: ChaosFixture,
  tasks: Readonly<Record<keyof typeof healthyDelays, readonly Task[]>>,
): Record<string, number> {
  const arrived = new Map(sandbox.ledger().map(({ idempotencyKey, atMs }) => [idempotencyKey, atMs]));
  for (const name of ["calm", "storm"] as const)
    for (const { id, slotMs } of tasks[name]) {
      const atMs = arrived.get(id);
      if (atMs !== undefined) healthyDelays[name].push(atMs - slotMs);
    }
  return { "healthy starts": arrived.size };
}

let made: ReturnType<typeof makeCertificates> | undefined;

/** An authority and a server's certificate, made once a process. */
function certificates(): ReturnType<typeof makeCertificates> {
  made ??= makeCertificates();
  return made;
}

async function makeCertificates() {
  const authority = await createAuthority("chaos authority");
  const certificate = await signedBy(authority);
  const folder = mkdtempSync(join(tmpdir(), "syncline-answers-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const caFile = join(folder, "ca.crt");
  writeFileSync(caFile, authority.cert);
  return { caFile, certificate };
}
