// The words between schedule/, queue/ and tasks/, so that schedule/ and tasks/ never see the
// queue.
import type { Task } from "./task.ts";
import type { Verdict } from "./verdict.ts";

/** The two queues of a service. `polls`: polls and feed walks; `actions`: the rest. */
export const queueKinds = ["actions", "polls"] as const;

/** One of the two. */
export type QueueKind = (typeof queueKinds)[number];

/** Puts tasks into the queue. It drops a task whose id it knows, so calling twice is safe. */
export type EnqueueTasks = (tasks: readonly Task[]) => Promise<void>;

/** `pending`: a worker has it, or will. `completed`: over. `missing`: given up, or not known. */
export type JobStatus = "pending" | "completed" | "missing";

/** Finds the status of a task among a service's actions. */
export type FindJobStatus = (service: string, taskId: string) => Promise<JobStatus>;

/** Reports to the chains how far the tasks of a slot have come. Every call may be repeated. */
export interface ChainProgress {
  /** Other tasks replace this one. Call it once they are queued, before this one is released. */
  noteFannedOut(task: Task, targets: readonly string[]): Promise<void>;
  /** The task has its outcome, or other tasks replace it, and it holds no lease. */
  taskOver(task: Task): Promise<void>;
}

/** Which attempt this is: `attempt` starts at 1; `attemptsMax` is the last one. */
export interface Attempt {
  readonly attempt: number;
  readonly attemptsMax: number;
  /** Aborts when the process shuts down. */
  readonly signal: AbortSignal;
}

/** Does one step of a task and says how to go on. Throws only on a bug. */
export type ProcessTask = (task: Task, attempt: Attempt) => Promise<Verdict>;
