// One sync job in a simulation: which run holds it, which go on beside it, and which tasks wait for
// it. Called by simulation.ts.

/** A run that goes on until an instant. */
export interface OngoingRun {
  readonly id: string;
  readonly untilMs: number;
}

/** The lease of one sync job, and the tasks that wait for it. */
export class SyncJobQueue<Waiting> {
  #holder: OngoingRun | undefined;
  /** Runs that started beside the holder of the lease, in the order of their starts. */
  #beside: OngoingRun[] = [];
  readonly #waiting: Waiting[] = [];
  /** The run that will be over last. */
  #latest: OngoingRun | undefined;

  /** The task that holds the lease; undefined when it is free. */
  get holder(): string | undefined {
    return this.#holder?.id;
  }

  wait(waiting: Waiting): void {
    this.#waiting.push(waiting);
  }

  /** Notes a run. Returns another run that still goes on. */
  run(run: OngoingRun, nowMs: number): string | undefined {
    const latest = this.#latest;
    if (latest === undefined || run.untilMs >= latest.untilMs) this.#latest = run;
    return latest !== undefined && latest.untilMs > nowMs ? latest.id : undefined;
  }

  /** Takes the lease, or goes on beside its holder. Returns whether the run has the lease. */
  hold(run: OngoingRun): boolean {
    if (this.#holder === undefined) this.#holder = run;
    else this.#beside.push(run);
    return this.#holder === run;
  }

  /** Ends the lease, and passes it to a run that goes on, if there is one. */
  release(nowMs: number): OngoingRun | undefined {
    this.#beside = this.#beside.filter(({ untilMs }) => untilMs > nowMs);
    this.#holder = this.#beside.shift();
    return this.#holder;
  }

  /** Removes and returns the oldest waiting task. */
  nextWaiting(): Waiting | undefined {
    return this.#waiting.shift();
  }
}
