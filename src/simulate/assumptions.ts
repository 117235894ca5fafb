// What a simulation assumes about the service, which it never asks. Filled by cli/; the commands
// print every figure.
import type { Policy } from "../config/policy-set.ts";
import { hashText } from "../core/stable-hash.ts";
import type { Task } from "../model/task.ts";

/** A duration, drawn evenly between two bounds, both included. */
export interface DurationRange {
  readonly leastMs: number;
  readonly mostMs: number;
}

/** A value for all policies, and other ones for some by name. */
export interface PerPolicy<Value> {
  readonly otherwise: Value;
  readonly byPolicy: ReadonlyMap<string, Value>;
}

/** All assumptions. */
export interface Assumptions {
  /** How long a run takes in the service. */
  readonly durations: PerPolicy<DurationRange>;
  /** How many sync jobs the masks of a policy with `fromMasks` name. */
  readonly maskJobs: PerPolicy<number>;
  /** The share of a policy's tasks that fails, 0 to 1. */
  readonly failures: PerPolicy<number>;
  /** How long one request takes. */
  readonly requestMs: number;
  /** The same seed gives the same simulation. */
  readonly seed: string;
  /** When this run, or a later one of its target, ended; undefined: none is known to have. */
  readonly endedAtMs?: (policy: Policy, task: Pick<Task, "target" | "slotMs">) => number | undefined;
}

/** A duration that is not drawn. */
export function exactly(durationMs: number): DurationRange {
  return { leastMs: durationMs, mostMs: durationMs };
}

/** The value for a policy. */
export function valueFor<Value>({ otherwise, byPolicy }: PerPolicy<Value>, policy: Pick<Policy, "name">): Value {
  return byPolicy.get(policy.name) ?? otherwise;
}

/** How long this task's run takes. Drawn from the seed and the task's id alone. */
export function durationOf({ durations, seed }: Assumptions, policy: Policy, task: Pick<Task, "id">): number {
  const { leastMs, mostMs } = valueFor(durations, policy);
  if (leastMs === mostMs) return leastMs;
  return leastMs + Math.floor(drawn(`${seed}|${task.id}`) * (mostMs - leastMs + 1));
}

/** Whether this task fails, drawn from the seed and its id too. */
export function isFailing({ failures, seed }: Assumptions, policy: Policy, task: Pick<Task, "id">): boolean {
  const part = valueFor(failures, policy);
  return part > 0 && drawn(`${seed}|fails|${task.id}`) < part;
}

/** From 0 to below 1. */
function drawn(text: string): number {
  return Number.parseInt(hashText(text, 12), 16) / 16 ** 12;
}
