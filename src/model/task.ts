// The task: one slot applied to one sync job, list or declared object. It holds no secret, and no
// copy of the policy: the worker looks the policy up by name. Its id is the same on every replica,
// so that the queue drops one enqueued twice; it never holds ":" and is never all digits, which
// BullMQ would misread.

import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";

/** What a task does. `poll` only reads; the others change something at the service. */
export const taskKinds = ["run", "activate", "apply", "delete", "poll"] as const;

/** One of the five kinds of task. */
export type TaskKind = (typeof taskKinds)[number];

/** Stands in place of a policy in a deletion by hand. No policy can have this name. */
export const deletionByHand = "by-hand.delete";

/** Stands in place of a policy in a run of a sync job without one. No policy can have this name. */
export const runByHand = "by-hand.run";

/** Whether this is no policy, but stands in place of one. */
export function isByHand(policy: string): boolean {
  return policy === runByHand || policy === deletionByHand;
}

/** The target of a run over masks: the worker reads its sync jobs when the slot is due. */
export const targetFromMasks = "masks";

const taskSchema = z.strictObject({
  v: z.literal(1),
  id: z.string().min(1).max(250),
  kind: z.enum(taskKinds),
  policy: z.string().min(1),
  service: z.string().min(1),
  repository: z.string().nullable(),
  target: z.string().min(1),
  slotMs: z.int(),
  origin: z.enum(["schedule", "manual"]),
  covers: z.array(z.int()).max(1_000),
  startByMs: z.int(),
  guard: z.string().min(1).max(4_096).exactOptional(),
});

/**
 * `target`: a sync job id in digits, `masks`, a list or an object. `covers`: older slots that it
 * stands for. `guard`: of a deletion by hand, the exact name that the sync job must have.
 */
export type Task = Readonly<z.infer<typeof taskSchema>>;

/** Reads a task from the queue. @throws NewerVersionError or ZodError. */
export function parseTask(value: unknown): Task {
  return parseVersioned("task", taskSchema, value);
}

/** Whether a task stands for the sync jobs of masks; a poll of the masks has the same target. */
export function isFromMasks({ kind, target }: Pick<Task, "kind" | "target">): boolean {
  return kind === "run" && target === targetFromMasks;
}

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
  const isManual = hand === "m";
  const slotMs = Number(instant) * (isManual ? 1 : 1_000);
  return { policy, kind, target, slotMs, origin: isManual ? "manual" : "schedule" };
}

const activationEnd = "__activate";

/** The id of the activation before a run. No other id ends so: they end in digits. */
export function activationId(runId: string): string {
  return `${runId}${activationEnd}`;
}

/** The id of the run that an activation goes before; undefined for the id of a task. */
export function runOfActivation(id: string): string | undefined {
  return id.endsWith(activationEnd) ? id.slice(0, -activationEnd.length) : undefined;
}

/** Reads the target out of a task id: no policy's name holds "_". */
export function targetOf(id: string): string {
  return id.split("__").slice(2, -1).join("__");
}
