// The words of a fault script: which replicas there are, and what befalls them when. Plain data,
// made from a seed alone, so that a seed gives the same script again. What the machine does
// meanwhile (how fast processes start, who comes first) is not repeated.

/** Where in its work a replica can be struck: before or after a step, as traps.ts names them. */
export type Point = string;

/**
 * What a replica does to itself when it passes a point for the nth time: dies (`kill -9`), stops
 * (SIGSTOP) or keeps its event loop busy. `forMs`: until it is started again, goes on, or lets go.
 * `life`: 0 for its first start, 1 for the one after.
 */
export interface Trap {
  readonly life: number;
  readonly point: Point;
  readonly pass: number;
  readonly action: "kill" | "stop" | "block";
  readonly forMs: number;
}

/** One replica. `clockShiftMs`: how far its clock is off at its start. */
export interface ReplicaScript {
  readonly roles: readonly ("scheduler" | "worker")[];
  readonly clockShiftMs: number;
  readonly traps: readonly Trap[];
}

/**
 * What befalls replicas at an instant of the storm: `kill -9` or SIGTERM and a new start `forMs`
 * later, SIGSTOP and SIGCONT `forMs` later, a busy event loop, a clock that steps by `forMs` (below
 * 0: back): its own, or the one that all share.
 */
export interface Fault {
  readonly atMs: number;
  /** Indexes of replicas. */
  readonly replicas: readonly number[];
  readonly action: "kill" | "term" | "stop" | "block" | "clock" | "shared-clock";
  readonly forMs: number;
}

/**
 * A whole script. `stormMs`: how long faults strike; afterwards everybody is let go on and the
 * storm is over.
 */
export interface FaultScript {
  readonly replicas: readonly ReplicaScript[];
  readonly faults: readonly Fault[];
  readonly stormMs: number;
}

/** A script in lines, for whoever looks at a failing seed. */
export function tellScript({ replicas, faults, stormMs }: FaultScript): string[] {
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(2)} s`;
  return [
    `storm of ${seconds(stormMs)}`,
    ...replicas.map(
      ({ roles, clockShiftMs }, index) => `replica ${index}: ${roles.join("+")}, clock off by ${seconds(clockShiftMs)}`,
    ),
    ...replicas.flatMap(({ traps }, index) =>
      traps.map(
        ({ life, point, pass, action, forMs }) =>
          `replica ${index}, life ${life}: ${action} at pass ${pass} of "${point}", for ${seconds(forMs)}`,
      ),
    ),
    ...faults.map(
      ({ atMs, replicas: struck, action, forMs }) =>
        `${seconds(atMs)}: ${action} replica ${struck.join(", ")}, ${action.endsWith("clock") ? "by" : "for"} ${seconds(forMs)}`,
    ),
  ];
}
