// What waits for each sink, and what it did not take. Reads Redis only. Called by status.ts and by
// `syncline sinks`.
import type { PolicySet } from "../config/policy-set.ts";
import { silentLog } from "../core/event-log.ts";
import { NoticeQueues, type SinkBacklog } from "../queue/notice-queues.ts";
import type { RedisTarget, Store } from "../store/redis.ts";
import { SinkStore } from "../store/sink-store.ts";

/** One sink. `dropped`: notices without room in its queue, since it is known. */
export interface SinkState extends SinkBacklog {
  readonly sink: string;
  readonly dropped: number;
}

/** A sink is stuck when its first notice waits this long, as in the alert SynclineSinkStuck. */
const stuckAfterMs = 900_000;

/** The sinks that a worker has run: for others, nothing is written to Redis. */
export async function readSinks(
  { sinks }: Pick<PolicySet, "sinks">,
  store: Store,
  target: RedisTarget,
): Promise<readonly SinkState[]> {
  const known = (await new SinkStore(store).all()).filter(({ name }) => sinks.has(name));
  const queues = new NoticeQueues(target, silentLog);
  try {
    const states: SinkState[] = [];
    for (const { name, dropped } of known) states.push({ sink: name, dropped, ...(await queues.backlog(name)) });
    return states;
  } finally {
    await queues.close();
  }
}

/** Whether a sink takes nothing any more. */
export function isStuck({ oldestMs }: Pick<SinkState, "oldestMs">, nowMs: number): boolean {
  return oldestMs !== undefined && nowMs - oldestMs > stuckAfterMs;
}
