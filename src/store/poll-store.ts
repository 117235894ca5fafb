// How each policy's last poll ended, and what the last judged one observed. history.ts writes it
// with the poll's outcome, so that a crash loses or repeats no finding.
import { type Feed, feedId } from "../model/feed.ts";
import type { Task } from "../model/task.ts";
import type { Store } from "./redis.ts";

/** How a poll ended: its expectation held, did not hold, or is unknown. */
export type PollState = "good" | "bad" | "unknown";

/** A judged poll's observation. `seen`: digests of its items, where new items are asked for. */
export interface PollObservation {
  /** Items of the list. */
  readonly count: number;
  /** When its reading began, milliseconds UTC by Redis. */
  readonly atMs: number;
  readonly seen: Buffer | undefined;
}

/** The memory of a policy's polls of one list. */
export interface PollMemory {
  /** Grows by one with each recorded poll; 0 before the first one. */
  readonly revision: number;
  /** How the last poll ended; undefined before the first one. */
  readonly state: PollState | undefined;
  /** The observation of the last judged poll; undefined before the first one. */
  readonly observation: PollObservation | undefined;
}

/** What a poll's outcome changes. `revision`: its basis. `observation`: if it was judged. */
export interface PollNote {
  readonly revision: number;
  readonly feed: Feed;
  readonly state: PollState;
  readonly observation: PollObservation | undefined;
}

/** Key of a policy's poll memory. */
export function pollMemoryKey({ key }: Pick<Store, "key">, policy: string): string {
  return key("poll", policy);
}

/** The arguments of a poll, as lua/outcome/record.lua takes them. */
export function pollNoteArgs({ revision, feed, state, observation }: PollNote): (string | number | Buffer)[] {
  const seen = observation?.seen;
  const saw = observation === undefined ? ["", ""] : [observation.count, observation.atMs];
  return [revision, feedId(feed), state, ...saw, seen === undefined ? 0 : 1, seen ?? ""];
}

/** The poll memories in Redis. */
export class PollStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Reads the memory of a policy's polls of this list. */
  async read(policy: string, feed: Feed): Promise<PollMemory> {
    const names = ["revision", "of", "state", "count", "atMs", "seen"];
    const fields = await this.#store.redis.hmgetBuffer(pollMemoryKey(this.#store, policy), ...names);
    const [revision, of, state, count, atMs] = fields.map((field) => field?.toString());
    const isSameList = of === feedId(feed);
    return {
      revision: Number(revision ?? 0),
      state: isSameList ? toState(state) : undefined,
      observation:
        isSameList && count !== undefined
          ? { count: Number(count), atMs: Number(atMs), seen: fields[5] ?? undefined }
          : undefined,
    };
  }

  /** When a poll last found this list as its policy expects; undefined: none did. */
  async lastMetMs(policy: string, feed: Feed): Promise<number | undefined> {
    const [of, metMs] = await this.#store.redis.hmget(pollMemoryKey(this.#store, policy), "of", "metMs");
    return of === feedId(feed) && metMs ? Number(metMs) : undefined;
  }

  /** Tells whether this task has an outcome. */
  async isOver({ policy, id }: Pick<Task, "policy" | "id">): Promise<boolean> {
    return (await this.#store.redis.hexists(this.#store.key("outcomes", policy), id)) === 1;
  }
}

function toState(text: string | undefined): PollState | undefined {
  return (["good", "bad", "unknown"] as const).find((state) => state === text);
}
