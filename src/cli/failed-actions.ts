// What `syncline failed replay` and `discard` do, item by item. A task is done over by a new task by hand, never by the old one: its id has
// been used, and its request goes out at most once. A delivery goes to the end of its queue under its own id. Called by failed.ts.
import type { PolicySet } from "../config/policy-set.ts";
import type { NoticeQueues } from "../queue/notice-queues.ts";
import type { Producer } from "../queue/producer.ts";
import { tasksOf } from "../schedule/slot-tasks.ts";
import { FailedTasks } from "../store/failed-tasks.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { isFromMasks, type Task } from "../tasks/task.ts";
import { taskId } from "../tasks/task-id.ts";
import { type FailedItem, mayRunStill } from "./failed-items.ts";

/** What is worked with. `set` is needed for tasks only. */
export interface ActionParts {
  readonly store: Store;
  readonly queues: Pick<NoticeQueues, "replay" | "discard">;
  readonly producer: Pick<Producer, "enqueue">;
  readonly set: PolicySet | undefined;
  readonly force: boolean;
}

/** What became of an item. `into`: the task that was made. `why`: it was left as it is. */
export interface ActionResult {
  readonly item: FailedItem;
  readonly into?: string;
  readonly why?: string;
}

type TaskItem = Extract<FailedItem, { type: "task" }>;
type DeliveryItem = Extract<FailedItem, { type: "delivery" }>;

/** Does items over. Several failed tasks of one policy and target are done over by one task. */
export async function replay(items: readonly FailedItem[], parts: ActionParts): Promise<readonly ActionResult[]> {
  const slotMs = await redisTimeMs(parts.store);
  const made = new Set<string>();
  const results: ActionResult[] = [];
  // The oldest first: notices keep their order.
  for (const item of items.toReversed()) {
    results.push(
      item.type === "task" ? await replayTask(item, { ...parts, slotMs, made }) : await replayOne(item, parts),
    );
  }
  return results;
}

/** Takes items off the list. Outcomes stay in the history. */
export async function discard(items: readonly FailedItem[], parts: ActionParts): Promise<readonly ActionResult[]> {
  const failed = new FailedTasks(parts.store);
  const results: ActionResult[] = [];
  for (const item of items) {
    const isDone = item.type === "task" ? await failed.claim(item.id) : await parts.queues.discard(item.sink, item.id);
    results.push(isDone ? { item } : { item, why: goneMeanwhile });
  }
  return results;
}

const goneMeanwhile = "somebody has dealt with it meanwhile";

async function replayOne(item: DeliveryItem, { queues }: ActionParts): Promise<ActionResult> {
  return (await queues.replay(item.sink, item.id)) ? { item } : { item, why: goneMeanwhile };
}

async function replayTask(
  item: TaskItem,
  { store, producer, set, force, slotMs, made }: ActionParts & { readonly slotMs: number; readonly made: Set<string> },
): Promise<ActionResult> {
  if (mayRunStill(item) && !force)
    return { item, why: `it ended as ${item.outcome.status}, so it may be at work still: look, then add --force` };
  const task = toTask(item, set, slotMs);
  if (typeof task === "string") return { item, why: task };
  const failed = new FailedTasks(store);
  // Claimed before: two people at once must not start it twice.
  if (!(await failed.claim(item.id))) return { item, why: goneMeanwhile };
  if (made.has(task.id)) return { item, into: task.id };
  try {
    await producer.enqueue([task]);
  } catch (error) {
    await failed.release([item.id]);
    throw error;
  }
  made.add(task.id);
  return { item, into: task.id };
}

/** The new task, or why there is none. */
function toTask({ outcome }: TaskItem, set: PolicySet | undefined, slotMs: number): Task | string {
  const policy = set?.policies.find(({ name }) => name === outcome.policy);
  if (policy === undefined)
    return set === undefined ? "tasks need their policy: --config PATH" : "its policy is not configured any more";
  const tasks = tasksOf(policy, { slotMs, origin: "manual", covers: [] });
  const same = tasks.find(({ kind, target }) => kind === outcome.kind && target === outcome.target);
  if (same !== undefined) return same;
  const [masks] = tasks;
  if (masks === undefined || !isFromMasks(masks) || outcome.kind !== "run")
    return "its policy does something else by now: syncline run";
  // One of the sync jobs that the masks had named.
  const identity = {
    policy: policy.name,
    kind: outcome.kind,
    target: outcome.target,
    slotMs,
    origin: "manual",
  } as const;
  return { ...masks, ...identity, id: taskId(identity) };
}
