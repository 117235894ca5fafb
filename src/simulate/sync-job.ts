// One sync job in a simulation: who holds it, who waits, what runs. The rules are those of work/run.ts over store/leases.ts:
//
//   skip    a held sync job: nothing is started            queue   waits until it is free, oldest first, or until its start-by time
//           Any number wait, as there: `catchUp: all` relies on it. There nobody keeps the order; here it is that of arrival.
//   allow   starts anyway, and takes the lease as soon as it is free, since a run that is followed prolongs it
//
// Called by simulation.ts; knows no time but the instants it is given.

/** A run that holds a sync job, or would like to. */
export interface Holder {
  readonly id: string;
  readonly untilMs: number;
}

/** One sync job. `Waiting` is whatever the simulation needs to go on with one that waited. */
export class SyncJob<Waiting> {
  #holder: Holder | undefined;
  /** Runs that started although another one held the lease, in the order of their starts. */
  #followers: Holder[] = [];
  readonly #waiting: Waiting[] = [];
  /** The run that will be over last. */
  #latest: Holder | undefined;

  /** Whose lease holds now; undefined when it is free. */
  get holder(): string | undefined {
    return this.#holder?.id;
  }

  wait(waiting: Waiting): void {
    this.#waiting.push(waiting);
  }

  /** Notes a run, and answers which other one is still going on. */
  run(run: Holder, nowMs: number): string | undefined {
    const other = this.#latest !== undefined && this.#latest.untilMs > nowMs ? this.#latest.id : undefined;
    if (this.#latest === undefined || run.untilMs >= this.#latest.untilMs) this.#latest = run;
    return other;
  }

  /** Takes the lease, or gets in line as a run that goes on; answers whether it holds now. */
  hold(run: Holder): boolean {
    if (this.#holder === undefined) this.#holder = run;
    else this.#followers.push(run);
    return this.#holder === run;
  }

  /** Ends the lease. The next holder is a run that goes on, if there is one. */
  release(nowMs: number): Holder | undefined {
    this.#followers = this.#followers.filter(({ untilMs }) => untilMs > nowMs);
    this.#holder = this.#followers.shift();
    return this.#holder;
  }

  /** Takes the oldest of those who wait out. */
  nextWaiting(): Waiting | undefined {
    return this.#waiting.shift();
  }
}
