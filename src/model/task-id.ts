// Task ids: the same on every replica, so that the queue drops a task enqueued twice. An id never
// holds ":" and is never all digits; both mean something to BullMQ.
import { type Task, taskKinds } from "./task.ts";

/** The parts of a task id. */
export type TaskIdentity = Pick<Task, "policy" | "kind" | "target" | "slotMs" | "origin">;

/** Makes an id: `contracts-nightly__run__42__1795228200`; by hand `…__42__m1795228200123`. */
export function taskId({ policy, kind, target, slotMs, origin }: TaskIdentity): string {
  const slot = origin === "manual" ? `m${slotMs}` : String(Math.floor(slotMs / 1_000));
  return `${policy}__${kind}__${target}__${slot}`;
}

/** Reads an id; undefined for a text that is none. A slot is known to the second. */
export function parseTaskId(id: string): TaskIdentity | undefined {
  const [, policy = "", kindText, target = "", hand, instant] =
    /^([\w.-]+?)__([a-z]+)__(.+)__(m?)(\d+)$/.exec(id) ?? [];
  const kind = taskKinds.find((one) => one === kindText);
  if (kind === undefined) return undefined;
  const isByHand = hand === "m";
  const slotMs = Number(instant) * (isByHand ? 1 : 1_000);
  return { policy, kind, target, slotMs, origin: isByHand ? "manual" : "schedule" };
}

/** Reads the target out of a task id: no policy's name holds "_". */
export function targetOf(id: string): string {
  return id.split("__").slice(2, -1).join("__");
}
