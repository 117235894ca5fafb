// What this process knows already of one feed, so that ten thousand waiting runs do not each read the same items from Redis
// again and again: only changes are read. Held by feed-book.ts; never the truth, which is in Redis.
import type { Store } from "./redis.ts";
import { type SeenItem, toSeenItem } from "./seen-item.ts";

/** The keys of a feed that are read: `items`, a hash of facts by id, and `order`, the ids by the number of their last change. */
export interface MirrorKeys {
  readonly items: string;
  readonly order: string;
}

const portion = 1_000;
/** Twice what the feed book remembers: beyond it a mirror holds more forgotten items than others. */
const itemsMax = 200_000;

/** The items of one feed that were discovered after some number (`floor`), in their newest form. */
export class FeedMirror {
  readonly floor: number;
  readonly #store: Store;
  readonly #keys: MirrorKeys;
  readonly #items = new Map<string, SeenItem>();
  /** In the order of discovery; undefined when something has changed. */
  #sorted: SeenItem[] | undefined;
  #last: { readonly seq: number; readonly id: string } | undefined;
  #reading: Promise<boolean> | undefined;
  #next: Promise<boolean> | undefined;

  constructor(store: Store, keys: MirrorKeys, floor: number) {
    this.#store = store;
    this.#keys = keys;
    this.floor = floor;
  }

  /**
   * The items discovered after this number, which is not below the floor, as Redis holds them at the time of the call or later.
   * undefined when the mirror is of no use any more: Redis holds another history, or too much was forgotten.
   */
  async since(seq: number): Promise<SeenItem[] | undefined> {
    if (!(await this.#refresh())) return undefined;
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

  /** Reads what changed. Whoever comes while somebody reads waits for the next reading: this one may have looked too early. */
  #refresh(): Promise<boolean> {
    if (this.#reading === undefined) {
      this.#reading = this.#read().finally(() => {
        this.#reading = undefined;
      });
      return this.#reading;
    }
    const again = () => {
      this.#next = undefined;
      return this.#refresh();
    };
    this.#next ??= this.#reading.then(again, again);
    return this.#next;
  }

  async #read(): Promise<boolean> {
    const known = this.#last;
    if (known !== undefined) {
      if (this.#items.size > itemsMax) return false;
      // Numbers only grow. Where the last one known went back, Redis lost what it held and began anew.
      const score = await this.#store.redis.zscore(this.#keys.order, known.id);
      if (score === null || Number(score) < known.seq) return false;
    }
    for (let from = known?.seq ?? this.floor, round = 0; round < itemsMax / portion; round += 1) {
      const changed = await readChanges(this.#store.redis, this.#keys, { seq: from, most: portion });
      for (const item of changed) this.#take(item);
      const last = changed.at(-1);
      if (last === undefined || changed.length < portion) break;
      from = last.seq;
    }
    return true;
  }

  #take(item: SeenItem): void {
    this.#last = { seq: item.seq, id: item.id };
    if (item.firstSeq <= this.floor) return;
    this.#items.set(item.id, item);
    this.#sorted = undefined;
  }
}

/** The next changes after a number, in order: of a feed's items and their order, at most so many. */
export async function readChanges(
  redis: Store["redis"],
  keys: { readonly items: string; readonly order: string },
  { seq, most }: { readonly seq: number; readonly most: number },
): Promise<SeenItem[]> {
  const changed = await redis.zrange(keys.order, `(${seq}`, "+inf", "BYSCORE", "LIMIT", 0, most, "WITHSCORES");
  const ids = changed.filter((_, index) => index % 2 === 0);
  if (ids.length === 0) return [];
  const texts = await redis.hmget(keys.items, ...ids);
  return texts.map((text, index) => toSeenItem(ids[index] ?? "", Number(changed[index * 2 + 1]), text ?? ""));
}
