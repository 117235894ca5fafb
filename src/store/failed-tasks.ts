// Outcomes that an operator may want to do over, except those already dealt with. history.ts lists
// them; `syncline failed` and the pages read and shorten the list. The history never changes.
import { isGood, type Outcome } from "../model/outcome.ts";
import { parseTaskId, runByHand, targetOf } from "../model/task.ts";
import { failedKey, History, outcomePlaceMs } from "./history.ts";
import type { PolicyState, ReadStates } from "./policy-states.ts";
import type { Store } from "./redis.ts";
import { asNumber, asOptional, batchesOf, createScript, pairsOf } from "./script.ts";

/** Failed tasks read at once, the newest of all policies. */
export const failedMax = 20_000;

/** Places of the list read in one step, policies read at a time, and their places in one step. */
const [listedAtOnce, policiesAtOnce, placesAtOnce] = [1_000, 100, 100];

/** How long a replay that died is known. */
const replayKeptMs = 86_400_000;

const beginReplayScript = createScript("begin-replay", asOptional(asNumber));

/** A failed task. `isMended`: a later task of its policy and target succeeded. */
export interface FailedTask {
  readonly outcome: Outcome;
  readonly isMended: boolean;
}

/** What was read of the failed tasks of a policy, and its state at that time. */
interface KnownPolicy {
  readonly state: PolicyState | undefined;
  /** Undefined: its outcome is kept no longer. */
  readonly tasks: ReadonlyMap<string, FailedTask | undefined>;
}

/** The list of failed tasks in Redis. */
export class FailedTasks {
  readonly #store: Store;
  readonly #history: History;
  readonly #readStates: ReadStates;
  #known: ReadonlyMap<string, KnownPolicy> = new Map();

  /**
   * `readStates` remembers states (`rememberStates`): then `all`, asked again, reads only the
   * policies that have changed. Without it, take a new list for each look.
   */
  constructor(store: Store, readStates: ReadStates = async () => new Map()) {
    this.#store = store;
    this.#history = new History(store);
    this.#readStates = readStates;
  }

