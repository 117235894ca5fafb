// The processes of the demo: the sandbox service and the replicas. Each is a real `syncline` and
// hangs on a channel to this process: should this one be killed, they notice and stop.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type LogLine, parseLogLine } from "../../src/ops/pretty-log.ts";

const mainFile = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const policies = fileURLToPath(new URL("../../config/demo.yaml", import.meta.url));
const stopWithinMs = 15_000;
const readyWithinMs = 30_000;

/**
 * The faults of the demo: a poll fails often enough to be retried, answers get lost, one request is
 * slow.
 */
const faults = [
  "500-before,op=GetApprovals,first=8",
  "lost-answer,op=RunSyncJob,after=4,every=9",
  "429,op=GetTriggers,every=4,retryAfter=1",
  "latency,op=GetActivities,every=5,ms=300",
];

/** The sandbox service as a process. */
export interface SandboxProcess {
  readonly baseUrl: string;
  readonly token: string;
  stop(): Promise<void>;
}

/** Starts the sandbox and waits for its ready line. */
export async function startSandbox(): Promise<SandboxProcess> {
  const args = [
    "sandbox",
    "--port",
    "0",
    "--jobs",
    "20",
    "--activities",
    "250",
    "--seed",
    "7",
    ...faults.flatMap((fault) => ["--fault", fault]),
  ];
  const child = start(args, {});
  const ready = await firstEvent(child, "sandbox.ready");
  return { baseUrl: String(ready["baseUrl"]), token: String(ready["token"]), stop: () => stop(child) };
}

interface ReplicaOptions {
  readonly environment: Readonly<Record<string, string>>;
  readonly prefix: string;
  readonly onEvent: (event: LogLine) => void;
}

/** One replica of `syncline serve`, started again when it dies. */
export class Replica {
  readonly #number: number;
  readonly #options: ReplicaOptions;
  #child: ChildProcess | undefined;
  #stopping = false;
  #dashboard = "";

  constructor(number: number, options: ReplicaOptions) {
    this.#number = number;
    this.#options = options;
  }

  /** The address of the dashboard, which the first replica serves; empty: not yet. */
  get dashboard(): string {
    return this.#dashboard;
  }

  /** Starts it and waits until it is ready; answers its process id. */
  async start(): Promise<number> {
    const { environment, prefix, onEvent } = this.#options;
    const args = ["serve", "--config", policies, "--prefix", prefix, "--take-over-after", "4s", "--drain", "10s"];
    if (this.#number === 1) args.push("--roles", "scheduler,worker,web", "--web-port", "0");
    const child = start(args, environment);
    this.#child = child;
    const ready = firstEvent(child, "serve.ready", (event) => {
      if (event.event === "web.listening") this.#dashboard = String(event["url"]);
      onEvent({ ...event, replica: this.#number });
    });
    child.once("exit", (code, signal) => this.#onExit(child.pid, signal ?? `exit code ${code}`));
    await ready;
    return child.pid ?? 0;
  }

  /** Asks it to drain and waits; ends it by force after fifteen seconds. */
  async stop(): Promise<void> {
    this.#stopping = true;
    if (this.#child !== undefined) await stop(this.#child);
  }

  #onExit(pid: number | undefined, how: string): void {
    if (this.#stopping) return;
    const { onEvent } = this.#options;
    onEvent({ event: "replica.died", replica: this.#number, pid, how });
    this.start().then(
      (again) => onEvent({ event: "replica.back", replica: this.#number, pid: again }),
      (error: unknown) => onEvent({ event: "replica.lost", replica: this.#number, message: String(error) }),
    );
  }
}

/** Starts a `syncline`, of this build unless another one's `main.ts` is given. */
export function start(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  file: string = mainFile,
): ChildProcess {
  // A process group of its own: Ctrl-C reaches the demo alone, which then stops the others in
  // order.
  return spawn(process.execPath, [file, ...args], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "inherit", "ipc"],
    detached: true,
  });
}

/** Asks a process to end and waits; ends it by force after fifteen seconds. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), stopWithinMs);
  await ended;
  clearTimeout(timer);
}

/**
 * Tells every event of a process, and waits for the first with this name. @throws Error when the
 * process ends before, or after 30 s.
 */
export function firstEvent(
  child: ChildProcess,
  wanted: string,
  onEvent: (event: LogLine) => void = () => {},
): Promise<LogLine> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no ${wanted} within ${readyWithinMs / 1_000} s`)), readyWithinMs);
    child.once("exit", (code, signal) => {
      clearTimeout(timer);
      reject(new Error(`the process ended before ${wanted}: ${signal ?? `exit code ${code}`}`));
    });
    if (child.stdout === null) return;
    createInterface({ input: child.stdout }).on("line", (line) => {
      const event = parseLogLine(line);
      if (event === undefined) return;
      onEvent(event);
      if (event.event !== wanted) return;
      clearTimeout(timer);
      resolve(event);
    });
  });
}
