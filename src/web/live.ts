// Tells open pages that something changed, by server-sent events. One poll of Redis every two
// seconds for all of them, and none while no page listens.
import type { Context } from "hono";
import type { Clock } from "../core/clock.ts";
import { stackOf } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import { WebError } from "./problem.ts";

const pollEveryMs = 2_000;
/** Proxies end a silent stream; a page that hears nothing says that it is not live. */
const aliveEveryMs = 15_000;
const streamsMax = 64;
const streamsOfCallerMax = 8;
/** Events that may wait for a reader. */
const unreadMax = 100;
const changed = "event: changed\ndata:\n\n";
const alive = "event: alive\ndata:\n\n";
/** The version while Redis cannot be read. */
const unread = "";

type Send = (text: string) => void;

/** An open stream. `end`: ends it. `mayStay`: whether its caller is still let in. */
interface Stream {
  readonly caller: string;
  readonly end: () => void;
  readonly mayStay: () => Promise<boolean>;
}

/** The listeners of one process. */
export class LiveHub {
  readonly #readVersion: () => Promise<string>;
  readonly #clock: Clock;
  readonly #log: Pick<EventLog, "error">;
  readonly #streams = new Map<Send, Stream>();
  /** Those that joined after the last poll: their page may be older than it. */
  readonly #fresh = new Set<Send>();
  #timers: (() => void)[] = [];
  #mayTell: (isUrgent: boolean) => boolean = () => true;
  #version: string | undefined;
  #isReading = false;

  readonly #onCount: (streams: number) => void;

  /**
   * `readVersion`: a text that differs whenever something to show has changed. `onCount` hears how
   * many streams are open.
   */
  constructor(
    readVersion: () => Promise<string>,
    clock: Clock,
    log: Pick<EventLog, "error">,
    onCount: (streams: number) => void = () => {},
  ) {
    this.#readVersion = readVersion;
    this.#clock = clock;
    this.#log = log;
    this.#onCount = onCount;
    onCount(0);
  }

  /**
   * Asks this before pages hear of a change; false: not yet, at one of the next polls. Urgent:
   * Redis cannot be read, or can again.
   */
  beforeChange(mayTell: (isUrgent: boolean) => boolean): void {
    this.#mayTell = mayTell;
  }

  /** How many streams are open. */
  get size(): number {
    return this.#streams.size;
  }

  /** Adds a listener. @throws WebError when there are too many; answers what takes it out again. */
  join(send: Send, stream: Stream): () => void {
    const own = [...this.#streams.values()].filter(({ caller }) => caller === stream.caller).length;
    if (this.#streams.size >= streamsMax || own >= streamsOfCallerMax) throw tooMany;
    this.#streams.set(send, stream);
    this.#fresh.add(send);
    this.#onCount(this.size);
    if (this.#timers.length === 0) this.#begin();
    return () => {
      this.#streams.delete(send);
      this.#fresh.delete(send);
      this.#onCount(this.size);
      if (this.#streams.size === 0) this.#rest();
    };
  }

  /** Ends all streams; the pages come back to another process. */
  stop(): void {
    for (const { end } of [...this.#streams.values()]) end();
    this.#rest();
  }

  #begin(): void {
    this.#version = undefined;
    this.#timers = [
      this.#clock.every(pollEveryMs, () => void this.#poll()),
      this.#clock.every(aliveEveryMs, () => this.#sayAlive()),
    ];
  }

  #rest(): void {
    for (const stop of this.#timers) stop();
    this.#timers = [];
  }

  async #poll(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      const version = await this.#readVersion();
      // The first time, too: nothing is known of the moments since the pages were made.
      const hasChanged = version !== this.#version && this.#mayTell(this.#version === unread);
      if (hasChanged) this.#version = version;
      for (const send of hasChanged ? [...this.#streams.keys()] : [...this.#fresh]) send(changed);
      this.#fresh.clear();
    } catch (error) {
      if (this.#version === unread) return;
      this.#version = unread;
      if (!isRedisOutage(error)) this.#log.error("web.failed", { requestId: null, stack: stackOf(error) });
      this.#mayTell(true);
      // The pages ask at once, are told what fails, and say that they are not live.
      this.#sendAll(changed);
    } finally {
      this.#isReading = false;
    }
  }

  /** Also ends the streams of those who are let in no longer. What cannot be asked ends none. */
  #sayAlive(): void {
    this.#sendAll(alive);
    for (const [send, { end, mayStay }] of this.#streams)
      void mayStay().then(
        (may) => !may && this.#streams.has(send) && end(),
        () => {},
      );
  }

  #sendAll(text: string): void {
    for (const send of [...this.#streams.keys()]) send(text);
  }
}

const tooMany = new WebError({
  status: 429,
  name: "too-many-streams",
  title: "Too many live pages",
  detail: `${streamsMax} pages of a process and ${streamsOfCallerMax} of a caller are live; the others ask every 30 s`,
});

/** Answers with a stream of events, until the page is closed or its caller let in no longer. */
export function streamChanges(c: Context, live: LiveHub, who: Omit<Stream, "end">): Response {
  const headers = { "content-type": "text/event-stream", "x-accel-buffering": "no" };
  if (c.req.method === "HEAD") return c.body(null, 200, headers);
  const encoder = new TextEncoder();
  let leave = () => {};
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      const end = () => {
        leave();
        controller.close();
      };
      const send = (text: string) => {
        controller.enqueue(encoder.encode(text));
        // The reader has taken nothing for long: it is gone.
        if ((controller.desiredSize ?? 0) < -unreadMax) end();
      };
      leave = live.join(send, { ...who, end });
      send("retry: 5000\n\n");
    },
    cancel: () => leave(),
  });
  return c.body(body, 200, headers);
}
