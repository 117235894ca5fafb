// Turns log lines into something to read while it happens, and counts what the summary tells.
import { styleText } from "node:util";
import type { DemoEvent } from "./processes.ts";

type Colour = Parameters<typeof styleText>[0];
type Line = readonly [what: string, about: string, colour: Colour];

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
  welcome(world: { redis: string; sandbox: string; pids: readonly number[]; forMs: number }): void {
    const [first = 0] = world.pids;
    this.plain(
      this.#paint("bold", `Syncline demo: config/demo.yaml against the sandbox service, for ${world.forMs / 1_000} s`),
    );
    this.plain(`  redis    ${world.redis}`);
    this.plain(`  sandbox  ${world.sandbox} (with faults: failing polls, lost answers, throttling, latency)`);
    this.plain(`  replicas ${world.pids.map((pid) => `pid ${pid}`).join(", ")}   try it: kill -9 ${first}`);
    this.plain("");
  }

  /** Tells one event, or nothing when it is not part of the story. */
  tell(event: DemoEvent): void {
    this.#count(event);
    const line = lineOf(event);
    if (line !== undefined) this.say(...line);
  }

  /** One line with the time: what, about what. */
  say(...[what, about, colour]: Line): void {
    const time = new Date().toISOString().slice(11, 23);
    this.plain(`${this.#paint("gray", time)}  ${this.#paint(colour, what.padEnd(13))} ${about}`);
  }

  /** A line as it is. */
  plain(line: string): void {
    this.#out.write(`${line}\n`);
  }

  #count(event: DemoEvent): void {
    if (event.event === "task.retried") this.seen.retriedPolls += 1;
    if (event.event === "task.start-confirmed") this.seen.confirmed += 1;
    if (event.event === "replica.died") this.seen.died += 1;
  }

  #paint(colour: Colour, text: string): string {
    return this.#out.isTTY && process.env["NO_COLOR"] === undefined ? styleText(colour, text) : text;
  }
}

function lineOf(event: DemoEvent): Line | undefined {
  const text = (name: string) => String(event[name] ?? "");
  const time = (name: string) => text(name).slice(11, 19);
  switch (event.event) {
    case "slot.queued":
      return ["due", `${text("policy")}  slot ${time("slot")}, queued ${text("delayMs")} ms later`, "blue"];
    case "slot.coalesced":
      return ["coalesced", `${text("policy")}  slot ${time("slot")} into ${time("into")}`, "yellow"];
    case "task.started":
      return ["started", `${text("policy")}  ${text("kind")} of sync job ${text("target")} accepted`, "cyan"];
    case "task.in-doubt":
      return ["answer lost", `${text("policy")}  did it start? Not sent again; looking at the activities`, "magenta"];
    case "task.start-confirmed":
      return [
        "confirmed",
        `${text("policy")}  activity ${text("activity")} shows that sync job ${text("target")} did start`,
        "cyan",
      ];
    case "request.retried":
      return ["tried again", `${text("operation")} failed (${text("kind")})`, "yellow"];
    case "task.retried":
      return [
        "retried",
        `${text("policy")}  attempt ${text("attempt")} failed (${text("reason")}), again in ${text("afterMs")} ms`,
        "yellow",
      ];
    case "feed.item":
      return [
        "seen",
        `new in ${text("list")}: ${text("id")}${event["syncJobId"] === undefined ? "" : ` of sync job ${text("syncJobId")}`}`,
        "gray",
      ];
    case "task.finished":
      return finishedLine(event);
    case "replica.died":
      return ["replica died", `${text("replica")} (pid ${text("pid")}, ${text("how")}); it is started again`, "red"];
    case "replica.back":
      return ["replica back", `${text("replica")} is pid ${text("pid")} now`, "green"];
    case "bug.caught":
    case "replica.lost":
      return ["trouble", `${text("stack")}${text("message")}`, "red"];
    default:
      return undefined;
  }
}

function finishedLine(event: DemoEvent): Line {
  const status = String(event["status"]);
  const colour = status === "succeeded" || status === "accepted" ? "green" : status === "skipped" ? "gray" : "yellow";
  const took = typeof event["durationMs"] === "number" ? ` in ${(event["durationMs"] / 1_000).toFixed(1)} s` : "";
  return [status, `${event["policy"]}  ${event["kind"]} ${event["target"]}${took}: ${event["detail"]}`, colour];
}
