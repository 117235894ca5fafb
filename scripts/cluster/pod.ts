// One replica as a pod would run it: a real `syncline serve` with a health port, ready when /readyz
// says so. Made by cluster.ts.
import type { ChildProcess } from "node:child_process";
import type { LogLine } from "../../src/ops/pretty-log.ts";
import { firstEvent, start, stop } from "../demo/processes.ts";
import type { Build } from "./builds.ts";

/** What a pod is started with. */
export interface PodOptions {
  /**
   * Its name in what is shown: `2` for the first of its place, `2.1` for the one that replaced it.
   */
  readonly name: string;
  readonly build: Build;
  /** The policy file. */
  readonly config: string;
  readonly roles: string;
  readonly prefix: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly onEvent: (event: LogLine, pod: Pod) => void;
  /** It ended without having been asked to. */
  readonly onDeath: (pod: Pod, how: string) => void;
}

/**
 * The chart's probe waits 3 s and takes a pod out at the second miss, 5 s later. With less than
 * that, one pause of this process would count as a pause of every pod.
 */
const answerWithinMs = 10_000;

/** A replica. */
export class Pod {
  readonly options: PodOptions;
  #child: ChildProcess | undefined;
  #healthPort: number | undefined;
  #hasStarted = false;
  #isAsked = false;

  constructor(options: PodOptions) {
    this.options = options;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Starts the process and waits until it says that it is ready. */
  async start(): Promise<void> {
    const { build, config, roles, prefix, environment, onEvent, onDeath } = this.options;
    const health = build.hasHealth ? ["--health-port", "0", "--health-host", "127.0.0.1"] : [];
    const common = [
      "--config",
      config,
      "--prefix",
      prefix,
      "--roles",
      roles,
      "--take-over-after",
      "4s",
      "--drain",
      "10s",
    ];
    const child = start(["serve", ...common, ...health], environment, build.mainFile);
    this.#child = child;
    child.once("exit", (code, signal) => {
      if (!this.#isAsked) onDeath(this, signal ?? `exit code ${code}`);
    });
    await firstEvent(child, "serve.ready", (event) => {
      if (event.event === "health.listening") this.#healthPort = Number(event["port"]);
      onEvent(event, this);
    });
    this.#hasStarted = true;
  }

  /**
   * What the readiness probe would say now. A build without a health server is ready from its start
   * until it is asked to stop.
   */
  async isReady(): Promise<boolean> {
    if (!this.#isAlive()) return false;
    if (!this.options.build.hasHealth) return this.#hasStarted && !this.#isAsked;
    if (this.#healthPort === undefined) return false;
    try {
      const signal = AbortSignal.timeout(answerWithinMs);
      const { status } = await fetch(`http://127.0.0.1:${this.#healthPort}/readyz`, { signal });
      return status === 200;
    } catch {
      return false;
    }
  }

  /** SIGTERM, as at the end of a pod, and by force after fifteen seconds. */
  async stop(): Promise<void> {
    this.#isAsked = true;
    if (this.#child !== undefined) await stop(this.#child);
  }

  /** SIGKILL. It counts as a death. */
  kill(): void {
    this.#child?.kill("SIGKILL");
  }

  #isAlive(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }
}
