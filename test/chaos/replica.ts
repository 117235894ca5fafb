// One replica of a chaos run, through all its lives: started, struck, started again. Used by
// fleet.ts and by tests that strike by hand.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { bundle } from "../support/bundle.ts";
import { roomToStart } from "../support/processes.ts";
import type { ReplicaOrder, ReplicaOrders, WarmUpOrders } from "./replica-orders.ts";

const mainFile = fileURLToPath(new URL("replica-main.ts", import.meta.url));
/** Where Node keeps what it compiled: of no use to a run but this one and the next. */
const compileCache = fileURLToPath(new URL("../../.cache/compiled", import.meta.url));
const errorCharactersMax = 4_000;
const wakeEveryMs = 500;
/**
 * Many times what a replica may take to stop (`drainMs`), also on a machine with ten times the load
 * that it can carry.
 */
const endsWithinMs = 60_000;

/** One line of a replica's log. */
export type ReplicaEvent = Readonly<Record<string, unknown>> & { readonly event: string };

/** How a life ended. */
export interface LifeEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

/**
 * What a replica needs. `ordersOf`: of its nth life, from 0. `environment`: beside this process's
 * own.
 */
export interface ReplicaOptions {
  readonly ordersOf: (life: number) => ReplicaOrders;
  readonly environment: Readonly<Record<string, string>>;
  readonly onEvent: (event: ReplicaEvent) => void;
  readonly onEnd: (end: LifeEnd) => void;
}

let bundled: string | undefined;
const alive = new Set<ChildProcess>();
// A stopped process does not notice that its driver is gone.
process.on("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});

/** A replica process and its successors. */
export class ReplicaProcess {
  readonly #options: ReplicaOptions;
  #child: ChildProcess | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  #life = -1;

  constructor(options: ReplicaOptions) {
    this.#options = options;
  }

  /** Begins its next life; nothing when it is alive. */
  start(): void {
    if (this.#child !== undefined) return;
    this.#life += 1;
    const child = spawnReplica(this.#options.ordersOf(this.#life), this.#options.environment);
    this.#child = child;
    let stderr = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr = (stderr + text).slice(-errorCharactersMax);
    });
    if (child.stdout !== null)
      createInterface({ input: child.stdout }).on("line", (line) => {
        if (line.startsWith('{"')) this.#options.onEvent(JSON.parse(line));
      });
    this.#ended = once(child, "close").then(([code, signal]) => {
      this.#child = undefined;
      this.#options.onEnd({ code, signal, stderr });
    });
  }

  get isAlive(): boolean {
    return this.#child !== undefined;
  }

  /** Sends a signal, if it is alive. */
  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Gives an order, if it is alive. A stopped one carries it out when it goes on. */
  order(order: ReplicaOrder): void {
    // The channel closes when the process dies; an order to a dead one is no error.
    if (this.#child?.connected) this.#child.send(order, () => {});
  }

  /**
   * Ends its present life for ever and waits until it is over. False: it did not end within a
   * minute, and was killed.
   */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<boolean> {
    let endsByItself = true;
    this.signal("SIGCONT");
    this.signal(signal);
    // One whose trap stops it on its way out would never get there.
    const wake = setInterval(() => this.signal("SIGCONT"), wakeEveryMs);
    const giveUp = setTimeout(() => {
      endsByItself = false;
      this.signal("SIGKILL");
    }, endsWithinMs);
    await this.#ended;
    clearInterval(wake);
    clearTimeout(giveUp);
    return endsByItself;
  }
}

/**
 * Bundles and compiles everything that a replica loads once; to be called before the first one
 * starts.
 */
export async function warmUp(): Promise<void> {
  bundled ??= await bundle(mainFile, "replica");
  const child = spawnReplica({ isWarmUp: true }, {});
  child.stderr?.pipe(process.stderr);
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`a replica cannot be loaded: exit ${code}`);
}

function spawnReplica(
  orders: ReplicaOrders | WarmUpOrders,
  environment: Readonly<Record<string, string>>,
): ChildProcess {
  if (bundled === undefined) throw new Error("warmUp comes before the first replica");
  const { REDIS_URL: _redis, NODE_OPTIONS: _options, ...inherited } = process.env;
  const child = spawn(process.execPath, [...roomToStart, bundled], {
    env: {
      ...inherited,
      ...environment,
      NODE_COMPILE_CACHE: compileCache,
      CHAOS_REPLICA: JSON.stringify(orders),
    },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  alive.add(child);
  child.once("close", () => alive.delete(child));
  return child;
}
