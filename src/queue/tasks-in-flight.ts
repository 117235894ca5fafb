// Reads the tasks in the queues straight from Redis: one connection for all services, and a bounded
// read for ten thousand tasks. The keys are BullMQ's (PREFIX:QUEUE:wait, :active, :delayed, …).
import { parseTask, type Task } from "../model/task.ts";
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

/** What was found. `total`: how many there are; more than `tasks` when there are too many. */
export interface TasksInFlight {
  readonly tasks: readonly TaskInFlight[];
  readonly total: number;
}

/** The most tasks that one call reads. */
const tasksReadMax = 10_000;

const kinds = ["actions", "polls"] as const;

/** Reads the tasks in flight of these services, of one policy or all. */
export async function readTasksInFlight(
  store: Store,
  services: readonly string[],
  isMeant: (policy: string) => boolean,
): Promise<TasksInFlight> {
  const places = (await Promise.all(queuesOf(services).map((queue) => placesIn(store, queue)))).flat();
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
  return { tasks, total: mine.length };
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
  return services.flatMap((service) => kinds.map((kind) => queueName(service, kind)));
}

interface Place {
  readonly queue: string;
  readonly id: string;
  readonly state: QueueState;
}

/** The ids in one queue. Walks of lists stand there, too; their ids hold no "__". */
async function placesIn({ redis, key }: Store, queue: string): Promise<Place[]> {
  const list = (name: string) => redis.lrange(key(queue, name), 0, tasksReadMax);
  const sorted = (name: string) => redis.zrangebyscore(key(queue, name), "-inf", "+inf", "LIMIT", 0, tasksReadMax);
  const [active, waiting, paused, prioritized, delayed] = await Promise.all([
    ...[list("active"), list("wait"), list("paused"), sorted("prioritized"), sorted("delayed")],
  ]);
  const as = (state: QueueState, ids: readonly string[] = []) => ids.map((id) => ({ queue, id, state }));
  return [
    ...as("active", active),
    ...as("waiting", [...(waiting ?? []), ...(paused ?? []), ...(prioritized ?? [])]),
    ...as("delayed", delayed),
  ];
}
