// The load in a simulation: the minutes with most starts, and how many runs go on at once. Fed by
// `simulate` and `plan` in the order of time, so it keeps only what goes on and the busiest
// minutes.
import { showInstant } from "../core/instant.ts";
import { MinHeap } from "../core/min-heap.ts";
import type { SimulationEvent } from "./events.ts";

const minuteMs = 60_000;
const policiesNamedMax = 5;

/** One busy minute of UTC. `policies`: those with the most starts in it, five at most. */
export interface BusyMinute {
  readonly fromMs: number;
  readonly starts: number;
  readonly policiesCount: number;
  readonly policies: readonly { readonly policy: string; readonly starts: number }[];
}

/** Keeps the busiest minutes; the earlier one first where two are equal. */
export class MinuteMeter {
  readonly #keep: number;
  #best: BusyMinute[] = [];
  #minute = Number.NEGATIVE_INFINITY;
  /** The policies of its starts, as they come: they are counted if the minute is kept. */
  #started: string[] = [];

  /** `keep`: how many minutes are remembered. */
  constructor(keep: number) {
    this.#keep = keep;
  }

  /** Notes a start. Instants never go back. */
  add(atMs: number, policy: string): void {
    const minute = Math.floor(atMs / minuteMs);
    if (minute !== this.#minute) this.#close();
    this.#minute = minute;
    this.#started.push(policy);
  }

  /** The busiest minutes so far, busiest first. */
  busiest(): readonly BusyMinute[] {
    this.#close();
    return this.#best;
  }

  #close(): void {
    const started = this.#started;
    const starts = started.length;
    if (starts === 0) return;
    this.#started = [];
    if (this.#best.length >= this.#keep && starts <= (this.#best.at(-1)?.starts ?? 0)) return;
    const byPolicy = Map.groupBy(started, (policy) => policy);
    const policies = [...byPolicy].map(([policy, its]) => ({ policy, starts: its.length }));
    const named = policies.sort((a, b) => b.starts - a.starts).slice(0, policiesNamedMax);
    const minute = { fromMs: this.#minute * minuteMs, starts, policiesCount: policies.length, policies: named };
    this.#best = [...this.#best, minute].sort((a, b) => b.starts - a.starts).slice(0, this.#keep);
  }
}

/** The load of one service, or of all. `atMs`: when the most runs were first reached. */
export interface Load {
  readonly starts: number;
  readonly busiest: readonly BusyMinute[];
  readonly runsAtOnce: { readonly runs: number; readonly atMs: number | undefined };
}

/** Measures one load. */
export class LoadMeter {
  readonly #minutes: MinuteMeter;
  readonly #ends = new MinHeap<undefined>();
  #starts = 0;
  #running = 0;
  #most: Load["runsAtOnce"] = { runs: 0, atMs: undefined };

  /** `minutesMax`: how many busy minutes are kept. */
  constructor(minutesMax: number) {
    this.#minutes = new MinuteMeter(minutesMax);
  }

  add(event: SimulationEvent): void {
    if (event.event !== "started") return;
    const { atMs, endsAtMs, task } = event;
    this.#starts += 1;
    this.#minutes.add(atMs, task.policy);
    if (task.kind !== "run") return;
    for (; (this.#ends.leastRank ?? Number.POSITIVE_INFINITY) <= atMs; this.#running -= 1) this.#ends.pop();
    this.#ends.push(endsAtMs, undefined);
    this.#running += 1;
    if (this.#running > this.#most.runs) this.#most = { runs: this.#running, atMs };
  }

  load(): Load {
    return { starts: this.#starts, busiest: this.#minutes.busiest(), runsAtOnce: this.#most };
  }
}

/** A busy minute in three cells: the number of starts, the minute, and the policies. */
export function showMinute({ fromMs, starts, policies, policiesCount }: BusyMinute): [string, string, string] {
  const named = policies.map((one) => (one.starts === 1 ? one.policy : `${one.policy} (${one.starts})`));
  const more = policiesCount > policies.length ? [`${policiesCount - policies.length} more`] : [];
  return [String(starts), showInstant(fromMs).replace(":00Z", "Z"), [...named, ...more].join(", ")];
}

/** A busy minute for machines. */
export function minuteToJson({ fromMs, ...minute }: BusyMinute): object {
  return { from: new Date(fromMs).toISOString(), ...minute };
}
