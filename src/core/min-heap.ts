// What comes first: a binary heap that compares the rank, then the order of arrival, and the lowest
// few of many items.

interface Node<Item> {
  readonly rank: number;
  readonly arrival: number;
  readonly item: Item;
  /** What arrived right after it with the same rank: it has no place of its own before. */
  next: Node<Item> | undefined;
}

/** Items by rank; equal ranks in the order of arrival. Those in a row cost least. */
export class MinHeap<Item> {
  readonly #nodes: Node<Item>[] = [];
  #arrivals = 0;
  /** What arrived last; undefined: it is taken. */
  #newest: Node<Item> | undefined;

  /** The smallest rank; undefined when empty. */
  get leastRank(): number | undefined {
    return this.#nodes[0]?.rank;
  }

  push(rank: number, item: Item): void {
    const node: Node<Item> = { rank, arrival: this.#arrivals, item, next: undefined };
    const newest = this.#newest;
    this.#arrivals += 1;
    this.#newest = node;
    if (newest?.rank === rank) {
      newest.next = node;
      return;
    }
    let index = this.#nodes.length;
    this.#nodes.push(node);
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = this.#nodes[above];
      if (parent === undefined || !isLess(node, parent)) break;
      this.#nodes[index] = parent;
      index = above;
    }
    this.#nodes[index] = node;
  }

  /** Removes and returns the item of the smallest rank; undefined when empty. */
  pop(): Item | undefined {
    const first = this.#nodes[0];
    if (first === undefined) return undefined;
    if (first === this.#newest) this.#newest = undefined;
    const { next } = first;
    if (next === undefined) {
      const last = this.#nodes.pop();
      if (last !== undefined && last !== first) this.#sink(last);
    } else {
      this.#nodes[0] = next;
      // What is taken keeps nothing alive, should it have grown old.
      first.next = undefined;
    }
    return first.item;
  }

  #sink(node: Node<Item>): void {
    let index = 0;
    for (;;) {
      const left = this.#nodes[2 * index + 1];
      const right = this.#nodes[2 * index + 2];
      const isRight = left !== undefined && right !== undefined && isLess(right, left);
      const child = isRight ? right : left;
      if (child === undefined || !isLess(child, node)) break;
      this.#nodes[index] = child;
      index = 2 * index + (isRight ? 2 : 1);
    }
    this.#nodes[index] = node;
  }
}

function isLess<Item>(a: Node<Item>, b: Node<Item>): boolean {
  return a.rank < b.rank || (a.rank === b.rank && a.arrival < b.arrival);
}

/** The items with the lowest places, so many at most, the lowest first; few of many. */
export function lowest<Item>(items: Iterable<Item>, count: number, placeOf: (item: Item) => number): Item[] {
  const found: { readonly item: Item; readonly place: number }[] = [];
  for (const item of items) {
    const place = placeOf(item);
    if (found.length === count && place >= (found.at(-1)?.place ?? 0)) continue;
    found.splice(found.findLastIndex((one) => one.place <= place) + 1, 0, { item, place });
    if (found.length > count) found.pop();
  }
  return found.map(({ item }) => item);
}
