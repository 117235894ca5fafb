// The waits of tasks in scenarios and chaos.
import { defaultTiming, type TaskTiming } from "../../src/tasks/timing.ts";

/**
 * Short waits for scenarios; what only ends where something is out of reach leaves a busy machine
 * time to reach it.
 */
export const shortTiming: TaskTiming = {
  ...defaultTiming,
  baselineWithinMs: 6_000,
  verifyForMs: 3_000,
  answerKeptForMs: 3_000,
  syncJobUnreadableForMs: 3_000,
  unknownPolicyForMs: 1_500,
  newerAwayForMs: 1_500,
  queueForLeaseMs: 250,
  followPaceMs: [100, 1_000],
  wokenPaceMs: 500,
};
