// The failed list: failed tasks and failed deliveries together, and which a command selects.
import { UsageError } from "../core/errors.ts";
import type { FailedDelivery } from "../model/notice.ts";
import type { NoticeQueues } from "../queue/notice-queues.ts";
import { type FailedTask, FailedTasks } from "../store/failed-tasks.ts";
import type { Store } from "../store/redis.ts";
import { SinkStore } from "../store/sink-store.ts";

/** One entry: a task that ended badly, or a notice that a sink did not take. */
export type FailedItem =
  | ({ readonly type: "task"; readonly id: string } & FailedTask)
  | ({ readonly type: "delivery"; readonly id: string } & FailedDelivery);

/** How a command selects entries: by ids, or by exactly one group. */
export interface Selection {
  readonly ids: readonly string[];
  /** All failed tasks of these policies; with `sink`, the notices about them. */
  readonly policies?: ReadonlySet<string> | undefined;
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
  { ids, policies, sink, all, corrected }: Selection,
): { readonly meant: readonly FailedItem[]; readonly absent: readonly string[] } {
  const isGroup = policies !== undefined || sink !== undefined || all === true;
  if (isGroup === ids.length > 0)
    throw new UsageError("name ids, or one of --policy NAME, --label NAME=VALUE, --sink NAME and --all");
  if (all && (policies !== undefined || sink !== undefined))
    throw new UsageError("--all means everything: leave --policy and --sink out");
  const wanted = new Set(ids);
  const meant = items.filter((item) => {
    if (!isGroup) return wanted.has(item.id);
    if (item.type === "task" && item.isMended && corrected !== true) return false;
    if (all) return true;
    if (sink !== undefined)
      return item.type === "delivery" && item.sink === sink && (policies?.has(item.notice.policy ?? "") ?? true);
    return item.type === "task" && policies?.has(item.outcome.policy) === true;
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
