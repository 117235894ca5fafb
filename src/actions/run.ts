// Starts tasks by hand, now: they go the same way as scheduled ones.
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { ConflictError } from "../core/errors.ts";
import type { Task } from "../model/task.ts";
import type { Producer } from "../queue/producer.ts";
import { tasksOf } from "../schedule/slot-tasks.ts";
import { readPresence, redisTimeMs, type Store } from "../store/redis.ts";
import { type By, beginChange, type ChangeFacts } from "./record-change.ts";

/** What is queued now, and how many workers were alive for it before. */
export interface QueuedTasks {
  readonly tasks: readonly Task[];
  readonly workers: number;
}

/** What an action that queues tasks needs. */
export interface RunParts {
  readonly store: Store;
  readonly producer: Pick<Producer, "enqueue">;
  readonly by: By;
  /** The instant that names the tasks: the same one again makes the same tasks. Default: now. */
  readonly atMs?: number;
}

const recordedTasksMax = 100;

/** Runs a policy now, whatever its schedule and its pauses say. */
export async function runNow(policy: Policy, parts: RunParts): Promise<QueuedTasks> {
  const tasks = await tasksByHand(policy, parts);
  const ids = tasks.slice(0, recordedTasksMax).map(({ id }) => id);
  return queueByHand(tasks, parts, { what: "run", subject: `policy ${policy.name}`, after: { tasks: ids } });
}

async function tasksByHand(policy: Policy, { store, atMs }: RunParts): Promise<Task[]> {
  return tasksOf(policy, { slotMs: atMs ?? (await redisTimeMs(store)), origin: "manual", covers: [] });
}

/** One sync job, without a policy. */
interface SyncJobPlace {
  readonly service: string;
  readonly syncJob: number;
  readonly repository: string | undefined;
}

/** What stands in place of a policy for one sync job. */
export function policyOfSyncJob({ service, syncJob, repository }: SyncJobPlace, set: PolicySet): Policy {
  return { ...set.byHand, service, repository, action: { kind: "run", syncJobs: [syncJob] } };
}

/** Longer than a key is kept after one attempt. */
const instantKeptMs = 2 * 86_400_000;
const instantsMax = 1_000;

/**
 * The instant that names tasks by hand at a place, the same one for a repeat. The id of such a task
 * says no place: what is asked for at several places in one millisecond gets an instant for each.
 */
export async function instantByHand(
  { service, repository }: { readonly service: string; readonly repository?: string | null | undefined },
  { store, atMs }: Pick<RunParts, "store" | "atMs">,
): Promise<number> {
  const place = JSON.stringify([service, repository ?? null]);
  const firstMs = atMs ?? (await redisTimeMs(store));
  for (let ms = firstMs; ms < firstMs + instantsMax; ms += 1) {
    const name = store.key("request-instant", String(ms));
    const isFirst = (await store.redis.set(name, place, "PX", instantKeptMs, "NX")) === "OK";
    if (isFirst || (await store.redis.get(name)) === place) return ms;
  }
  throw new ConflictError("too many tasks by hand at once: ask again");
}

/** Runs one sync job now, as the `defaults` of the policy files say. */
export async function runSyncJob(place: SyncJobPlace, set: PolicySet, parts: RunParts): Promise<QueuedTasks> {
  const { service, syncJob, repository } = place;
  const atMs = await instantByHand(place, parts);
  const tasks = await tasksByHand(policyOfSyncJob(place, set), { ...parts, atMs });
  const where = repository === undefined ? service : `${service}, ${repository}`;
  const done = { what: "run", subject: `sync job ${syncJob} of ${where}`, after: { tasks: tasks.map(({ id }) => id) } };
  return queueByHand(tasks, parts, done);
}

/** Queues tasks of one kind. The record of the change names them before they are queued. */
export async function queueByHand(
  tasks: readonly Task[],
  { store, producer, by }: RunParts,
  facts: ChangeFacts,
): Promise<QueuedTasks> {
  const { workers } = await readPresence(store);
  const change = await beginChange(store, by, facts);
  await producer.enqueue(tasks);
  await change.end();
  return { tasks, workers };
}
