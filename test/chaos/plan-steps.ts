// From a named step of a start to a chaos in which the workers die right there, by kill -9: one for
// each point, so that none is left to chance. Policies and faults of the service are such that
// every point is passed. Pure. Used by run-starts.ts.
import type { Fault as ServiceFault } from "../../src/sandbox/faults.ts";
import type { Point, Trap } from "./fault-script.ts";
import { hollow, type StartChaos } from "./plan-starts.ts";
import { createRandom } from "./seeded-random.ts";
import { startPoints } from "./start-steps.ts";

/** How many seeds pass all points. */
export const stepsCount = startPoints.length;

const stormMs = 3_000;
const policies = [
  "run: { syncJobs: [1, 2] }, onUnknown: verify, overlap: skip, follow: { until: accepted }",
  "run: { syncJobs: [11, 12] }, onUnknown: verify, overlap: queue, follow: { until: settled, deadline: 8s }",
  "run: { syncJobs: [21], activate: true }, onUnknown: verify, overlap: allow, follow: { until: accepted, appearsWithin: 3s }",
  "activate: { syncJobs: [31, 32] }, onUnknown: verify",
  "activate: { syncJobs: [41] }, onUnknown: retry",
];

const lostAnswers = { kind: "lost-answer", operation: "RunSyncJob", every: 2, times: 4 } as const;

/**
 * What the service does wrong so that a step is passed that needs it, by the name of its method.
 */
const needs: Readonly<Record<string, readonly ServiceFault[]>> = {
  noteDoubt: [lostAnswers],
  // It asks for patience while a lost answer is looked for.
  noteDeniedUntil: [
    lostAnswers,
    { kind: "429", operation: "GetActivities", every: 1, times: 12, retryAfterSeconds: 3 },
  ],
  takeBack: [{ kind: "429", operation: "RunSyncJob", every: 2, times: 4 }],
  // Longer than what was read before the start is good for. Twice: a busy machine may not hear one.
  forgetReady: [{ kind: "503", operation: "RunSyncJob", key: "11", times: 2, retryAfterSeconds: 31 }],
  // Not found where it would have to be by then.
  noteWindowOver: [{ kind: "500-before", operation: "RunSyncJob", key: "1", times: 2 }],
  beginSendingAgain: [{ kind: "500-before", operation: "EnableSyncJobById", key: "41", times: 2 }],
};

/**
 * The chaos of the point that this seed, from 1 on, is for; after all of them it begins anew, with
 * other instants.
 */
export function planStepChaos(seed: number): StartChaos {
  const random = createRandom(seed);
  const point = startPoints[(seed - 1) % startPoints.length] ?? "";
  // A run of which no activity ever appears comes to its deadline.
  const hollowJobs = point.includes("noteOverdue") ? [11] : [];
  const die = (at: Point, life: number): Trap => ({
    life,
    point: at,
    pass: 1,
    action: "kill",
    forMs: random.integer(0, 800),
  });
  // A lease is given back apart from the outcome only where somebody died between the outcome and
  // the end of the task.
  const traps = () =>
    point.includes("leases.release") ? [die("after-history.record", 0), die(point, 0), die(point, 1)] : [die(point, 0)];
  return {
    kind: "crash",
    policies: policies.map((what, index) => `  - { name: policy-${index}, service: main, ${what} }`).join("\n"),
    batches: [{ atMs: 0 }, { atMs: random.integer(100, 1_500) }, { atMs: random.integer(100, 1_500) }],
    serviceFaults: [...(needs[point.replace(/^.*\./, "")] ?? []), ...hollowJobs.flatMap(hollow)],
    hollowJobs,
    // Where it is shown, a second request goes out only after some seconds: later than the storm.
    showsActive: seed % 2 === 0 && !point.includes("beginSendingAgain"),
    awaitsTrap: point,
    redisTrouble: [],
    endsWith: random.chance(0.5) ? "SIGKILL" : "SIGTERM",
    script: {
      stormMs,
      replicas: [traps(), traps()].map((own) => ({ roles: ["worker"], clockShiftMs: 0, traps: own })),
      faults: [],
    },
  };
}
