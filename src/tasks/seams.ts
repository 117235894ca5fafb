// The seam between schedule, queue and work: function types, so that schedule/ and work/ never see the queue.
import type { Task } from "./task.ts";
import type { Verdict } from "./verdict.ts";

/** Which of a service's two queues: `actions` change something there, `polls` only read. */
export type Urgency = "actions" | "polls";

/** Puts tasks into the queue. A task whose id is known there already is dropped silently; so calling twice is safe. */
export type EnqueueTasks = (tasks: readonly Task[]) => Promise<void>;

/** How often a task has been tried: `attempt` starts at 1 and `attemptsMax` is the last one. */
export interface Attempt {
  readonly attempt: number;
  readonly attemptsMax: number;
  /** Aborts when the process shuts down or the task is cancelled. */
  readonly signal: AbortSignal;
}

/** Does one step of a task and says how to go on. Throws only on a bug. */
export type ProcessTask = (task: Task, attempt: Attempt) => Promise<Verdict>;
