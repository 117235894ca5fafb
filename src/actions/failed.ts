// Replays and discards entries of the failed list. Called by `syncline failed` and
// web/.
import type { PolicySet } from "../config/policy-set.ts";
import { replayable } from "../model/outcome.ts";
import { isFromMasks, runByHand, type Task } from "../model/task.ts";
import { taskId } from "../model/task-id.ts";
import { describeFailed, type FailedItem } from "../queries/failed.ts";
import type { NoticeQueues } from "../queue/notice-queues.ts";
import type { Producer } from "../queue/producer.ts";
import { tasksOf } from "../schedule/slot-tasks.ts";
import { FailedTasks } from "../store/failed-tasks.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { type By, recordChange } from "./record-change.ts";
import { policyOfSyncJob } from "./run.ts";

const recordedMax = 100;

/** What an action needs. `set` is needed for tasks only. */
export interface ActionParts {
  readonly store: Store;
  readonly queues: Pick<NoticeQueues, "replay" | "discard">;
  readonly producer: Pick<Producer, "enqueue">;
  readonly set: PolicySet | undefined;
  readonly force: boolean;
  readonly by: By;
  /** The instant that names new tasks: the same one again makes the same tasks. Default: now. */
  readonly atMs?: number;
}

/** The result for one entry. `into`: the new task. `why`: why it was left as it is. */
export interface ActionResult {
  readonly item: FailedItem;
  readonly into?: string;
  readonly why?: string;
}

type TaskItem = Extract<FailedItem, { type: "task" }>;

/** Replays entries. One task replays several failed tasks of one policy and target. */
export async function replay(items: readonly FailedItem[], parts: ActionParts): Promise<readonly ActionResult[]> {
  const slotMs = parts.atMs ?? (await redisTimeMs(parts.store));
  const made = new Set<string>();
  const results: ActionResult[] = [];
  // The oldest first: notices keep their order.
  for (const item of items.toReversed()) {
    if (item.type === "task") results.push(await replayTask(item, { ...parts, slotMs, made }));
    else results.push(resultOf(item, await parts.queues.replay(item.sink, item.id)));
  }
  await record("replay", results, parts);
  return results;
}

/** Removes entries from the list. Outcomes stay in the history. */
export async function discard(items: readonly FailedItem[], parts: ActionParts): Promise<readonly ActionResult[]> {
  const failed = new FailedTasks(parts.store);
  const results: ActionResult[] = [];
  for (const item of items) {
    const isDone =
      item.type === "task" ? await failed.claim(item.outcome) : await parts.queues.discard(item.sink, item.id);
    results.push(resultOf(item, isDone));
  }
  await record("discard", results, parts);
  return results;
}

async function record(name: string, results: readonly ActionResult[], { store, by }: ActionParts): Promise<void> {
  const done = results.filter(({ why }) => why === undefined);
  if (done.length === 0) return;
  const recorded = done.slice(0, recordedMax);
  await recordChange(store, by, {
    what: `failed ${name}`,
    subject: `${done.length} of the failed list`,
    before: recorded.map(({ item }) => describeFailed(item)),
    after: recorded.map(({ item, into }) => ({ id: item.id, into })),
  });
}

function resultOf(item: FailedItem, isDone: boolean): ActionResult {
  return isDone ? { item } : { item, why: "another command has dealt with it meanwhile" };
}

async function replayTask(
  item: TaskItem,
  { store, producer, set, force, slotMs, made }: ActionParts & { readonly slotMs: number; readonly made: Set<string> },
): Promise<ActionResult> {
  if (replayable[item.outcome.status] === "may-run" && !force)
    return {
      item,
      why: `it ended as ${item.outcome.status}, so it may be at work still: look, then force it (--force)`,
    };
  const task = toTask(item, set, slotMs);
  if (typeof task === "string") return { item, why: task };
  const failed = new FailedTasks(store);
  // Claimed first: two people at once must not start it twice.
  if (!(await failed.claim(item.outcome))) return resultOf(item, false);
  if (made.has(task.id)) return { item, into: task.id };
  try {
    await producer.enqueue([task]);
  } catch (error) {
    await failed.release(item.outcome);
    throw error;
  }
  made.add(task.id);
  return { item, into: task.id };
}

/** The new task, or why there is none. */
function toTask({ outcome }: TaskItem, set: PolicySet | undefined, slotMs: number): Task | string {
  const { service, repository, target } = outcome;
  const place = { service, syncJob: Number(target), repository: repository ?? undefined };
  const policy =
    outcome.policy === runByHand
      ? set && policyOfSyncJob(place, set)
      : set?.policies.find(({ name }) => name === outcome.policy);
  if (policy === undefined) return "its policy is not configured any more";
  const tasks = tasksOf(policy, { slotMs, origin: "manual", covers: [] });
  const same = tasks.find(({ kind, target }) => kind === outcome.kind && target === outcome.target);
  if (same !== undefined) return same;
  const [masks] = tasks;
  if (masks === undefined || !isFromMasks(masks) || outcome.kind !== "run")
    return "its policy does something else by now: syncline run";
  // One of the sync jobs that the masks named.
  const identity = {
    policy: policy.name,
    kind: outcome.kind,
    target: outcome.target,
    slotMs,
    origin: "manual",
  } as const;
  return { ...masks, ...identity, id: taskId(identity) };
}
