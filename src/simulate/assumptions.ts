// What a simulation assumes about the service, since nothing of it is asked: how long runs take, how many fail, how long a request
// takes, how many sync jobs masks name. Made by cli/; every figure is named in what the commands print.
import type { Policy } from "../config/policy-set.ts";
import { hashText } from "../core/stable-hash.ts";
import type { Task } from "../tasks/task.ts";

/** A duration that is drawn evenly between two, both included; equal ones are a fixed duration. */
export interface DurationRange {
  readonly leastMs: number;
  readonly mostMs: number;
}

/** A value for all policies, and others for some by name. */
export interface PerPolicy<Value> {
  readonly otherwise: Value;
  readonly byPolicy: ReadonlyMap<string, Value>;
}

/** Everything that is assumed. */
export interface Assumptions {
  /** How long a run takes in the service. */
  readonly durations: PerPolicy<DurationRange>;
  /** How many sync jobs a policy with `fromMasks` finds. */
  readonly maskJobs: PerPolicy<number>;
  /** Which part of a policy's tasks fails, 0 to 1. */
  readonly failures: PerPolicy<number>;
  /** How long one request takes. */
  readonly requestMs: number;
  /** Decides what is drawn; the same seed gives the same simulation. */
  readonly seed: string;
}

/** The value for a policy. */
export function valueFor<Value>({ otherwise, byPolicy }: PerPolicy<Value>, policy: Pick<Policy, "name">): Value {
  return byPolicy.get(policy.name) ?? otherwise;
}

/**
 * How long this task's run takes. Drawn from the seed and the task's name alone, so that another policy in the same file,
 * or another range, does not change it.
 */
export function durationOf({ durations, seed }: Assumptions, policy: Policy, task: Pick<Task, "id">): number {
  const { leastMs, mostMs } = valueFor(durations, policy);
  if (leastMs === mostMs) return leastMs;
  return leastMs + Math.floor(drawn(`${seed}|${task.id}`) * (mostMs - leastMs + 1));
}

/** Whether this task fails, drawn as its duration is, and whatever that is. */
export function isFailing({ failures, seed }: Assumptions, policy: Policy, task: Pick<Task, "id">): boolean {
  const part = valueFor(failures, policy);
  return part > 0 && drawn(`${seed}|fails|${task.id}`) < part;
}

/** From 0 to below 1. */
function drawn(text: string): number {
  return Number.parseInt(hashText(text, 12), 16) / 16 ** 12;
}
