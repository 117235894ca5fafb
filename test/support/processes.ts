// Real `syncline` processes for tests: started with arguments, watched line by line, ended at the
// end of the test file.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { LimitedWait } from "./limited-wait.ts";

/** The program as it stands in `src/`: for what depends on when a module is loaded. */
export const sources = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** What a process makes while it starts is thrown away at once: a sixth of its start. */
export const roomToStart = ["--min-semi-space-size=32", "--max-semi-space-size=32"];

/**
 * How what another process does is looked for with `expect.poll`: often enough to meet a request on
 * its way, and not all the time.
 */
export const often = { interval: 20, timeout: 60_000 };

/** How a process ended and what it printed. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

/** A running process. */
export class Syncline {
  readonly #child: ChildProcess;
  readonly #lines: string[] = [];
  readonly #events: Record<string, unknown>[] = [];
  /** How many of the lines are among the events. */
  #read = 0;
  readonly #ended: Promise<Ended>;
  #err = "";
  readonly #wait = new LimitedWait(() => this.#lines.slice(-20).join("\n"));

  /** `file`: what is started; the bundle of this run unless given, else the sources. */
  constructor(
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
    file: string = process.env["TEST_BUNDLE"] ?? sources,
  ) {
    const { REDIS_URL: _1, SYNCLINE_TOKEN: _2, SYNCLINE_CONFIG: _3, TEST_BUNDLE: _4, ...inherited } = process.env;
    this.#child = spawn(process.execPath, [...roomToStart, file, ...args], {
      env: { ...inherited, ...environment },
      stdio: ["pipe", "pipe", "pipe"],
    });
    const { stdout, stderr } = this.#child;
    if (stdout === null || stderr === null) throw new Error("no streams");
    const lines = createInterface({ input: stdout });
    lines.on("line", (line) => {
      this.#lines.push(line);
      this.#wait.wake();
    });
    stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#err += text;
    });
    this.#ended = Promise.all([once(this.#child, "close"), once(lines, "close")]).then(([[code, signal]]) => {
      this.#wait.wake();
      return { code, signal, out: this.#lines.join("\n"), err: this.#err };
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Events that were logged so far. Each line is parsed once: a waiting test asks at each. */
  get events(): readonly Record<string, unknown>[] {
    for (const line of this.#lines.slice(this.#read)) if (line.startsWith("{")) this.#events.push(JSON.parse(line));
    this.#read = this.#lines.length;
    return this.#events;
  }

  /** What it wrote to standard error so far. */
  get err(): string {
    return this.#err;
  }

  /** Waits for the first event that fits. Fails when the process ends before, or after too long. */
  until(fits: (event: Record<string, unknown>) => boolean): Promise<Record<string, unknown>> {
    const find = () => {
      const found = this.events.find(fits);
      const hasEnded = this.#child.exitCode !== null || this.#child.signalCode !== null;
      if (found === undefined && hasEnded) throw new Error(`ended before: ${this.#err}`);
      return found;
    };
    return this.#wait.until(find, fits);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends its standard input after this text. */
  input(text: string): void {
    this.#child.stdin?.end(text);
  }

  /** Waits for its end. */
  ended(): Promise<Ended> {
    return this.#ended;
  }
}

/** Runs a command to its end. */
export function syncline(args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const started = new Syncline(args, environment);
  started.input("");
  return started.ended();
}
