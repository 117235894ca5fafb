// What the last polls of each policy left behind: how the last one ended, and what the last one that was judged saw. Read by
// work/poll.ts; written by history.ts only, in the step that records a poll's outcome, so that nothing is forgotten or told twice by a
// crash in between. One hash a policy, with 12 bytes an item where its expectation looks at what is new; it goes 400 days after the last poll.
import type { Feed } from "../tasks/feed.ts";
import { feedId } from "../tasks/feed.ts";
import type { Store } from "./redis.ts";

/** How a poll ended: its expectation held, did not, or nobody knows. */
export type PollState = "good" | "bad" | "unknown";

/** What a judged poll saw. `seen`: its items as seen-digests.ts packs them; undefined where nobody asked for what is new. */
export interface PollSight {
  /** Items of the list. */
  readonly count: number;
  /** When it was read, milliseconds UTC by Redis. */
  readonly atMs: number;
  readonly seen: Buffer | undefined;
}

/** What is remembered of a policy's polls of one list. */
export interface PollMemory {
  /** Grows by one with each recorded poll; 0 before the first. */
  readonly revision: number;
  /** How the last one ended; undefined before the first. */
  readonly state: PollState | undefined;
  /** What the last judged one saw; undefined before the first. */
  readonly sight: PollSight | undefined;
}

/** What a poll's outcome changes in the memory. `revision`: what it rests on; `sight`: only when it was judged. */
export interface PollNote {
  readonly revision: number;
  readonly feed: Feed;
  readonly state: PollState;
  readonly sight: PollSight | undefined;
}

const keepForMs = 400 * 86_400_000;

/** Where a policy's memory stands. */
export function pollMemoryKey({ key }: Pick<Store, "key">, policy: string): string {
  return key("poll", policy);
}

/**
 * Lua: `pollMoved(key, from)` says whether another poll was recorded meanwhile, `notePoll(key, from)` keeps the note. `key`: `pollMemoryKey`;
 * `from`: where `pollNoteArgs` begin. Another list than before begins anew.
 */
export const pollMemoryLua = `
local function pollMoved(pollKey, from)
  return (redis.call('HGET', pollKey, 'revision') or '0') ~= ARGV[from]
end
local function notePoll(pollKey, from)
  local of, state, count, at, hasSeen, seen = unpack(ARGV, from + 1)
  if redis.call('HGET', pollKey, 'of') ~= of then redis.call('HDEL', pollKey, 'count', 'atMs', 'seen') end
  redis.call('HINCRBY', pollKey, 'revision', 1)
  redis.call('HSET', pollKey, 'of', of, 'state', state)
  if count ~= '' then
    redis.call('HSET', pollKey, 'count', count, 'atMs', at)
    if hasSeen == '1' then redis.call('HSET', pollKey, 'seen', seen) else redis.call('HDEL', pollKey, 'seen') end
  end
  redis.call('PEXPIRE', pollKey, ${keepForMs})
end`;

/** The seven arguments of `notePoll`. */
export function pollNoteArgs({ revision, feed, state, sight }: PollNote): (string | number | Buffer)[] {
  const seen = sight?.seen;
  const saw = sight === undefined ? ["", ""] : [sight.count, sight.atMs];
  return [revision, feedId(feed), state, ...saw, seen === undefined ? 0 : 1, seen ?? ""];
}

/** The memories in Redis. */
export class PollMemories {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** What is remembered of a policy's polls of this list. */
  async read(policy: string, feed: Feed): Promise<PollMemory> {
    const names = ["revision", "of", "state", "count", "atMs", "seen"];
    const fields = await this.#store.redis.hmgetBuffer(pollMemoryKey(this.#store, policy), ...names);
    const [revision, of, state, count, atMs] = fields.map((field) => field?.toString());
    const isSameList = of === feedId(feed);
    return {
      revision: Number(revision ?? 0),
      state: isSameList ? toState(state) : undefined,
      sight:
        isSameList && count !== undefined
          ? { count: Number(count), atMs: Number(atMs), seen: fields[5] ?? undefined }
          : undefined,
    };
  }

  /** Whether this task has its outcome already. */
  async isOver(taskId: string): Promise<boolean> {
    return (await this.#store.redis.hexists(this.#store.key("outcomes"), taskId)) === 1;
  }
}

function toState(text: string | undefined): PollState | undefined {
  return (["good", "bad", "unknown"] as const).find((state) => state === text);
}
