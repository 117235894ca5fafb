// The outcomes that this process recorded lately, so that it can write again what Redis has forgotten: the queue may keep the end of a task
// whose outcome was among the lost writes, and then nobody comes back to it. Between the recorder and the history; told of another Redis by
// app/redis-guard.ts. Never tells an outcome, and never changes one that stands.
import type { Clock } from "../core/clock.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import type { Recorded, SettleFrom } from "../store/history.ts";
import type { PollNote } from "../store/poll-memories.ts";
import type { Outcome } from "../tasks/outcome.ts";
import type { OutcomeHistory } from "./recorder.ts";

/** Longer than a replica may lag (`min-replicas-max-lag 10`) or a disk keeps a second's writes back. */
const rememberedMs = 30_000;
/** About 1 KB each. */
const rememberedMax = 5_000;
/** So many are written again at a time. */
const togetherMax = 100;

interface Remembered {
  readonly outcome: Outcome;
  readonly from: SettleFrom | undefined;
  readonly poll: PollNote | undefined;
  readonly atMs: number;
}

/** A history that can be told again. */
export class RecentOutcomes implements OutcomeHistory {
  readonly #history: OutcomeHistory;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #log: EventLog;
  /** By task, the oldest first. */
  readonly #recent = new Map<string, Remembered>();

  constructor(
    history: OutcomeHistory,
    { clock, log }: { readonly clock: Pick<Clock, "monotonicMs">; readonly log: EventLog },
  ) {
    this.#history = history;
    this.#clock = clock;
    this.#log = log;
  }

  /** As the history does; what it took is remembered for a while. */
  async record(outcome: Outcome, from?: SettleFrom, poll?: PollNote): Promise<Recorded> {
    const recorded = await this.#history.record(outcome, from, poll);
    if (isWritten(recorded)) this.#remember({ outcome, from, poll, atMs: this.#clock.monotonicMs() });
    return recorded;
  }

  /** As the history does. */
  told(taskIds: readonly string[]): Promise<void> {
    return this.#history.told(taskIds);
  }

  /** As the history does. */
  untold(taskId: string): Promise<Outcome | number | undefined> {
    return this.#history.untold(taskId);
  }

  /**
   * Writes what may be lost again; where it stands nothing happens. `lastSeenMs`: when Redis was seen to have its memory last, by the
   * monotonic clock. Never throws: what cannot be written now is tried again with the next Redis.
   */
  async restore(lastSeenMs: number): Promise<void> {
    const mayBeLost = [...this.#recent.values()].filter(({ atMs }) => atMs >= lastSeenMs - rememberedMs);
    let count = 0;
    try {
      for (let at = 0; at < mayBeLost.length; at += togetherMax) {
        const portion = mayBeLost.slice(at, at + togetherMax);
        const restored = (await Promise.all(portion.map((one) => this.#restoreOne(one)))).flat();
        count += restored.length;
        await this.#history.told(restored);
      }
    } catch (error) {
      this.#log.warn("outcome.not-restored", { message: errorText(error) });
    }
    if (count > 0) this.#log.warn("outcome.restored", { count });
  }

  /**
   * What was sent stays true, whatever the journal has forgotten of it. That nothing was sent is true only where the journal still shows
   * what that rested on: else somebody may have sent since.
   */
  async #restoreOne({ outcome, from, poll }: Remembered): Promise<string[]> {
    const wasSent = outcome.startedAt !== null;
    return isWritten(await this.#history.record(outcome, wasSent ? undefined : from, poll)) ? [outcome.taskId] : [];
  }

  #remember(one: Remembered): void {
    this.#recent.set(one.outcome.taskId, one);
    for (const [taskId, { atMs }] of this.#recent) {
      if (this.#recent.size <= rememberedMax && atMs >= one.atMs - rememberedMs) break;
      this.#recent.delete(taskId);
    }
  }
}

function isWritten(recorded: Recorded): boolean {
  return recorded === "recorded" || recorded === "recorded-awaited";
}
