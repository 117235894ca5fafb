// Work on many items: in batches, as many tasks send to Redis at the same time, or a few at a time;
// and work that many want at once.

/** Works on items in their order, a few at a time; begins none any more after an abort. */
export async function fewAtATime<T>(
  items: Iterable<T>,
  atOnce: number,
  work: (item: T, index: number) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  // All workers take from the same iterator.
  const left = [...items].entries();
  const workOff = async () => {
    for (const [index, item] of left) if (signal?.aborted !== true) await work(item, index);
  };
  await Promise.all(Array.from({ length: atOnce }, workOff));
}

/** Shares work among all who ask for it while it goes on. */
export function shared<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => {
    running ??= work().finally(() => {
      running = undefined;
    });
    return running;
  };
}

/**
 * Sends items in batches, one batch after the other: the first item goes at once and alone; items
 * added during a batch go together in the next one.
 */
export class Batcher<T> {
  readonly #send: (items: readonly T[]) => Promise<unknown>;
  #waiting: T[] = [];
  #batch: Promise<unknown> | undefined;
  #next: Promise<unknown> | undefined;

  constructor(send: (items: readonly T[]) => Promise<unknown>) {
    this.#send = send;
  }

  /** Adds an item to the next batch. Settles as that batch does. */
  add(item: T): Promise<unknown> {
    this.#waiting.push(item);
    if (this.#next !== undefined) return this.#next;
    if (this.#batch === undefined) return this.#go();
    const go = () => this.#go();
    this.#next = this.#batch.then(go, go);
    return this.#next;
  }

  #go(): Promise<unknown> {
    const items = this.#waiting;
    this.#waiting = [];
    this.#next = undefined;
    const batch = this.#send(items).finally(() => {
      if (this.#batch === batch) this.#batch = undefined;
    });
    this.#batch = batch;
    return batch;
  }
}
