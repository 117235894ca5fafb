// Decides which fault hits a request. Counts the matching requests of each fault; chance comes from
// the seed. Called by exchange.ts once a request.
import type { Chance } from "./chance.ts";
import type { Fault } from "./faults.ts";
import type { OperationName } from "./operation-names.ts";

/** What goes wrong with one request: a wait, and at most one other fault. */
export interface Strike {
  readonly delayMs: number;
  readonly fault: Fault | undefined;
}

/** A fault with its counts so far. */
export interface FaultCounts {
  readonly fault: Fault;
  /** Requests of the right operation and key. */
  readonly matched: number;
  /** Requests it hit. */
  readonly struck: number;
}

/** The faults of one sandbox, with their counts. */
export class FaultPlan {
  readonly #chance: Chance;
  readonly #lines: { readonly fault: Fault; matched: number; struck: number }[];

  constructor(faults: readonly Fault[], chance: Chance) {
    this.#chance = chance;
    this.#lines = faults.map((fault) => ({ fault, matched: 0, struck: 0 }));
  }

  /**
   * Decides for one request. Latencies add up; of the other faults the first that matches applies.
   */
  decide(operation: OperationName, key: string): Strike {
    let delayMs = 0;
    let struck: Fault | undefined;
    this.#lines.forEach((line, index) => {
      const { fault } = line;
      if (fault.operation !== undefined && fault.operation !== operation) return;
      if (fault.key !== undefined && fault.key !== key) return;
      line.matched += 1;
      if (fault.kind !== "latency" && struck !== undefined) return;
      if (!this.#strikes(line, index)) return;
      line.struck += 1;
      if (fault.kind === "latency") delayMs += fault.delayMs ?? 500;
      else struck = fault;
    });
    return { delayMs, fault: struck };
  }

  /** The faults, and how often each matched and hit. */
  counts(): readonly FaultCounts[] {
    return this.#lines.map((line) => ({ ...line }));
  }

  #strikes(line: FaultCounts, index: number): boolean {
    const { after = 0, first = Infinity, every = 1, times = Infinity, rate = 1 } = line.fault;
    const number = line.matched - after;
    if (number < 1 || number > first || number % every !== 0 || line.struck >= times) return false;
    return rate >= 1 || this.#chance("fault", index, line.matched) < rate;
  }
}
