// Outcomes that an operator may want to do over, except those already dealt with. history.ts lists
// them; `syncline failed` reads and shortens the list. The history itself never changes.
import { isGood, type Outcome } from "../model/outcome.ts";
import { targetOf } from "../model/task.ts";
import { failedKey, History, type OutcomePlace, outcomePlaceMs } from "./history.ts";
import type { Store } from "./redis.ts";
import { asNumber, asOptional, createScript } from "./script.ts";

/** Failed tasks read at once, the newest of all policies. */
export const failedReadMax = 20_000;

/** Policies read at a time, and index places read in one step. */
const policiesAtOnce = 100;
const placesAtOnce = 100;

/** How long a replay that died is known. */
const replayKeptMs = 86_400_000;

const beginReplayScript = createScript("begin-replay", asOptional(asNumber));

/** A failed task. `isMended`: a later task of its policy and target succeeded. */
export interface FailedTask {
  readonly outcome: Outcome;
  readonly isMended: boolean;
}

/** The list of failed tasks in Redis. */
export class FailedTasks {
  readonly #store: Store;
  readonly #history: History;

  constructor(store: Store) {
    this.#store = store;
    this.#history = new History(store);
  }

  /** Returns the failed tasks, newest first; at most `failedReadMax`. */
  async all(): Promise<readonly FailedTask[]> {
    const outcomes = await this.#history.newestFailed(failedReadMax);
    const mendedAtMs = await this.#mendedAtMs(outcomes);
    return outcomes.map((outcome) => {
      const isMended = (mendedAtMs.get(subjectOf(outcome)) ?? 0) > outcomePlaceMs(outcome);
      return { outcome, isMended };
    });
  }

  /** Which of a policy's tasks are on the list: not dealt with yet. */
  async listed(policy: string, taskIds: readonly string[]): Promise<ReadonlySet<string>> {
    if (taskIds.length === 0) return new Set();
    const places = await this.#store.redis.zmscore(failedKey(this.#store, policy), ...taskIds);
    return new Set(taskIds.filter((_, index) => places[index] != null));
  }

  /**
   * Answers the instant that names the task which replays this one: `atMs`, or what a command
   * before had, which died or goes on. Undefined: the task is no longer on the list.
   */
  async beginReplay({ policy, taskId }: Outcome, atMs: number): Promise<number | undefined> {
    const keys = [failedKey(this.#store, policy), this.#store.key("failed-replays", policy)];
    return beginReplayScript(this.#store, keys, [taskId, atMs, replayKeptMs]);
  }

  /** Takes a task off the list; false when another operator has done so. */
  async claim({ policy, taskId }: Outcome): Promise<boolean> {
    const { redis, key } = this.#store;
    const taken = redis.zrem(failedKey(this.#store, policy), taskId);
    return (await Promise.all([taken, redis.hdel(key("failed-replays", policy), taskId)]))[0] === 1;
  }

  /** Returns when each failed target last succeeded, where that came after a failure. */
  async #mendedAtMs(failed: readonly Outcome[]): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    const groups = [...Map.groupBy(failed, ({ policy }) => policy)];
    for (let start = 0; start < groups.length; start += policiesAtOnce) {
      const batch = groups.slice(start, start + policiesAtOnce);
      await Promise.all(batch.map(([policy, group]) => this.#lookFor(policy, group, found)));
    }
    return found;
  }

  /**
   * Reads outcomes of failed targets, newest first, until each has a success or its oldest failure.
   */
  async #lookFor(policy: string, failed: readonly Outcome[], found: Map<string, number>): Promise<void> {
    const ids = new Set(failed.map(({ taskId }) => taskId));
    // Target → its oldest failure: the last one to be set.
    const open = new Map(failed.map((outcome) => [outcome.target, outcomePlaceMs(outcome)]));
    for (let from = 0; open.size > 0; from += placesAtOnce) {
      const places = await this.#history.places(policy, from, placesAtOnce);
      const wanted = places.filter(
        ({ id, atMs }) => !ids.has(id) && atMs > (open.get(targetOf(id)) ?? Number.POSITIVE_INFINITY),
      );
      await this.#take({ policy, wanted, open, found });
      const lastMs = places.at(-1)?.atMs ?? 0;
      for (const [target, failedMs] of open) if (lastMs <= failedMs) open.delete(target);
      if (places.length < placesAtOnce) return;
    }
  }

  async #take({ policy, wanted, open, found }: Taken): Promise<void> {
    const outcomes = await this.#history.outcomes(
      policy,
      wanted.map(({ id }) => id),
    );
    for (const { id, atMs } of wanted) {
      const outcome = outcomes.get(id);
      if (outcome === undefined || !isGood[outcome.status] || outcome.status === "skipped") continue;
      if (open.delete(outcome.target)) found.set(subjectOf(outcome), atMs);
    }
  }
}

interface Taken {
  readonly policy: string;
  readonly wanted: readonly OutcomePlace[];
  readonly open: Map<string, number>;
  readonly found: Map<string, number>;
}

function subjectOf({ policy, target }: Pick<Outcome, "policy" | "target">): string {
  return `${policy} ${target}`;
}
