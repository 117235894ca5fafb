// The failed list: failed tasks and failed deliveries together, which of them a command selects,
// and how they are replayed or discarded. Called by failed.ts.
import type { PolicySet } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import type { FailedDelivery } from "../model/notice.ts";
import { replayable } from "../model/outcome.ts";
import { isFromMasks, type Task } from "../model/task.ts";
import { taskId } from "../model/task-id.ts";
import type { NoticeQueues } from "../queue/notice-queues.ts";
import type { Producer } from "../queue/producer.ts";
import { tasksOf } from "../schedule/slot-tasks.ts";
import { type FailedTask, FailedTasks } from "../store/failed-tasks.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { SinkStore } from "../store/sink-store.ts";

/** One entry: a task that ended badly, or a notice that a sink did not take. */
export type FailedItem =
  | ({ readonly type: "task"; readonly id: string } & FailedTask)
  | ({ readonly type: "delivery"; readonly id: string } & FailedDelivery);

/** How a command selects entries: by ids, or by exactly one of the three. */
export interface Selection {
  readonly ids: readonly string[];
  /** All failed tasks of a policy; with `sink`, the notices about it. */
  readonly policy?: string | undefined;
  readonly sink?: string | undefined;
  readonly all?: true | undefined;
  /** Includes corrected entries of a group; an id always selects its own. */
  readonly corrected?: true | undefined;
}

/** How many deliveries are read of each sink: all that are kept. */
const deliveriesMax = 10_000;

/** All failures: tasks first, then deliveries by sink, each the newest first. */
export async function readFailed(store: Store, queues: NoticeQueues): Promise<readonly FailedItem[]> {
  const [tasks, sinks] = await Promise.all([new FailedTasks(store).all(), new SinkStore(store).all()]);
  const items: FailedItem[] = tasks.map((task) => ({ type: "task", id: task.outcome.taskId, ...task }));
  for (const { name } of sinks) {
    for (const delivery of await queues.failed(name, deliveriesMax))
      items.push({ type: "delivery", id: delivery.notice.id, ...delivery });
  }
  return items;
}

/**
 * The selected entries, and the ids that do not exist.
 * @throws UsageError when nothing is named, or both ids and a group.
 */
export function selectFailed(
  items: readonly FailedItem[],
  { ids, policy, sink, all, corrected }: Selection,
): { readonly meant: readonly FailedItem[]; readonly absent: readonly string[] } {
  const isGroup = policy !== undefined || sink !== undefined || all === true;
  if (isGroup === ids.length > 0) throw new UsageError("name ids, or one of --policy NAME, --sink NAME and --all");
  if (all && (policy !== undefined || sink !== undefined))
    throw new UsageError("--all means everything: leave --policy and --sink out");
  const wanted = new Set(ids);
  const meant = items.filter((item) => {
    if (!isGroup) return wanted.has(item.id);
    if (item.type === "task" && item.isMended && corrected !== true) return false;
    if (all) return true;
    if (sink !== undefined)
      return item.type === "delivery" && item.sink === sink && (policy === undefined || item.notice.policy === policy);
    return item.type === "task" && item.outcome.policy === policy;
  });
  const there = new Set(meant.map(({ id }) => id));
  return { meant, absent: ids.filter((id) => !there.has(id)) };
}

/** The entry for the record of changes. */
export function describeFailed(item: FailedItem): { readonly id: string; readonly was: string } {
  return item.type === "task"
    ? { id: item.id, was: `${item.outcome.status} (${item.outcome.reason})` }
    : { id: item.id, was: `failed in ${item.sink}: ${item.reason}` };
}

/** What an action needs. `set` is needed for tasks only. */
export interface ActionParts {
  readonly store: Store;
  readonly queues: Pick<NoticeQueues, "replay" | "discard">;
  readonly producer: Pick<Producer, "enqueue">;
  readonly set: PolicySet | undefined;
  readonly force: boolean;
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
  const slotMs = await redisTimeMs(parts.store);
  const made = new Set<string>();
  const results: ActionResult[] = [];
  // The oldest first: notices keep their order.
  for (const item of items.toReversed()) {
    if (item.type === "task") results.push(await replayTask(item, { ...parts, slotMs, made }));
    else results.push(resultOf(item, await parts.queues.replay(item.sink, item.id)));
  }
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
  return results;
}

function resultOf(item: FailedItem, isDone: boolean): ActionResult {
  return isDone ? { item } : { item, why: "another command has dealt with it meanwhile" };
}

async function replayTask(
  item: TaskItem,
  { store, producer, set, force, slotMs, made }: ActionParts & { readonly slotMs: number; readonly made: Set<string> },
): Promise<ActionResult> {
  if (replayable[item.outcome.status] === "may-run" && !force)
    return { item, why: `it ended as ${item.outcome.status}, so it may be at work still: look, then add --force` };
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
  const policy = set?.policies.find(({ name }) => name === outcome.policy);
  if (policy === undefined)
    return set === undefined ? "tasks need their policy: --config PATH" : "its policy is not configured any more";
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
