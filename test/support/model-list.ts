// A list in memory that behaves as badly as real ones: it grows at an end or anywhere, loses items,
// changes between two pages, pages by offset or by key, and forgets its links. With it a book that
// counts how often each item was reported. For tests of the strategies.

import { type ListKnowledge, readKnowledge } from "../../src/feeds/strategy/choose-walk.ts";
import { type ItemStore, LinkExpired, type ListPage, type PagedList } from "../../src/feeds/strategy/walk.ts";
import type { ItemFacts } from "../../src/model/feed.ts";
import type { Novelty } from "../../src/store/known-items.ts";

/** How a model list pages and orders. */
export interface ModelOptions {
  readonly paging: "offset" | "key";
  readonly growsAt: "end" | "front" | "anywhere";
  readonly pageSize: number;
  /** An empty page with a link stands before each page. */
  readonly emptyPages?: boolean;
}

/** Begins a link to an empty page, which leads on to the place behind this mark. */
const emptyMark = "empty-";

/** The process dies here. */
export class Crash extends Error {}

/** A list, its book and the saved knowledge: all that outlives a crash. */
export class ModelList implements PagedList, ItemStore {
  items: string[] = [];
  readonly reports = new Map<string, number>();
  readonly open = new Set<string>();
  /** What the mapping says of these. */
  openFacts: Pick<ItemFacts, "finished" | "unread"> & Partial<ItemFacts> = { finished: false };
  /** Those that were open when a walk last read them. */
  readonly seenOpen = new Set<string>();
  requests = 0;
  /** Called before each answer of the list, and before each write: may change the list or throw. */
  onStep: () => void = () => {};
  readonly #options: ModelOptions;
  readonly #keys = new Map<string, number>();
  readonly #firstSeq = new Map<string, number>();
  #saved = "null";
  #made = 0;
  #epoch = 0;

  constructor(options: ModelOptions) {
    this.#options = options;
  }

  get growsAt(): ModelOptions["growsAt"] {
    return this.#options.growsAt;
  }

  get known(): ListKnowledge {
    return readKnowledge(this.#saved);
  }

  /** Puts new items where the list grows; `at` chooses the place when that is anywhere. */
  insert(count: number, at = 0): void {
    for (let index = 0; index < count; index += 1) {
      this.#made += 1;
      const id = `item-${this.#made}`;
      const { growsAt } = this.#options;
      const place = growsAt === "end" ? this.items.length : growsAt === "front" ? 0 : at % (this.items.length + 1);
      this.#keys.set(id, this.#keyAt(place));
      this.items.splice(place, 0, id);
    }
  }

  remove(at: number): void {
    if (this.items.length > 0) this.items.splice(at % this.items.length, 1);
  }

  /** From now on all links handed out before are unknown. */
  expireLinks(): void {
    this.#epoch += 1;
  }

  async *pages(from: string | undefined): AsyncGenerator<ListPage, void, void> {
    let url: string | undefined = from ?? this.#link("start");
    while (url !== undefined) {
      this.requests += 1;
      this.onStep();
      const page: ListPage = this.#page(url);
      yield page;
      url = page.nextLink;
    }
  }

  async count(): Promise<number | undefined> {
    this.requests += 1;
    this.onStep();
    return this.items.length;
  }

  async seq(): Promise<number> {
    return this.#firstSeq.size;
  }

  takeIn: ItemStore["takeIn"] = async ({ items, sinceSeq, mustKnowFirst = false }, checkpoint) => {
    this.onStep();
    if (mustKnowFirst && !this.#firstSeq.has(items[0]?.id ?? "")) return undefined;
    if (checkpoint !== undefined && items.length > 0) this.#saved = JSON.stringify(checkpoint);
    return this.#take(items, sinceSeq);
  };

  #take(items: readonly ItemFacts[], sinceSeq: number): readonly Novelty[] {
    return items.map(({ id, finished }) => {
      if (finished === true) this.seenOpen.delete(id);
      else this.seenOpen.add(id);
      const seq = this.#firstSeq.get(id);
      if (seq !== undefined) return seq > sinceSeq ? "again" : "known";
      this.#firstSeq.set(id, this.#firstSeq.size + 1);
      this.reports.set(id, (this.reports.get(id) ?? 0) + 1);
      return "new";
    });
  }

  async save(known: ListKnowledge): Promise<void> {
    this.onStep();
    this.#saved = JSON.stringify(known);
  }

  #page(url: string): ListPage {
    const [epoch, at = ""] = url.split("|");
    if (!at.endsWith("start") && epoch !== String(this.#epoch)) throw new LinkExpired();
    if (at.startsWith(emptyMark)) return { items: [], url, nextLink: `${epoch}|${at.slice(emptyMark.length)}` };
    const { paging, pageSize } = this.#options;
    const start =
      at === "start" ? 0 : paging === "offset" ? Number(at) : this.items.findIndex((id) => this.#key(id) > Number(at));
    const items = start < 0 ? [] : this.items.slice(start, start + pageSize);
    const last = items.at(-1);
    const isMore = last !== undefined && start + items.length < this.items.length;
    const next = paging === "offset" ? String(start + pageSize) : String(last === undefined ? 0 : this.#key(last));
    return { items: items.map((id) => this.#facts(id)), url, nextLink: isMore ? this.#link(next) : undefined };
  }

  #link(at: string): string {
    return `${this.#epoch}|${this.#options.emptyPages === true ? emptyMark : ""}${at}`;
  }

  #facts(id: string): ItemFacts {
    return {
      id,
      // Where its id is its content, that is the fingerprint.
      fingerprint: id.replace(/^#/, ""),
      syncJobId: undefined,
      startedAtMs: undefined,
      finished: true,
      succeeded: true,
      label: undefined,
      ...(this.open.has(id) ? this.openFacts : {}),
    };
  }

  #keyAt(place: number): number {
    const before = this.items[place - 1];
    const after = this.items[place];
    if (before === undefined) return after === undefined ? 0 : this.#key(after) - 1;
    return after === undefined ? this.#key(before) + 1 : (this.#key(before) + this.#key(after)) / 2;
  }

  #key(id: string): number {
    return this.#keys.get(id) ?? 0;
  }
}