  /** Returns the `failedMax` newest failed tasks, newest first, then those named of the others. */
  async all(named: readonly string[] = []): Promise<readonly FailedTask[]> {
    const ids = new Set([...(await this.#listed()), ...(await this.listed(named))]);
    const placed = [...ids].map((id) => ({ id, policy: parseTaskId(id)?.policy ?? "" }));
    const byPolicy = [...Map.groupBy(placed, ({ policy }) => policy)];
    // Read before the outcomes: what ends in between changes the state again.
    const states = await this.#readStates(byPolicy.map(([policy]) => policy));
    const known = new Map<string, KnownPolicy>();
    for (const batch of batchesOf(byPolicy, policiesAtOnce)) {
      const read = async ([policy, group]: (typeof batch)[number]) => {
        const [before, state] = [this.#known.get(policy), states.get(policy)];
        const isSame = before?.state === state && group.every(({ id }) => before?.tasks.has(id));
        const ids = group.map(({ id }) => id);
        known.set(policy, isSame && before ? before : { state, tasks: await this.#read(policy, ids) });
      };
      await Promise.all(batch.map(read));
    }
    this.#known = known;
    return placed.flatMap(({ policy, id }) => known.get(policy)?.tasks.get(id) ?? []);
  }

  /** Whether `all` leaves older ones out. */
  async isCut(): Promise<boolean> {
    return (await this.#store.redis.zcard(failedKey(this.#store))) > failedMax;
  }

  /** Which of these tasks are on the list: not dealt with yet. */
  async listed(taskIds: readonly string[]): Promise<ReadonlySet<string>> {
    if (taskIds.length === 0) return new Set();
    const places = await this.#store.redis.zmscore(failedKey(this.#store), ...taskIds);
    return new Set(taskIds.filter((_, index) => places[index] != null));
  }

  /**
   * Answers the instant that names the task which replays this one: `atMs`, or what a command
   * before had, which died or goes on. Undefined: the task is no longer on the list.
   */
  async beginReplay({ policy, taskId }: Outcome, atMs: number): Promise<number | undefined> {
    const keys = [failedKey(this.#store), this.#store.key("failed-replays", policy)];
    return beginReplayScript(this.#store, keys, [taskId, atMs, replayKeptMs]);
  }

  /** Takes a task off the list; false when another operator has done so. */
  async takeOff({ policy, taskId }: Outcome): Promise<boolean> {
    const { redis, key } = this.#store;
    const taken = redis.zrem(failedKey(this.#store), taskId);
    return (await Promise.all([taken, redis.hdel(key("failed-replays", policy), taskId)]))[0] === 1;
  }

  /** The ids on the list, newest first. It may change between two steps: none is left out. */
  async #listed(): Promise<readonly string[]> {
    const found = new Set<string>();
    const read = async (from: string, to: string, most: number) => {
      const range = [failedKey(this.#store), from, to, "BYSCORE", "REV", "LIMIT", 0, most, "WITHSCORES"] as const;
      const page = pairsOf(await this.#store.redis.zrange(...range));
      for (const [id] of page) found.add(id);
      return page;
    };
    for (let from = "+inf"; found.size < failedMax; ) {
      const page = await read(from, "-inf", listedAtOnce);
      const [, lastMs = ""] = page[listedAtOnce - 1] ?? [];
      if (lastMs === "") break;
      // The page may end amid those of one instant.
      await read(lastMs, lastMs, failedMax);
      from = `(${lastMs}`;
    }
    return [...found].slice(0, failedMax);
  }

  /** Reads failed tasks of a policy and which of their targets have succeeded since. */
  async #read(policy: string, ids: readonly string[]): Promise<KnownPolicy["tasks"]> {
    const outcomes = await this.#history.outcomes(policy, ids);
    const goodMs = await this.#lookForGood(policy, [...outcomes.values()]);
    const toTask = (outcome: Outcome | undefined) =>
      outcome && { outcome, isMended: (goodMs.get(placeOf(outcome)) ?? 0) > outcomePlaceMs(outcome) };
    return new Map(ids.map((id) => [id, toTask(outcomes.get(id))]));
  }

  /**
   * Reads outcomes of failed targets, newest first, until each has a success or its oldest failure.
   * Returns when each place last succeeded.
   */
  async #lookForGood(policy: string, failed: readonly Outcome[]): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    const ids = new Set(failed.map(({ taskId }) => taskId));
    // Place → its oldest failure: the last one to be set. An id tells the target alone.
    const open = new Map(failed.map((outcome) => [placeOf(outcome), outcomePlaceMs(outcome)]));
    const oldest = new Map(failed.map((outcome) => [outcome.target, outcomePlaceMs(outcome)]));
    for (let from = 0; open.size > 0; from += placesAtOnce) {
      const places = await this.#history.places(policy, from, placesAtOnce);
      const wanted = places.filter(
        ({ id, atMs }) => !ids.has(id) && atMs > (oldest.get(targetOf(id)) ?? Number.POSITIVE_INFINITY),
      );
      const outcomes = await this.#history.outcomes(
        policy,
        wanted.map(({ id }) => id),
      );
      for (const { id, atMs } of wanted) {
        const outcome = outcomes.get(id);
        if (outcome === undefined || !isGood[outcome.status] || outcome.status === "skipped") continue;
        if (open.delete(placeOf(outcome))) found.set(placeOf(outcome), atMs);
        if (policy !== runByHand) oldest.delete(outcome.target);
      }
      const lastMs = places.at(-1)?.atMs ?? 0;
      for (const [place, failedMs] of open) if (lastMs <= failedMs) open.delete(place);
      if (places.length < placesAtOnce) break;
    }
    return found;
  }
}

/** What a task was done to. Of a run by hand, service and repository are part of it. */
function placeOf({ policy, service, repository, target }: Outcome): string {
  return policy === runByHand ? JSON.stringify([service, repository, target]) : target;
}
