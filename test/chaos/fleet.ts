// Carries a fault script out on real processes: starts the replicas, strikes them at their
// instants, starts them again, and at the end lets everybody go on and ends them. Knows nothing of
// what the replicas do; the checkers do.
import type { Fault, FaultScript } from "./fault-script.ts";
import { type LifeEnd, type ReplicaEvent, ReplicaProcess } from "./replica.ts";
import type { ReplicaOrders } from "./replica-orders.ts";

/** What a fleet needs beside its script. */
export interface FleetOptions {
  readonly script: FaultScript;
  /** What all replicas are told alike. */
  readonly orders: Omit<ReplicaOrders, "isWarmUp" | "roles" | "clockShiftMs" | "traps">;
  readonly environment: Readonly<Record<string, string>>;
  readonly onEvent: (event: ReplicaEvent, replica: number) => void;
}

/** What happened to a fleet. */
export interface FleetReport {
  /** In the order in which it happened, for people. */
  readonly story: readonly string[];
  /** Processes that ended though nobody ended them. */
  readonly unexpectedEnds: readonly string[];
  readonly starts: number;
  readonly strikes: number;
}

/** How long whoever was stopped has to do what it was about to do, before the end. */
const lastWordsMs = 400;

/** The replicas of one script. */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #replicas: readonly ReplicaProcess[];
  readonly #timers = new Set<NodeJS.Timeout>();
  /** For each replica: how long until its next start, when it is being ended on purpose. */
  readonly #restartInMs = new Map<number, number>();
  readonly #story: string[] = [];
  readonly #unexpectedEnds: string[] = [];
  readonly #startedAtMs = performance.now();
  #starts = 0;
  #strikes = 0;
  #isOver = false;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#replicas = options.script.replicas.map(({ roles, clockShiftMs, traps }, index) => {
      const ordersOf = (life: number): ReplicaOrders => ({
        ...options.orders,
        isWarmUp: false,
        roles,
        clockShiftMs,
        traps: traps.filter((trap) => trap.life === life),
      });
      return new ReplicaProcess({
        ordersOf,
        environment: options.environment,
        onEvent: (event) => this.#onEvent(event, index),
        onEnd: (end) => this.#onEnd(end, index),
      });
    });
  }

  /** Starts all replicas; they are not ready yet. */
  start(): void {
    for (const index of this.#replicas.keys()) this.#start(index);
  }

  /** Lets the storm pass. */
  async storm(): Promise<void> {
    const { faults, stormMs } = this.#options.script;
    this.#tell("the storm begins");
    for (const fault of faults) this.#later(fault.atMs, () => this.#strike(fault));
    await new Promise<void>((resolve) => this.#later(stormMs, resolve));
  }

  /** Ends the storm: whoever is stopped goes on for a moment, then all are ended. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<FleetReport> {
    this.#endStorm();
    for (const replica of this.#replicas) replica.signal("SIGCONT");
    await new Promise((resolve) => setTimeout(resolve, lastWordsMs));
    await Promise.all(this.#replicas.map((replica, index) => this.#end(replica, index, signal)));
    this.#tell("all have ended");
    const [story, unexpectedEnds] = [this.#story, this.#unexpectedEnds];
    return { story, unexpectedEnds, starts: this.#starts, strikes: this.#strikes };
  }

  /** Ends whoever is still alive because the chaos itself has failed. */
  async kill(): Promise<void> {
    this.#endStorm();
    await Promise.all(this.#replicas.filter(({ isAlive }) => isAlive).map((replica) => replica.end("SIGKILL")));
  }

  /** The replicas so far that ended though no one ended them, with what they wrote last. */
  get unexpectedEnds(): readonly string[] {
    return this.#unexpectedEnds;
  }

  /** What has happened so far, in the order in which it happened, for people. */
  get story(): readonly string[] {
    return this.#story;
  }

  #endStorm(): void {
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
  }

  async #end(replica: ReplicaProcess, index: number, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    if (await replica.end(signal)) return;
    this.#unexpectedEnds.push(`replica ${index} had not ended a minute after ${signal} and was killed`);
  }

  #start(index: number): void {
    this.#starts += 1;
    this.#replicas[index]?.start();
  }

  #strike({ replicas, action, forMs }: Fault): void {
    for (const index of replicas) {
      const replica = this.#replicas[index];
      if (replica === undefined || !replica.isAlive) continue;
      this.#strikes += 1;
      this.#tell(`replica ${index}: ${action}`);
      if (action === "block" || action === "clock" || action === "shared-clock")
        replica.order({ order: action, ms: forMs });
      else if (action === "stop") this.#stop(index, forMs);
      else this.#endLife(index, action === "kill" ? "SIGKILL" : "SIGTERM", forMs);
    }
  }

  #stop(index: number, forMs: number): void {
    this.#replicas[index]?.signal("SIGSTOP");
    this.#later(forMs, () => {
      this.#tell(`replica ${index} goes on`);
      this.#replicas[index]?.signal("SIGCONT");
    });
  }

  #endLife(index: number, signal: "SIGKILL" | "SIGTERM", downMs: number): void {
    this.#restartInMs.set(index, downMs);
    this.#replicas[index]?.signal(signal);
  }

  #onEvent(event: ReplicaEvent, index: number): void {
    if (event.event === "trap.sprung") {
      this.#strikes += 1;
      const forMs = Number(event["forMs"]);
      this.#tell(`replica ${index}: ${String(event["action"])} at ${String(event["point"])}`);
      if (event["action"] === "kill") this.#restartInMs.set(index, forMs);
      if (event["action"] === "stop") this.#stop(index, forMs);
    }
    this.#options.onEvent(event, index);
  }

  #onEnd({ code, signal, stderr }: LifeEnd, index: number): void {
    const downMs = this.#restartInMs.get(index);
    this.#restartInMs.delete(index);
    this.#tell(`replica ${index} ended: ${signal ?? `exit ${code}`}`);
    const asTold = downMs !== undefined || this.#isOver;
    if (!asTold || (code !== null && code !== 0) || stderr !== "")
      this.#unexpectedEnds.push(`replica ${index} ended with ${signal ?? `exit ${code}`}: ${stderr || "no word"}`);
    if (downMs !== undefined) this.#later(downMs, () => this.#start(index));
  }

  #later(afterMs: number, what: () => void): void {
    if (this.#isOver) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      what();
    }, afterMs);
    this.#timers.add(timer);
  }

  #tell(what: string): void {
    this.#story.push(`${((performance.now() - this.#startedAtMs) / 1_000).toFixed(2)} s ${what}`);
  }
}
