// From a seed to a chaos of schedules: random policies, two or five replicas with clocks up to 3 s
// off, and what befalls them. Pure.
import type { Fault, FaultScript, ReplicaScript, Trap } from "./fault-script.ts";
import { createRandom, type SeededRandom } from "./seeded-random.ts";

/** A chaos of schedules. */
export interface ScheduleChaos {
  readonly script: FaultScript;
  /** The items of `policies:`, indented by two. */
  readonly policies: string;
  /** Whether replicas work on tasks too; otherwise these stay in the queue. */
  readonly hasWorkers: boolean;
  readonly endsWith: "SIGKILL" | "SIGTERM";
}

const clockShiftMsMax = 3_000;
const stormMsRange = [3_000, 4_500] as const;
/** Where a scheduler can be struck: around the two steps that must look like one. */
const points = [
  "before-watermarks",
  "before-record",
  "after-record",
  "before-enqueue",
  "after-enqueue",
  "before-confirm",
  "after-confirm",
] as const;

/** The chaos of this seed. */
export function planScheduleChaos(seed: number): ScheduleChaos {
  const random = createRandom(seed);
  const hasWorkers = random.chance(0.5);
  const replicas = random.chance(0.3) ? 5 : 2;
  const stormMs = random.integer(...stormMsRange);
  const policies = Array.from({ length: random.integer(1, 3) }, (_, index) => policy(random, index, hasWorkers));
  const faults = Array.from({ length: random.integer(1, replicas === 2 ? 3 : 5) }, () =>
    fault(random, { replicas, stormMs }),
  );
  if (random.chance(0.4)) faults.push(outage(random, { replicas, stormMs }));
  return {
    policies: policies.join("\n"),
    hasWorkers,
    endsWith: random.chance(0.7) ? "SIGKILL" : "SIGTERM",
    script: {
      stormMs,
      replicas: Array.from({ length: replicas }, () => replica(random, hasWorkers)),
      faults: faults.sort((a, b) => a.atMs - b.atMs),
    },
  };
}

function policy(random: SeededRandom, index: number, hasWorkers: boolean): string {
  const seconds = random.integer(1, 3);
  // No longer than the interval, as the rules of policies want it.
  const spread = random.chance(0.5) ? `, spread: ${seconds}s` : "";
  const schedule = random.pick([
    `every: ${seconds}s${spread}`,
    `cron: "*/${seconds} * * * * *"${spread}`,
    `cron: ["0-58/2 * * * * *", "15-45/${seconds} * * * * *"], timezone: Europe/Vienna`,
  ]);
  const first = 1 + 5 * index;
  const syncJobs = Array.from({ length: random.integer(1, 3) }, (_, more) => first + more).join(", ");
  // Runs wait for feeds before they start: few of them, and only where somebody works.
  const action = random.weighted({ activate: 5, poll: 2, run: hasWorkers ? 1 : 3 });
  const what = action === "poll" ? "poll: { list: approvals }" : `${action}: { syncJobs: [${syncJobs}] }`;
  const run = action === "run" ? `, overlap: ${random.pick(["allow", "skip"])}, follow: { until: accepted }` : "";
  const catchUp = random.pick(["latest", "none", "all"]);
  return `  - { name: policy-${index}, service: main, ${what}, schedule: { ${schedule} }, catchUp: ${catchUp}${run} }`;
}

function replica(random: SeededRandom, hasWorkers: boolean): ReplicaScript {
  const traps = Array.from({ length: random.integer(0, 2) }, () => trap(random));
  return {
    roles: hasWorkers ? ["scheduler", "worker"] : ["scheduler"],
    clockShiftMs: random.integer(-clockShiftMsMax, clockShiftMsMax),
    traps,
  };
}

function trap(random: SeededRandom): Trap {
  const action = random.weighted({ kill: 3, stop: 3, block: 1 });
  return {
    life: random.chance(0.8) ? 0 : 1,
    point: random.pick(points),
    pass: random.integer(1, 4),
    action,
    forMs: action === "block" ? random.integer(300, 1_000) : random.integer(200, 2_500),
  };
}

interface Room {
  readonly replicas: number;
  readonly stormMs: number;
}

function fault(random: SeededRandom, { replicas, stormMs }: Room): Fault {
  const action = random.weighted({ kill: 4, stop: 4, term: 1, block: 1, clock: 2 });
  const forMs = {
    kill: () => random.integer(0, 2_000),
    term: () => random.integer(0, 2_000),
    stop: () => random.integer(200, 2_500),
    block: () => random.integer(300, 1_000),
    clock: () => random.integer(-clockShiftMsMax, clockShiftMsMax),
  }[action]();
  return { atMs: random.integer(0, stormMs), replicas: [random.integer(0, replicas - 1)], action, forMs };
}

/** All replicas at once: slots come due that nobody sees. */
function outage(random: SeededRandom, { replicas, stormMs }: Room): Fault {
  return {
    atMs: random.integer(0, stormMs - 1_500),
    replicas: Array.from({ length: replicas }, (_, index) => index),
    action: random.pick(["kill", "stop"]),
    forMs: random.integer(1_200, 2_800),
  };
}
