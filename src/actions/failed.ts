// Replays and discards entries of the failed list. A task is replayed as a new one; one that may
// still be at work, only with `force`. Called by `syncline failed` and web/.
import type { PolicySet } from "../config/policy-set.ts";
import { mayRunBeside, type Outcome } from "../model/outcome.ts";
import { deletionByHand, isFromMasks, runByHand, type Task, taskId } from "../model/task.ts";
import { describeFailed, type FailedItem } from "../queries/failed.ts";
import type { NoticeQueues } from "../queue/notice-queues.ts";
import type { Producer } from "../queue/producer.ts";
import { tasksOf } from "../schedule/slot-tasks.ts";
import { FailedTasks } from "../store/failed-tasks.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { type By, beginChange } from "./record-change.ts";
import { instantByHand, policyOfSyncJob } from "./run.ts";

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
  /** Notes what an entry becomes, before it leaves the list. */
  readonly note?: (id: string, into: string) => Promise<void>;
  /** When aborted, what is not begun stays on the list. */
  readonly signal?: AbortSignal;
}

/** The result for one entry. `into`: the new task. `why`: why it was left as it is. */
export interface ActionResult {
  readonly item: FailedItem;
  readonly into?: string;
  readonly why?: string;
}

type TaskItem = Extract<FailedItem, { type: "task" }>;

/** What is meant to become of an entry. `task`: what replays it. */
type Entry = ActionResult & { readonly task?: Task };

/** Replays entries. One task replays several failed tasks of one policy and target. */
export async function replay(items: readonly FailedItem[], parts: ActionParts): Promise<readonly ActionResult[]> {
  const { store, producer, queues } = parts;
  const atMs = parts.atMs ?? (await redisTimeMs(store));
  const failed = new FailedTasks(store);
  const entries: Entry[] = [];
  const instantOf = async ({ policy, service, repository }: Outcome) =>
    policy === runByHand ? instantByHand({ service, repository }, { store, atMs }) : atMs;
  // The oldest first: notices keep their order.
  for (const item of items.toReversed()) {
    if (parts.signal?.aborted === true) entries.push({ item, why: stopped });
    else if (item.type !== "task") entries.push({ item });
    else entries.push(await prepareReplay(item, failed, { ...parts, atMs: await instantOf(item.outcome) }));
  }
  return carryOut("replay", entries, parts, async ({ item, into = "", task }) => {
    // It stays on the list until its task is queued; queued twice, the task is the same.
    if (task !== undefined) await producer.enqueue([task]);
    await parts.note?.(item.id, into);
    if (item.type !== "task") return queues.replay(item.sink, item.id);
    await failed.takeOff(item.outcome);
    return true;
  });
}

/** Removes entries from the list. Outcomes stay in the history. */
export async function discard(items: readonly FailedItem[], parts: ActionParts): Promise<readonly ActionResult[]> {
  const failed = new FailedTasks(parts.store);
  const entries = items.map((item) => ({ item }));
  return carryOut("discard", entries, parts, async ({ item }) =>
    item.type === "task" ? failed.takeOff(item.outcome) : parts.queues.discard(item.sink, item.id),
  );
}

/**
 * Does what is wanted, one after the other. Its record names all first, then what was tried: what
 * is off the list already may be so by the same command, sent twice after a lost answer.
 */
async function carryOut(
  name: string,
  entries: readonly Entry[],
  { store, by, signal }: Pick<ActionParts, "store" | "by" | "signal">,
  act: (one: Entry) => Promise<boolean>,
): Promise<readonly ActionResult[]> {
  const wanted = entries.filter(({ why }) => why === undefined);
  if (wanted.length === 0) return entries;
  const change = await beginChange(store, by, describe(name, wanted));
  const [done, left] = [new Set<Entry>(), new Set<Entry>()];
  for (const one of wanted) {
    if (signal?.aborted === true) left.add(one);
    else if (await act(one)) done.add(one);
  }
  const tried = wanted.filter((one) => !left.has(one));
  const unlisted = tried.flatMap((one) => (done.has(one) ? [] : one.item.id)).slice(0, recordedMax);
  const { after, ...described } = describe(name, tried);
  await (tried.length === 0 ? change.drop() : change.end({ ...described, after: { ...after, unlisted } }));
  return entries.map((one) => {
    const { item, into, why } = one;
    if (why !== undefined) return { item, why };
    if (done.has(one)) return { item, ...(into !== undefined && { into }) };
    return { item, why: left.has(one) ? stopped : offTheList };
  });
}

const offTheList = "it is not on the list any more";
const stopped = "stopped before its turn: it stays on the list";

function describe(name: string, entries: readonly Entry[]) {
  const recorded = entries.slice(0, recordedMax);
  const [first] = recorded;
  const isOneTask = entries.length === 1 && first?.item.type === "task";
  return {
    what: name,
    subject: isOneTask ? `task ${first.item.id}` : `${entries.length} of the failed list`,
    before: recorded.map(({ item }) => describeFailed(item)),
    // New tasks only: by their ids the change is found that made them.
    after: { tasks: recorded.flatMap(({ into }) => into ?? []) },
  };
}

async function prepareReplay(
  item: TaskItem,
  failed: FailedTasks,
  { set, force, atMs }: Pick<ActionParts, "set" | "force"> & { readonly atMs: number },
): Promise<Entry> {
  if (mayRunBeside(item.outcome) && !force)
    return { item, why: `it ended as ${item.outcome.status}, so it may be at work still: look, then force it` };
  const task = toTask(item, set, atMs);
  if (typeof task === "string") return { item, why: task };
  const slotMs = await failed.beginReplay(item.outcome, atMs);
  if (slotMs === undefined) return { item, why: offTheList };
  const id = taskId({ ...task, slotMs });
  return { item, into: id, task: { ...task, slotMs, id } };
}

const changedPolicy = "its policy does something else by now: run the sync job by hand";

/** The new task, or why there is none. */
function toTask({ outcome }: TaskItem, set: PolicySet | undefined, slotMs: number): Task | string {
  const { service, repository, kind, target } = outcome;
  // Its guard is not kept, and must be the name that the sync job has then.
  if (outcome.policy === deletionByHand)
    return "a deletion by hand is not done over: give it again, with `syncline delete`";
  const place = { service, syncJob: Number(target), repository: repository ?? undefined };
  const policy =
    outcome.policy === runByHand
      ? set && policyOfSyncJob(place, set)
      : set?.policies.find(({ name }) => name === outcome.policy);
  if (policy === undefined) return "its policy is not configured any more";
  if (!set?.services.has(service)) return "its service is not configured any more";
  if (policy.service !== service || (policy.repository ?? null) !== repository) return changedPolicy;
  const tasks = tasksOf(policy, { slotMs, origin: "manual", covers: [] });
  const same = tasks.find((task) => task.kind === kind && task.target === target);
  if (same !== undefined) return same;
  const [masks] = tasks;
  if (masks === undefined || !isFromMasks(masks) || kind !== "run") return changedPolicy;
  // One of the sync jobs that the masks named.
  return { ...masks, target, id: taskId({ ...masks, target }) };
}
