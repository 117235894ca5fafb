// Writes about starts: what this process alone knows of a request (its answer, why it is in doubt,
// or that it started nothing). In an outage of Redis they are kept for two minutes, or until the
// process ends, and written when Redis is back, the oldest first. What is given up, or comes too
// late, is told (`start.unwritten`). The journal writes through it, tasks/ the outcomes that are
// answers.
import { type Clock, createDeadline, systemClock, withTimeLimit } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { isRedisOutage } from "../core/redis-outage.ts";

/** How long a write is kept; no start is sent again before (TaskTiming.answerKeptForMs). */
const keptForMs = 120_000;
/** About 2 KB each: more than the requests that are under way at a time. */
const keptMax = 1_000;
const againMs = 1_000;
const lastTryMs = 500;

/** What a write says of which task. */
interface WriteSubject {
  readonly taskId: string;
  readonly what: "answer" | "doubt" | "started nothing";
}

interface KeptWrite {
  readonly subject: WriteSubject;
  readonly write: () => Promise<unknown>;
  readonly isLate: () => boolean;
}

/** The kept writes of one process. */
export class KeptWrites implements Component {
  readonly name = "kept writes";
  readonly #log: EventLog;
  readonly #clock: Clock;
  /** The oldest first. */
  readonly #kept: KeptWrite[] = [];
  readonly #ending = new AbortController();
  #writing: Promise<void> | undefined;

  constructor(log: EventLog, clock: Clock = systemClock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Works from the first write on. */
  async start(): Promise<void> {}

  /** Tries a last time, and gives up what Redis does not take. */
  async stop(): Promise<void> {
    this.#ending.abort();
    const tried = this.#writing ?? Promise.resolve();
    await withTimeLimit(tried, lastTryMs, () => new Error("no answer")).catch(() => {});
    for (const one of this.#kept.splice(0)) this.#giveUp(one, new Error("the process ends"));
  }

  /**
   * Writes now. In an outage of Redis it throws, and writes again later: `write` must allow that.
   * `untaken`: why a write changed nothing, unless Redis had it from the first try. That is told.
   */
  async write<Answer>(
    subject: WriteSubject,
    write: () => Promise<Answer>,
    untaken: (answer: Answer) => Promise<string | undefined> | string | undefined = () => undefined,
  ): Promise<Answer> {
    let answer: Answer;
    try {
      answer = await write();
    } catch (error) {
      const writeLate = async () => {
        const late = await untaken(await write());
        if (late !== undefined) throw tooLate(late);
      };
      const isLate = createDeadline(keptForMs, this.#clock);
      if (isRedisOutage(error)) this.#keep({ subject, write: writeLate, isLate }, error);
      throw error;
    }
    const why = await Promise.resolve(untaken(answer)).catch(() => "what Redis has instead cannot be read");
    if (why !== undefined) this.#giveUp({ subject }, tooLate(why));
    return answer;
  }

  /** Whether something is kept of this task: until it is written, nothing may be decided. */
  keeps(taskId: string): boolean {
    return this.#kept.some(({ subject }) => subject.taskId === taskId);
  }

  #keep(one: KeptWrite, error: unknown): void {
    if (this.#kept.length >= keptMax || this.#ending.signal.aborted) {
      this.#giveUp(one, error);
      return;
    }
    this.#kept.push(one);
    this.#writing ??= this.#writeLater();
  }

  async #writeLater(): Promise<void> {
    while (this.#kept.length > 0) {
      await this.#clock.sleep(againMs, this.#ending.signal);
      await this.#writeKept();
    }
    this.#writing = undefined;
  }

  /** Writes what is kept, until Redis fails. */
  async #writeKept(): Promise<void> {
    for (let [oldest] = this.#kept; oldest !== undefined; [oldest] = this.#kept) {
      const { write, isLate } = oldest;
      const error = await write().then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (isRedisOutage(error) && !isLate() && !this.#ending.signal.aborted) return;
      // It may be given up by now.
      if (this.#kept[0] !== oldest) return;
      this.#kept.shift();
      if (error !== undefined) this.#giveUp(oldest, error);
    }
  }

  #giveUp({ subject }: Pick<KeptWrite, "subject">, error: unknown): void {
    this.#log.error("start.unwritten", { ...subject, message: errorText(error) });
  }
}

function tooLate(why: string): Error {
  return new Error(`too late: ${why}`);
}
