// Child processes of a benchmark: started by the parent, asked for figures over Node's own channel,
// ended with it. The parent makes a `BenchChild`; the child calls `answerParent` once.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import * as z from "zod";

const figuresSchema = z.record(z.string(), z.number());
const questionSchema = z.object({ id: z.int(), command: z.string(), figures: figuresSchema });
const answerSchema = z.object({ id: z.int(), figures: figuresSchema });

/** What parent and child tell each other: numbers by name. */
export type Figures = Readonly<Record<string, number>>;

/** A child process that answers questions. */
export class BenchChild {
  readonly #child: ChildProcess;
  readonly #open = new Map<number, (figures: Figures) => void>();
  #asked = 0;

  /**
   * @param file beside this one. Its log (standard output) is thrown away, after it was written.
   */
  constructor(file: string, args: readonly string[]) {
    this.#child = fork(fileURLToPath(new URL(file, import.meta.url)), args, {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      execArgv: (process.env["BENCH_NODE_ARGS"] ?? "").split(" ").filter((part) => part !== ""),
    });
    this.#child.on("message", (message) => {
      const { id, figures } = answerSchema.parse(message);
      this.#open.get(id)?.(figures);
      this.#open.delete(id);
    });
    this.#child.once("exit", (code) => {
      if (code !== 0 && code !== null) throw new Error(`${file} ended with ${code}`);
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Asks; resolves with the answer. */
  ask(command: string, figures: Figures = {}): Promise<Figures> {
    this.#asked += 1;
    const id = this.#asked;
    return new Promise((resolve) => {
      this.#open.set(id, resolve);
      this.#child.send({ id, command, figures });
    });
  }

  /** Asks it to stop and waits for its end. */
  async stop(): Promise<void> {
    const ended = once(this.#child, "exit");
    await this.ask("stop");
    this.#child.disconnect();
    await ended;
  }
}

/** In the child: answers each command, `cpu` and `stop` included. */
export function answerParent(
  commands: Readonly<Record<string, (figures: Figures) => Promise<Figures> | Figures>>,
  stop: () => Promise<unknown>,
): void {
  const all: typeof commands = {
    ...commands,
    cpu: () => {
      const { user, system } = process.cpuUsage();
      const { rss, heapUsed } = process.memoryUsage();
      return { cpuMs: (user + system) / 1_000, rss, heapUsed };
    },
    stop: async () => {
      await stop();
      return {};
    },
  };
  const answer = async (message: unknown) => {
    const { id, command, figures } = questionSchema.parse(message);
    const answered = await (all[command]?.(figures) ?? {});
    process.send?.({ id, figures: answered });
  };
  process.on("message", (message) => {
    answer(message).catch((error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      process.exit(1);
    });
  });
  process.on("disconnect", () => process.exit(0));
}
