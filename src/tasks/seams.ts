// The seam between schedule, queue and work: function types, so that schedule/ and work/ never see the queue.
import type { Task } from "./task.ts";
import type { Verdict } from "./verdict.ts";

/** Which of a service's two queues: `actions` change something there, `polls` only read. */
export type Urgency = "actions" | "polls";

/** Puts tasks into the queue. A task whose id is known there already is dropped silently; so calling twice is safe. */
export type EnqueueTasks = (tasks: readonly Task[]) => Promise<void>;

/**
 * What the queue will do with a task. `open`: work on it, as long as that takes; `over`: nothing, since whoever worked on it said that its outcome
 * stands; `gone`: nothing, since it was given up or is not known there.
 */
export type Fate = "open" | "over" | "gone";

/** Looks for a task among the actions of a service. */
export type FindFate = (service: string, taskId: string) => Promise<Fate>;

/** Tells those who wait for the end of a slot how far its tasks have come. Every call may be repeated. */
export interface FollowChains {
  /** Other tasks stand for this one. Said when they are in the queue, before this one is released. */
  expanded(task: Task, targets: readonly string[]): Promise<void>;
  /** The outcome of this task stands, or other tasks stand for it, and it holds nothing any more. */
  released(task: Task): Promise<void>;
}

/** How often a task has been tried: `attempt` starts at 1 and `attemptsMax` is the last one. */
export interface Attempt {
  readonly attempt: number;
  readonly attemptsMax: number;
  /** Aborts when the process shuts down or the task is cancelled. */
  readonly signal: AbortSignal;
}

/** Does one step of a task and says how to go on. Throws only on a bug. */
export type ProcessTask = (task: Task, attempt: Attempt) => Promise<Verdict>;
