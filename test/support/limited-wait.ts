// Waits of tests that end by themselves: for what comes to a log, a process or a receiver.

/** Within the limits of tests that wait: one that fails says more than one that is cut off. */
const untilMsMax = 240_000;

/** What waits for the same source, which wakes it whenever something has come. */
export class LimitedWait {
  readonly #last: () => string;
  #waiting: (() => void)[] = [];

  /** `last`: what came last, told where a wait was in vain. */
  constructor(last: () => string) {
    this.#last = last;
  }

  /** Waits until `find` answers something, asked now and at each `wake`; fails after too long. */
  async until<T>(find: () => T | undefined, fits: (...given: never[]) => unknown): Promise<T> {
    let isInVain = false;
    const limit = setTimeout(() => {
      isInVain = true;
      this.wake();
    }, untilMsMax);
    try {
      for (;;) {
        const found = find();
        if (found !== undefined) return found;
        if (isInVain) throw new Error(`waited in vain for ${fits}; last came:\n${this.#last()}`);
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
    } finally {
      clearTimeout(limit);
    }
  }

  /** Something has come. */
  wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
