// Gathers what comes while something is under way: the first item is sent at once and alone, all that come meanwhile go together as
// the next. For notes that many tasks send to Redis at nearly the same time (store/service-gate.ts, outcome/recorder.ts).

/** A way that takes several items at a time, one portion after the other. */
export class Gathered<T> {
  readonly #send: (items: readonly T[]) => Promise<unknown>;
  #waiting: T[] = [];
  #portion: Promise<unknown> | undefined;
  #next: Promise<unknown> | undefined;

  constructor(send: (items: readonly T[]) => Promise<unknown>) {
    this.#send = send;
  }

  /** Sends an item with whatever else is waiting. Settles as the portion does that it goes with. */
  add(item: T): Promise<unknown> {
    this.#waiting.push(item);
    if (this.#next !== undefined) return this.#next;
    if (this.#portion === undefined) return this.#go();
    const go = () => this.#go();
    this.#next = this.#portion.then(go, go);
    return this.#next;
  }

  #go(): Promise<unknown> {
    const items = this.#waiting;
    this.#waiting = [];
    this.#next = undefined;
    const portion = this.#send(items).finally(() => {
      if (this.#portion === portion) this.#portion = undefined;
    });
    this.#portion = portion;
    return portion;
  }
}
