// The failed tasks: outcomes of the history that somebody may want to do over, without those that somebody has dealt with. Read and
// changed by `syncline failed`. The history itself is never changed.
import type { Outcome, OutcomeStatus } from "../tasks/outcome.ts";
import { isGood } from "../tasks/outcome.ts";
import { History } from "./history.ts";
import { redisTimeMs, type Store } from "./redis.ts";

/**
 * The endings that doing it over may mend. `conflicts` and `blocked` are none: there the run was made, and people are asked for.
 * `may-run`: whether the first start may still be at work; doing it over may then start the sync job twice.
 */
export const replayable: Readonly<Partial<Record<OutcomeStatus, "surely-over" | "may-run">>> = {
  failed: "surely-over",
  "not-started": "surely-over",
  missed: "surely-over",
  unknown: "may-run",
  "timed-out": "may-run",
};

/** As many as there are outcomes. */
const dealtWithMax = 20_000;

/** A failed task. `isMended`: its policy has since ended well for the same target. */
export interface FailedTask {
  readonly outcome: Outcome;
  readonly isMended: boolean;
}

/** The failed tasks in Redis. */
export class FailedTasks {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** All that nobody has dealt with, the newest first. */
  async all(): Promise<readonly FailedTask[]> {
    const [outcomes, dealtWith] = await Promise.all([
      new History(this.#store).newest(dealtWithMax),
      this.#store.redis.zrange(this.#key(), "0", "-1"),
    ]);
    const known = new Set(dealtWith);
    const mended = new Set<string>();
    const found: FailedTask[] = [];
    for (const outcome of outcomes) {
      const what = `${outcome.policy} ${outcome.target}`;
      if (isGood[outcome.status] && outcome.status !== "skipped") mended.add(what);
      if (replayable[outcome.status] === undefined || known.has(outcome.taskId)) continue;
      found.push({ outcome, isMended: mended.has(what) });
    }
    return found;
  }

  /** Notes that somebody deals with a task; false when somebody else has already. */
  async claim(taskId: string): Promise<boolean> {
    const nowMs = await redisTimeMs(this.#store);
    const isFirst = (await this.#store.redis.zadd(this.#key(), "NX", nowMs, taskId)) === 1;
    await this.#store.redis.zremrangebyrank(this.#key(), 0, -dealtWithMax - 1);
    return isFirst;
  }

  /** Takes a claim back: nothing was done. */
  async release(taskIds: readonly string[]): Promise<void> {
    if (taskIds.length > 0) await this.#store.redis.zrem(this.#key(), ...taskIds);
  }

  #key(): string {
    return this.#store.key("tasks-dealt-with");
  }
}
