// The task: one slot applied to one sync job or list. It holds no secret, and no copy of the
// policy: the worker looks the policy up by name.
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
