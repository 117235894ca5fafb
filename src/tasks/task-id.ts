// Names of tasks: the same on every replica, machine and version, so that the queue drops whatever is enqueued twice.
// A name never holds ":" and is never all digits; both mean something to the queue.
import type { Task } from "./task.ts";

/** What a task's name is made of. */
export type TaskIdentity = Pick<Task, "policy" | "kind" | "target" | "slotMs" | "origin">;

/** `contracts-nightly__run__42__1795228200`; by hand: `contracts-nightly__run__42__m1795228200123`. */
export function taskId({ policy, kind, target, slotMs, origin }: TaskIdentity): string {
  const slot = origin === "manual" ? `m${slotMs}` : String(Math.floor(slotMs / 1_000));
  return `${policy}__${kind}__${target}__${slot}`;
}
