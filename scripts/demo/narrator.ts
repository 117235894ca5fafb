// Turns log lines into something to read while it happens. Counts what the summary tells.
import { styleText } from "node:util";
import type { DemoEvent } from "./processes.ts";

type Colour = Parameters<typeof styleText>[0];

/** What the narrator saw, for the summary. */
export interface Seen {
  started: number;
  retriedPolls: number;
  lostAnswers: number;
  confirmed: number;
  died: number;
}

/** Tells the demo's story, one line an event. */
export class Narrator {
  readonly seen: Seen = { started: 0, retriedPolls: 0, lostAnswers: 0, confirmed: 0, died: 0 };
  readonly #out: NodeJS.WriteStream;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  /** The first lines: what runs where. */
  welcome(world: { redis: string; sandbox: string; pids: readonly number[]; forMs: number }): void {
    const [first = 0] = world.pids;
    this.#write(`${this.#paint("bold", "Syncline demo")}: policies of config/demo.yaml against the sandbox service, for ${world.forMs / 1_000} s`);
    this.#write(`  redis    ${world.redis}`);
    this.#write(`  sandbox  ${world.sandbox} (with faults: failing polls, lost answers, throttling, latency)`);
    this.#write(`  replicas ${world.pids.map((pid) => `pid ${pid}`).join(", ")}   try it: kill -9 ${first}`);
    this.#write("");
  }

  /** One line: what, about what. */
  say(what: string, about: string, colour: Colour = "gray"): void {
    const time = new Date().toISOString().slice(11, 23);
    this.#write(`${this.#paint("gray", time)}  ${this.#paint(colour, what.padEnd(13))} ${about}`);
  }

  /** Tells one event, or nothing when it is not part of the story. */
  tell(event: DemoEvent): void {
    const text = (name: string) => String(event[name] ?? "");
    switch (event.event) {
      case "slot.queued":
        return this.say("due", `${text("policy")}  slot ${text("slot").slice(11, 19)}, queued ${text("delayMs")} ms later`);
      case "slot.coalesced":
        return this.say("coalesced", `${text("policy")}  slot ${text("slot").slice(11, 19)} into ${text("into").slice(11, 19)}`, "yellow");
      case "task.started":
        this.seen.started += event["kind"] === "run" ? 1 : 0;
        return this.say("started", `${text("policy")}  ${text("kind")} of sync job ${text("target")} accepted`, "cyan");
      case "task.answer-lost":
        this.seen.lostAnswers += 1;
        return this.say("answer lost", `${text("policy")}  did it start? Not sent again; looking at the activities`, "magenta");
      case "task.start-confirmed":
        this.seen.confirmed += 1;
        this.seen.started += 1;
        return this.say("confirmed", `${text("policy")}  activity ${text("activity")} shows that sync job ${text("target")} did start`, "cyan");
      case "request.retried":
        this.#countRetry(text("operation"));
        return this.say("retried", `${text("operation")} failed (${text("kind")}), once more in ${text("delayMs")} ms`, "yellow");
      case "task.retried":
        this.#countRetry("poll");
        return this.say("retried", `${text("policy")}  attempt ${text("attempt")} failed: ${text("reason")}`, "yellow");
      case "feed.item":
        return this.say("seen", `new in ${text("list")}: ${text("id")}${event["syncJobId"] === undefined ? "" : ` of sync job ${text("syncJobId")}`}`);
      case "task.finished":
        return this.#finished(event);
      case "replica.died":
        this.seen.died += 1;
        return this.say("replica died", `${text("replica")} (pid ${text("pid")}, ${text("how")}); the other goes on`, "red");
      case "replica.back":
        return this.say("replica back", `${text("replica")} is pid ${text("pid")} now`, "green");
      case "bug.caught":
      case "replica.lost":
        return this.say("trouble", `${text("stack")}${text("message")}`, "red");
    }
  }

  #finished(event: DemoEvent): void {
    const status = String(event["status"]);
    const colour = status === "succeeded" || status === "accepted" ? "green" : status === "skipped" ? "gray" : "yellow";
    const took = typeof event["durationMs"] === "number" ? ` in ${(event["durationMs"] / 1_000).toFixed(1)} s` : "";
    this.say(status, `${event["policy"]}  ${event["kind"]} ${event["target"]}${took}: ${event["detail"]}`, colour);
  }

  #countRetry(operation: string): void {
    if (operation !== "RunSyncJob") this.seen.retriedPolls += 1;
  }

  /** A line as it is. */
  plain(line: string): void {
    this.#write(line);
  }

  #write(line: string): void {
    this.#out.write(`${line}\n`);
  }

  #paint(colour: Colour, text: string): string {
    return this.#out.isTTY && process.env["NO_COLOR"] === undefined ? styleText(colour, text) : text;
  }
}
