// The failed list: failed tasks and failed deliveries together, which a command selects, and the
// failures of a span by their cause.
import { parseDuration } from "../core/duration.ts";
import { UsageError } from "../core/errors.ts";
import { localDate } from "../core/instant.ts";
import type { FailedDelivery } from "../model/notice.ts";
import type { NoticeQueues } from "../queue/notice-queues.ts";
import { parseWallTime } from "../schedule/zone.ts";
import { type FailedTask, FailedTasks } from "../store/failed-tasks.ts";
import type { Store } from "../store/redis.ts";
import { SinkStore } from "../store/sink-store.ts";

/** One entry: a task that ended badly, or a notice that a sink did not take. */
export type FailedItem =
  | ({ readonly type: "task"; readonly id: string } & FailedTask)
  | ({ readonly type: "delivery"; readonly id: string } & FailedDelivery);

/** What was read of the failed list. `isAll`: no older task was left out. */
export interface FailedList {
  readonly items: readonly FailedItem[];
  readonly isAll: boolean;
}

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

/**
 * All failures: tasks first, then deliveries by sink, each the newest first. Of very many tasks
 * these are the newest, and those of `ids`.
 */
export async function readFailed(
  store: Store,
  queues: NoticeQueues,
  { ids, failed = new FailedTasks(store) }: { readonly ids?: readonly string[]; readonly failed?: FailedTasks } = {},
): Promise<FailedList> {
  const [tasks, isCut, sinks] = await Promise.all([failed.all(ids), failed.isCut(), new SinkStore(store).all()]);
  const items: FailedItem[] = tasks.map((task) => ({ type: "task", id: task.outcome.taskId, ...task }));
  for (const { name } of sinks) {
    for (const delivery of await queues.failed(name, deliveriesMax))
      items.push({ type: "delivery", id: delivery.notice.id, ...delivery });
  }
  return { items, isAll: !isCut };
}

/**
 * The selected entries, and the ids that do not exist. `isAll`: the list has no others to select.
 * @throws UsageError when nothing is named, or both ids and a group.
 */
export function selectFailed(
  { items, isAll }: FailedList,
  { ids, policies, sink, all, corrected }: Selection,
): { readonly meant: readonly FailedItem[]; readonly absent: readonly string[]; readonly isAll: boolean } {
  const isGroup = policies !== undefined || sink !== undefined || all === true;
  if (isGroup === ids.length > 0)
    throw new UsageError("name ids, or one of: policy NAME, label NAME=VALUE, sink NAME, all");
  if (all && (policies !== undefined || sink !== undefined))
    throw new UsageError("all means everything: leave policy, label and sink out");
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
  const absent = ids.filter((id) => !there.has(id));
  return { meant, absent, isAll: isAll || ids.length > 0 || sink !== undefined };
}

/** The entry for the record of changes. */
export function describeFailed(item: FailedItem): { readonly id: string; readonly was: string } {
  return item.type === "task"
    ? { id: item.id, was: `${item.outcome.status} (${item.outcome.reason})` }
    : { id: item.id, was: `failed in ${item.sink}: ${item.reason}` };
}

/** How far back one looks: to the newest 18:00, for so long, or to the first. */
export const failedSpans = ["18:00", "24h", "7d", "all"] as const;

/** When a span begins, by the clocks of a zone. */
export function spanBegin(span: (typeof failedSpans)[number], nowMs: number, timezone: string): number {
  if (span === "all") return Number.NEGATIVE_INFINITY;
  if (span !== "18:00") return nowMs - parseDuration(span);
  // Before 18:00, twenty hours ago is yesterday, also where clocks have changed in between.
  const evenings = [nowMs, nowMs - 72_000_000].map((ms) => `${localDate(ms, timezone)}T18:00`);
  const begins = evenings.map((text) => parseWallTime(text, timezone)?.nearMs ?? 0);
  return begins.find((ms) => ms <= nowMs) ?? 0;
}

/** Failed tasks grouped by cause (service, status and reason): the cause that struck last first. */
export function groupByCause(newestFirst: readonly FailedTask[]): readonly (readonly FailedTask[])[] {
  const causeOf = ({ outcome: { service, status, reason } }: FailedTask) => `${service} ${status} ${reason}`;
  return [...Map.groupBy(newestFirst, causeOf).values()];
}
