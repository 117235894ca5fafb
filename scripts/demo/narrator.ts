// Shows log lines while it happens, and counts what the summary tells.
import { styleText } from "node:util";
import { type LogLine, prettyEvent } from "../../src/ops/pretty-log.ts";

/** Events that would hide the story: they come often, and others tell it. */
const unshown = new Set(["feed.walked", "slot.skipped", "redis.warning", "web.listening"]);

/** What the narrator saw, for the summary. */
export interface Seen {
  retriedPolls: number;
  confirmed: number;
  died: number;
}

/** Tells the demo's story, one line an event. */
export class Narrator {
  readonly seen: Seen = { retriedPolls: 0, confirmed: 0, died: 0 };
  readonly #out: NodeJS.WriteStream;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  /** The first lines: what runs where. */
  welcome(world: { redis: string; sandbox: string; dashboard: string; pids: readonly number[]; forMs: number }): void {
    const [first = 0] = world.pids;
    this.plain(
      styleText("bold", `Syncline demo: config/demo.yaml against the sandbox service, for ${world.forMs / 1_000} s`),
    );
    this.plain(`  redis    ${world.redis}`);
    this.plain(`  sandbox  ${world.sandbox} (with faults: failing polls, lost answers, throttling, latency)`);
    this.plain(`  dashboard ${world.dashboard}`);
    this.plain(`  replicas ${world.pids.map((pid) => `pid ${pid}`).join(", ")}   try it: kill -9 ${first}`);
    this.plain("");
  }

  /** Tells one event. */
  tell(event: LogLine): void {
    this.#count(event);
    if (!unshown.has(event.event)) this.plain(prettyEvent({ time: new Date().toISOString(), ...event }, this.colours));
  }

  /** A line as it is. */
  plain(line: string): void {
    this.#out.write(`${line}\n`);
  }

  #count(event: LogLine): void {
    if (event.event === "task.retried") this.seen.retriedPolls += 1;
    if (event.event === "task.start-confirmed") this.seen.confirmed += 1;
    if (event.event === "replica.died") this.seen.died += 1;
  }

  /** Whether the lines have colours. */
  get colours(): boolean {
    return this.#out.isTTY && process.env["NO_COLOR"] === undefined;
  }
}
