// Which schedulers and workers are alive: every process beats once a second (redis-watch.ts), under a name that says what it does.
// Read by `syncline doctor` and `syncline status`; changes nothing.
import { randomUUID } from "node:crypto";
import { redisTimeMs, type Store } from "./redis.ts";

/** How many processes beat within the last ten seconds. `unnamed`: of a version that does not say what it does. */
export interface Presence {
  readonly schedulers: number;
  readonly workers: number;
  readonly unnamed: number;
}

const aliveForMs = 10_000;
const processesMax = 10_000;

/** A new name for this process: `scheduler+worker/` and an id that no other has. */
export function processName(roles: readonly string[]): string {
  return `${roles.join("+")}/${randomUUID()}`;
}

/** Counts who is alive. A process that was killed still counts for ten seconds. */
export async function readPresence(store: Store): Promise<Presence> {
  const sinceMs = (await redisTimeMs(store)) - aliveForMs;
  const names = await store.redis.zrangebyscore(store.key("processes"), sinceMs, "+inf", "LIMIT", 0, processesMax);
  const roles = names.map((name) => name.slice(0, Math.max(name.indexOf("/"), 0)).split("+"));
  return {
    schedulers: roles.filter((mine) => mine.includes("scheduler")).length,
    workers: roles.filter((mine) => mine.includes("worker")).length,
    unnamed: roles.filter(([first]) => first === "").length,
  };
}
