// Outcomes that an operator may want to do over, except those already dealt with. history.ts lists
// them; `syncline failed` reads and shortens the list. The history itself never changes.
import { isGood, type Outcome } from "../model/outcome.ts";
import { targetOf } from "../model/task-id.ts";
import { failedKey, History, type OutcomePlace, outcomePlaceMs } from "./history.ts";
import type { Store } from "./redis.ts";

/** Failed tasks read at once, the newest of all policies. */
export const failedReadMax = 20_000;

/** Policies read at a time, and index places read in one step. */
const policiesAtOnce = 100;
const placesAtOnce = 100;

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

  /** Claims a failed task for an operator; false when another operator has claimed it. */
  async claim({ policy, taskId }: Outcome): Promise<boolean> {
    return (await this.#store.redis.zrem(failedKey(this.#store, policy), taskId)) === 1;
  }

  /** Takes a claim back after nothing was done. */
  async release(outcome: Outcome): Promise<void> {
    await this.#store.redis.zadd(failedKey(this.#store, outcome.policy), outcomePlaceMs(outcome), outcome.taskId);
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
