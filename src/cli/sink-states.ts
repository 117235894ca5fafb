// How the sinks are: what waits, since when, what failed, what was dropped. Read by `syncline status` and `syncline doctor`. A sink that no
// worker has had yet is left out, so nothing is written to Redis for it.
import type { PolicySet } from "../config/policy-set.ts";
import { silentLog } from "../core/event-log.ts";
import { NoticeQueues, type SinkBacklog } from "../queue/notice-queues.ts";
import type { RedisTarget, Store } from "../store/redis.ts";
import { SinkBook } from "../store/sink-book.ts";

/** One sink. `dropped`: notices for which its queue had no room, since it is known. */
export interface SinkState extends SinkBacklog {
  readonly sink: string;
  readonly dropped: number;
}

/** The first notice waits so long before a sink counts as stuck; as the alert SynclineSinkStuck has it. */
const stuckAfterMs = 900_000;

/** The sinks of these policies that a worker has had, by name. */
export async function readSinkStates(
  { sinks }: Pick<PolicySet, "sinks">,
  { target, store }: { readonly target: RedisTarget; readonly store: Store },
): Promise<readonly SinkState[]> {
  const known = (await new SinkBook(store).all()).filter(({ name }) => sinks.has(name));
  if (known.length === 0) return [];
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
