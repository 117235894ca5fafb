// What a policy did on each of the last days, in its own zone. Called by the pages and the API.
import type { Policy } from "../config/policy-set.ts";
import { localDate } from "../core/instant.ts";
import { parseWallTime } from "../schedule/zone.ts";
import { type DaySums, readSpans, toSums } from "../store/day-summaries.ts";
import { redisTimeMs } from "../store/redis.ts";
import type { QueryContext } from "./query-context.ts";
import { readSlots } from "./slot-strips.ts";

/** One day. */
export interface PolicyDay extends DaySums {
  readonly date: string;
}

const dayMs = 86_400_000;

/** Reads the newest slots of one day of a policy's zone, newest first; undefined: no such day. */
export async function readDaySlots(context: QueryContext, { name, closed }: Policy, date: string, count: number) {
  const midnight = (ofMs: number) =>
    parseWallTime(`${new Date(ofMs).toISOString().slice(0, 10)}T00:00`, closed.timezone)?.nearMs;
  const dateMs = /^\d{4}-\d\d-\d\d$/.test(date) ? Date.parse(date) : Number.NaN;
  if (Number.isNaN(dateMs)) return undefined;
  const [fromMs, toMs] = [midnight(dateMs), midnight(dateMs + dayMs)];
  return fromMs === undefined || toMs === undefined
    ? undefined
    : readSlots(context, name, { count, fromMs, toMs: toMs - 1 });
}

/** Reads the last `count` days, today included, oldest first. */
export async function readPolicyDays(
  { store }: QueryContext,
  { name, closed }: Policy,
  count: number,
): Promise<readonly PolicyDay[]> {
  const today = Date.parse(localDate(await redisTimeMs(store), closed.timezone));
  const dates = Array.from({ length: count }, (_, index) =>
    new Date(today - (count - 1 - index) * dayMs).toISOString().slice(0, 10),
  );
  const spans = dates.map((date) => ({ first: date, last: date }));
  for await (const { counts } of readSpans(store, [name], spans))
    return dates.map((date, index) => ({ date, ...toSums(counts[index] ?? new Map()) }));
  return [];
}
