// Reads the tasks in the queues straight from Redis: one connection for all services, and a bounded
// read for ten thousand tasks. The keys are BullMQ's (PREFIX:QUEUE:wait, :active, :delayed, …).
import { parseTask, type Task } from "../model/task.ts";
import { queueKinds } from "../model/task-processing.ts";
import type { Store } from "../store/redis.ts";
import { batchesOf } from "../store/script.ts";
import { queueName } from "./queues.ts";

/** `active`: a worker takes a step. `delayed`: it sleeps until its next step. */
type QueueState = "active" | "waiting" | "delayed";

/** A task that a worker works on, or will. */
export interface TaskInFlight {
  readonly task: Task;
  readonly state: QueueState;
  readonly queuedAtMs: number;
}

/**
 * What was found. `total`: how many there are; more than `tasks` when there are too many. `isCut`:
 * there are more than were looked through, so that what is missing may be there.
 */
export interface TasksInFlight {
  readonly tasks: readonly TaskInFlight[];
  readonly total: number;
  readonly isCut: boolean;
}

/** The most tasks that one call reads. */
const tasksReadMax = 10_000;

/** The most ids of a list of a queue that are looked through, and those of one answer of Redis. */
const idsReadMax = 200_000;
const idsAtOnce = 10_000;

/** How far one call looks, as a person is told. */
export const tasksLookedThrough = `the first ${idsReadMax.toLocaleString("en")} of a queue`;

/** Reads the tasks in flight of these services, of one policy or all. */
export async function readTasksInFlight(
  store: Store,
  services: readonly string[],
  isMeant: (policy: string) => boolean,
): Promise<TasksInFlight> {
  const found = await Promise.all(queuesOf(services).map((queue) => placesIn(store, queue)));
  const places = found.flatMap((one) => one.places);
  const mine = places.filter(({ id }) => id.includes("__") && isMeant(id.slice(0, id.indexOf("__"))));
  const tasks: TaskInFlight[] = [];
  for (const batch of batchesOf(mine.slice(0, tasksReadMax))) {
    const read = batch.map(async ({ queue, id, state }) => {
      const [data, timestamp] = await store.redis.hmget(store.key(queue, id), "data", "timestamp");
      return data === null || data === undefined
        ? []
        : [{ task: parseTask(JSON.parse(data)), state, queuedAtMs: Number(timestamp) }];
    });
    tasks.push(...(await Promise.all(read)).flat());
  }
  return { tasks, total: mine.length, isCut: found.some((one) => one.isCut) };
}

/** Finds a task by its id in the queues of these services; undefined when it is not in flight. */
export async function findTaskInFlight(
  store: Store,
  services: readonly string[],
  id: string,
): Promise<Task | undefined> {
  for (const batch of batchesOf(queuesOf(services))) {
    const read = batch.map((queue) => store.redis.hmget(store.key(queue, id), "data", "finishedOn"));
    const found = (await Promise.all(read)).find(([data, finishedOn]) => data !== null && finishedOn === null);
    if (found !== undefined) return parseTask(JSON.parse(found[0] ?? ""));
  }
  return undefined;
}

function queuesOf(services: readonly string[]): string[] {
  return services.flatMap((service) => queueKinds.map((kind) => queueName(service, kind)));
}

interface Place {
  readonly queue: string;
  readonly id: string;
  readonly state: QueueState;
}

/** The ids in one queue. Walks of lists stand there, too; their ids hold no "__". */
async function placesIn({ redis, key }: Store, queue: string) {
  const list = (name: string) => readIds((from, to) => redis.lrange(key(queue, name), from, to));
  const sorted = (name: string) => readIds((from, to) => redis.zrange(key(queue, name), `${from}`, `${to}`));
  const read = await Promise.all([
    ...[list("active"), list("wait"), list("paused"), sorted("prioritized"), sorted("delayed")],
  ]);
  const states: readonly QueueState[] = ["active", "waiting", "waiting", "waiting", "delayed"];
  const places = new Map<string, Place>();
  // One that moves meanwhile, or is pushed on by others, is read twice.
  for (const [index, state] of states.entries())
    for (const id of read[index] ?? []) if (!places.has(id)) places.set(id, { queue, id, state });
  return { places: [...places.values()], isCut: read.some(({ length }) => length > idsReadMax) };
}

/** Reads a list page by page, so that no answer holds Redis up; one id more where it is cut. */
async function readIds(read: (from: number, to: number) => Promise<readonly string[]>): Promise<readonly string[]> {
  const ids: string[] = [];
  while (ids.length <= idsReadMax) {
    const page = await read(ids.length, Math.min(ids.length + idsAtOnce, idsReadMax + 1) - 1);
    ids.push(...page);
    if (page.length < idsAtOnce) break;
  }
  return ids;
}
