// From a seed to a chaos of starts: policies, when their tasks are queued, and what befalls the
// workers, the service or Redis. Pure.
import type { Fault as ServiceFault } from "../../src/sandbox/faults.ts";
import type { Fault, FaultScript, Point, ReplicaScript, Trap } from "./fault-script.ts";
import { createRandom, type SeededRandom } from "./seeded-random.ts";
import { hotPoints, startPoints, unsentPoint } from "./start-steps.ts";

/** What strikes: `crash` the workers, `service` the service and its answers, `redis` Redis. */
type StartChaosKind = "crash" | "service" | "redis";

/**
 * What befalls Redis. `kill`: killed, started again `forMs` later from its append-only file;
 * `forget`: so too, without what it wrote in the last `forMs`; `freeze`: stopped for so long;
 * `flush`: emptied; `fail-over`: killed for ever, its replica takes over `forMs` later.
 */
export interface RedisTrouble {
  readonly atMs: number;
  readonly action: "kill" | "forget" | "freeze" | "flush" | "fail-over";
  readonly forMs: number;
}

/**
 * When one task of each sync job of each policy is queued. `startWithinMs`: how long each may
 * start; an hour unless said.
 */
export interface Batch {
  readonly atMs: number;
  readonly startWithinMs?: number;
}

/** A chaos of starts. */
export interface StartChaos {
  readonly kind: StartChaosKind;
  readonly script: FaultScript;
  /** The items of `policies:`, indented by two. */
  readonly policies: string;
  readonly batches: readonly Batch[];
  readonly serviceFaults: readonly ServiceFault[];
  /** Sync jobs that the service says it starts and does not. */
  readonly hollowJobs: readonly number[];
  /** Whether the mapping says by what a sync job shows that it is active. */
  readonly showsActive: boolean;
  readonly redisTrouble: readonly RedisTrouble[];
  readonly endsWith: "SIGKILL" | "SIGTERM";
  /**
   * The storm lasts until the trap at this point has sprung, within limits; that it never does is a
   * finding.
   */
  readonly awaitsTrap?: Point;
}

const replicas = 2;
const policiesCount = 4;
const starts = ["RunSyncJob", "EnableSyncJobById"] as const;
/**
 * Longer than a process may sleep between its permission and its request, and than the checker
 * allows for a busy machine.
 */
const tooLongMs = 10_000;

/** The chaos of this seed. */
export function planStartChaos(seed: number): StartChaos {
  const random = createRandom(seed);
  const kind = random.weighted({ crash: 6, service: 2, redis: 2 });
  const isLong = kind === "crash" && random.chance(0.1);
  const stormMs = isLong ? tooLongMs + 1_500 : random.integer(2_000, 3_000) + (kind === "redis" ? 2_000 : 0);
  const policies = Array.from({ length: policiesCount }, (_, index) => policy(random, index));
  const crash = { random, stormMs, isLong };
  const hollowJobs = kind === "service" && random.chance(0.3) ? [1 + random.integer(0, 1) * 10] : [];
  const troubles = kind === "redis" ? redisTrouble(random) : [];
  return {
    kind,
    policies: policies.join("\n"),
    batches: [
      { atMs: 0 },
      { atMs: random.integer(100, 1_500) },
      {
        atMs: random.integer(100, 1_500),
        ...(random.chance(0.5) ? { startWithinMs: random.integer(500, 2_000) } : {}),
      },
    ],
    serviceFaults: [
      ...hollowJobs.flatMap(hollow),
      ...(kind === "service" ? serviceFaults(random) : []),
      ...slow(random),
    ],
    hollowJobs,
    showsActive: seed % 4 !== 0,
    redisTrouble: troubles,
    endsWith: random.chance(0.6) ? "SIGKILL" : "SIGTERM",
    script: {
      stormMs,
      replicas: Array.from({ length: replicas }, (_, index) => replica(crash, { kind, isFirst: index === 0 })),
      faults: kind === "service" ? [] : instants(crash, troubles),
    },
  };
}

function policy(random: SeededRandom, index: number): string {
  const kind = random.weighted({ run: 3, activate: 1 });
  const first = 1 + 10 * index;
  // Now and then two policies start the same sync job: then nobody may take the one's run for the
  // other's.
  const shared = index > 0 && random.chance(0.2) ? [first - 10] : [];
  const syncJobs = [...shared, ...Array.from({ length: random.integer(1, 3) }, (_, more) => first + more)];
  const until = random.chance(0.5) ? "accepted" : "settled, deadline: 8s";
  // Longer than the service ever takes here between a request and its effect.
  const within = random.chance(0.25) ? ", appearsWithin: 3s" : "";
  const run = `, overlap: ${random.pick(["allow", "allow", "skip", "queue"])}, follow: { until: ${until}${within} }`;
  const onUnknown = random.weighted({ verify: 4, "give-up": 1, retry: 1 });
  const what = `${kind}: { syncJobs: [${syncJobs.join(", ")}] }`;
  return `  - { name: policy-${index}, service: main, ${what}, onUnknown: ${onUnknown}${kind === "run" ? run : ""} }`;
}

