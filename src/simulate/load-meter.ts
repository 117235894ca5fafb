// The load of each service in a simulation: its busiest minutes, and how many runs go on at once.
// `simulate` and `plan` feed it with events in the order of time.
import { MinHeap } from "../core/min-heap.ts";
import type { SimulationEvent } from "./events.ts";
import { type BusyMinute, MinuteMeter } from "./minute-meter.ts";

/**
 * The load of one service, or of all. `runsAtOnce`: the most runs at the same time, and when that
 * is first reached.
 */
export interface Load {
  readonly starts: number;
  readonly busiest: readonly BusyMinute[];
  readonly runsAtOnce: { readonly runs: number; readonly atMs: number | undefined };
}

class Meter {
  starts = 0;
  readonly #minutes: MinuteMeter;
  readonly #ends = new MinHeap<undefined>();
  #running = 0;
  #most = { runs: 0, atMs: undefined as number | undefined };

  constructor(minutesMax: number) {
    this.#minutes = new MinuteMeter(minutesMax);
  }

  add({ atMs, endsAtMs, task }: Extract<SimulationEvent, { readonly event: "started" }>): void {
    this.starts += 1;
    this.#minutes.add(atMs, task.policy);
    if (task.kind !== "run") return;
    while ((this.#ends.leastRank ?? Number.POSITIVE_INFINITY) <= atMs) {
      this.#ends.pop();
      this.#running -= 1;
    }
    this.#ends.push(endsAtMs, undefined);
    this.#running += 1;
    if (this.#running > this.#most.runs) this.#most = { runs: this.#running, atMs };
  }

  load(): Load {
    return { starts: this.starts, busiest: this.#minutes.busiest(), runsAtOnce: this.#most };
  }
}

/** Measures the load of all services together and of each. */
export class LoadMeter {
  readonly #all: Meter;
  readonly #byService = new Map<string, Meter>();
  readonly #minutesMax: number;

  /** `minutesMax`: how many busy minutes are kept, of all and of each service. */
  constructor(minutesMax: number) {
    this.#minutesMax = minutesMax;
    this.#all = new Meter(minutesMax);
  }

  add(event: SimulationEvent): void {
    if (event.event !== "started") return;
    const { service } = event.task;
    const meter = this.#byService.get(service) ?? new Meter(this.#minutesMax);
    this.#byService.set(service, meter);
    this.#all.add(event);
    meter.add(event);
  }

  /** The loads. Ask once, at the end. */
  loads(): { readonly all: Load; readonly byService: ReadonlyMap<string, Load> } {
    return {
      all: this.#all.load(),
      byService: new Map([...this.#byService].map(([service, meter]) => [service, meter.load()])),
    };
  }
}
