// What `npm run cluster` shows while it goes on: a line for each thing that happens to a replica,
// and one line of figures that is rewritten on a terminal and repeated every five seconds
// elsewhere. Called by main.ts.
import { systemClock } from "../../src/core/clock.ts";
import type { LogLine } from "../../src/ops/pretty-log.ts";
import type { Cluster } from "./cluster.ts";
import type { Pod } from "./pod.ts";

/** The live view. */
export class View {
  readonly #out: NodeJS.WriteStream;
  readonly #ending = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #starts = 0;
  readonly #outcomes = new Map<string, number>();
  /** How often each new item of a feed was told, by repository, list and id. */
  readonly #items = new Map<string, number>();
  /** Warnings and errors of the replicas' logs, by build and event. */
  readonly troubles = new Map<string, number>();

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  /** Counts an event of a replica. */
  tell(event: LogLine, pod: Pod): void {
    if (event.event === "task.started") this.#starts += 1;
    if (event.event === "feed.item")
      add(this.#items, JSON.stringify([event["repository"], event["list"], event["id"]]));
    if (event.event === "task.finished") add(this.#outcomes, String(event["status"]));
    if (event["level"] === "warn" || event["level"] === "error")
      add(this.troubles, `${pod.options.build.name} ${event.event}`);
  }

  /** New items of the feeds: how many were told, and which of them more than once. */
  get items(): { readonly told: number; readonly twice: readonly string[] } {
    const twice = [...this.#items].filter(([, count]) => count > 1).map(([item]) => item);
    return { told: this.#items.size, twice };
  }

  /** One line with the time. */
  say(what: string): void {
    this.#out.write(`${this.#isLive() ? "\r\u001b[K" : ""}${new Date().toISOString().slice(11, 19)}  ${what}\n`);
  }

  /** Shows the figures until `end`. */
  begin(cluster: Cluster): void {
    const { signal } = this.#ending;
    this.#running = (async () => {
      while (!signal.aborted) {
        const line = await this.#figures(cluster);
        if (this.#isLive()) this.#out.write(`\r\u001b[K${line}`);
        else this.say(line);
        await systemClock.sleep(this.#isLive() ? 1_000 : 5_000, signal);
      }
    })();
  }

  /** Ends the figures. */
  async end(): Promise<void> {
    this.#ending.abort();
    await this.#running;
  }

  async #figures({ pods, probes }: Cluster): Promise<string> {
    const ready = await Promise.all(pods.map((pod) => pod.isReady()));
    const shown = pods.map(
      ({ options }, index) => `${options.name} ${options.build.name} ${ready[index] ? "ready" : "not ready"}`,
    );
    const outcomes = [...this.#outcomes].map(([status, count]) => `${count} ${status}`).join(", ");
    const gap = probes.without === 0 ? "" : ` | ${probes.without} probes without a scheduler`;
    return `${shown.join(" | ")} | ${this.#starts} starts | ${outcomes || "no outcomes yet"}${gap}`;
  }

  #isLive(): boolean {
    return this.#out.isTTY === true;
  }
}

function add(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