interface Crash {
  readonly random: SeededRandom;
  readonly stormMs: number;
  readonly isLong: boolean;
}

function replica(crash: Crash, { kind, isFirst }: { kind: StartChaosKind; isFirst: boolean }): ReplicaScript {
  const count = kind === "crash" ? crash.random.integer(isFirst ? 1 : 0, 2) : 0;
  const traps = Array.from({ length: count }, (_, index) => trap(crash, isFirst && index === 0));
  return { roles: ["worker"], clockShiftMs: 0, traps };
}

/** The first trap of a long storm holds a start up right where it has its permission. */
function trap({ random, isLong }: Crash, isFirst: boolean): Trap {
  const life = isFirst || random.chance(0.85) ? 0 : 1;
  if (isFirst && isLong) {
    const point = random.pick(["before-service.runSyncJob", "first-byte-service.runSyncJob"]);
    return { life, point, pass: random.integer(1, 3), action: random.pick(["stop", "block"]), forMs: tooLongMs };
  }
  if (random.chance(0.15)) {
    const forMs = random.integer(1_600, 2_800);
    return { life, point: unsentPoint, pass: random.integer(1, 2), action: "stop", forMs };
  }
  const action = random.weighted({ kill: 3, stop: 4, block: 2 });
  const point = random.pick(random.chance(0.6) ? hotPoints : startPoints);
  // Most last longer than it takes until others take the tasks over.
  const forMs = action === "kill" ? random.integer(0, 800) : random.integer(800, 2_800);
  return { life, point, pass: random.integer(1, 6), action, forMs };
}

function instants({ random, stormMs }: Crash, troubles: readonly RedisTrouble[]): Fault[] {
  // A process that starts while Redis is away ends at once, as it should: nobody is killed then.
  const weights =
    troubles.length > 0 ? { kill: 0, stop: 3, term: 0, block: 1 } : { kill: 2, stop: 3, term: 1, block: 1 };
  const faults = Array.from({ length: random.integer(0, 2) }, (): Fault => {
    const action = random.weighted(weights);
    const isEnd = action === "kill" || action === "term";
    const forMs = isEnd ? random.integer(0, 1_000) : random.integer(500, 2_500);
    return { atMs: random.integer(0, stormMs - 500), replicas: [random.integer(0, replicas - 1)], action, forMs };
  });
  return faults.sort((a, b) => a.atMs - b.atMs);
}

/**
 * A little time between a request and its answer, so that what strikes at an instant meets some.
 */
function slow(random: SeededRandom): ServiceFault[] {
  return starts.flatMap((operation): ServiceFault[] => [
    { kind: "latency", operation, delayMs: random.integer(10, 80) },
    { kind: "latency", operation, every: random.integer(4, 9), delayMs: random.integer(200, 600) },
  ]);
}

/** A sync job whose starts the service answers well and does not do. */
export function hollow(job: number): ServiceFault[] {
  return starts.map((operation) => ({ kind: "200-before", operation, key: String(job) }));
}

function serviceFaults(random: SeededRandom): ServiceFault[] {
  const kinds = [
    "lost-answer",
    "reset",
    "500-after",
    "500-before",
    "truncate",
    "latency",
    "429",
    "503",
    "401",
  ] as const;
  const count = random.integer(1, 3);
  return Array.from({ length: count }, (): ServiceFault => {
    const kind = random.pick(kinds);
    const operation = random.chance(0.7) ? "RunSyncJob" : random.pick(["EnableSyncJobById", "GetActivities"] as const);
    return {
      kind,
      operation,
      rate: random.pick([0.2, 0.5]),
      // Past the time that a request may take: the service starts the run when nobody listens any
      // more.
      ...(kind === "latency" ? { delayMs: random.integer(1_500, 2_600) } : {}),
      ...(kind === "503" && random.chance(0.5) ? { retryAfterSeconds: 1 } : {}),
      // In the end it is well again.
      times: random.integer(1, 6),
    };
  });
}

function redisTrouble(random: SeededRandom): RedisTrouble[] {
  const action = random.weighted({ kill: 3, forget: 4, freeze: 3, flush: 3, "fail-over": 1 });
  const forMs = {
    kill: () => random.integer(0, 1_500),
    forget: () => random.integer(100, 1_500),
    freeze: () => random.integer(500, 6_000),
    flush: () => 0,
    "fail-over": () => random.integer(0, 1_000),
  }[action]();
  return [{ atMs: random.integer(300, 2_000), action, forMs }];
}
