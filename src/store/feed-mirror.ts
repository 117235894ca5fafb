// A copy of one feed in this process. It reads only the changes from Redis, once for all the runs
// that wait.
import { Batcher } from "../core/batcher.ts";
import type { ItemFacts } from "../model/feed.ts";
import type { Store } from "./redis.ts";

/**
 * `items`: facts by id. `order`: ids by the number of their last change. `status`: says how often
 * items got other facts where they stand.
 */
export interface MirrorKeys {
  readonly status: string;
  readonly items: string;
  readonly order: string;
}

type ItemKeys = Omit<MirrorKeys, "status">;

const batch = 1_000;
/** Twice the items that Redis holds: a larger mirror would mostly hold dropped items. */
const itemsMax = 200_000;

/** The items of one feed that were discovered after `floor`, in their newest form. */
export class FeedMirror {
  readonly floor: number;
  readonly #store: Store;
  readonly #keys: MirrorKeys;
  readonly #items = new Map<string, SeenItem>();
  /** In the order of discovery; undefined after a change. */
  #sorted: SeenItem[] | undefined;
  #last: { readonly seq: number; readonly id: string } | undefined;
  #rewrites: string | null = null;
  /** A caller that comes during a read waits for the next one: this one may be too early for it. */
  readonly #reads = new Batcher(() => this.#read());

  constructor(store: Store, keys: MirrorKeys, floor: number) {
    this.#store = store;
    this.#keys = keys;
    this.floor = floor;
  }

  /**
   * Returns the items discovered after this number (not below the floor); undefined when Redis has
   * another history or has dropped too much.
   */
  async since(seq: number): Promise<SeenItem[] | undefined> {
    if ((await this.#reads.add(undefined)) !== true) return undefined;
    this.#sorted ??= [...this.#items.values()].sort((a, b) => a.firstSeq - b.firstSeq);
    const sorted = this.#sorted;
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((sorted[middle]?.firstSeq ?? 0) > seq) high = middle;
      else low = middle + 1;
    }
    return sorted.slice(low);
  }

  async #read(): Promise<boolean> {
    const known = this.#last;
    const { redis } = this.#store;
    const [rewrites, score] = await Promise.all([
      redis.hget(this.#keys.status, "rewrites"),
      known === undefined ? null : redis.zscore(this.#keys.order, known.id),
    ]);
    if (known !== undefined) {
      if (this.#items.size > itemsMax) return false;
      // Numbers only grow. Where the last known one went back, Redis lost its data and began anew.
      if (score === null || Number(score) < known.seq) return false;
    }
    const knownSeq = rewrites === this.#rewrites ? known?.seq : undefined;
    for (let from = knownSeq ?? this.floor, round = 0; round < itemsMax / batch; round += 1) {
      const changed = await readChanges(redis, this.#keys, { seq: from, most: batch });
      for (const item of changed) this.#take(item);
      const last = changed.at(-1);
      if (last === undefined || changed.length < batch) break;
      from = last.seq;
    }
    this.#rewrites = rewrites;
    return true;
  }

  #take(item: SeenItem): void {
    this.#last = { seq: item.seq, id: item.id };
    if (item.firstSeq <= this.floor) return;
    this.#items.set(item.id, item);
    this.#sorted = undefined;
  }
}

/** Reads the next changes after a number, in order; at most `most`. */
export async function readChanges(
  redis: Store["redis"],
  keys: ItemKeys,
  { seq, most }: { readonly seq: number; readonly most: number },
): Promise<SeenItem[]> {
  const changed = await redis.zrange(keys.order, `(${seq}`, "+inf", "BYSCORE", "LIMIT", 0, most, "WITHSCORES");
  return readItems(redis, keys, changed);
}

/** Reads the last changes, newest first; at most `most`. */
export async function readNewest(redis: Store["redis"], keys: ItemKeys, most: number): Promise<SeenItem[]> {
  return readItems(redis, keys, await redis.zrevrange(keys.order, 0, most - 1, "WITHSCORES"));
}

async function readItems(redis: Store["redis"], keys: ItemKeys, changed: readonly string[]): Promise<SeenItem[]> {
  const ids = changed.filter((_, index) => index % 2 === 0);
  if (ids.length === 0) return [];
  const texts = await redis.hmget(keys.items, ...ids);
  return texts.map((text, index) => toSeenItem(ids[index] ?? "", Number(changed[index * 2 + 1]), text ?? ""));
}

/**
 * An item. `firstSeq`: its discovery, never changes; `seq`: its last change. `fingerprint`: of its
 * content and facts.
 */
export interface SeenItem extends ItemFacts {
  readonly firstSeq: number;
  readonly seq: number;
  /** When a walk discovered it, by Redis; undefined where Redis had dropped its facts meanwhile. */
  readonly seenAtMs: number | undefined;
}

/** Reads `FIRST_SEQ STAMP@SEEN_AT JSON`. A dropped item has number 0. */
function toSeenItem(id: string, seq: number, text: string): SeenItem {
  const [first = "0", stamp = ""] = text.split(" ", 2);
  const [fingerprint = "", seenAt = ""] = stamp.split("@", 2);
  const facts = JSON.parse(text.slice(first.length + stamp.length + 2) || "{}");
  return {
    syncJobId: undefined,
    startedAtMs: undefined,
    finished: undefined,
    succeeded: undefined,
    label: undefined,
    ...facts,
    id,
    fingerprint,
    seq,
    firstSeq: Number(first),
    seenAtMs: seenAt === "" ? undefined : Number(seenAt),
  };
}
