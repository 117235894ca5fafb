// Remembers the outcomes that this process recorded lately, to write again what Redis has lost: the
// queue may have kept the end of a task whose outcome is gone. Stands between the recorder and the
// history; app/redis-guard.ts calls `restore`. Never publishes an outcome.
import type { Clock } from "../core/clock.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import type { Outcome } from "../model/outcome.ts";
import type { OutcomeName, RecordResult, SettleFrom } from "../store/history.ts";
import type { PollNote } from "../store/poll-store.ts";
import { isWritten, type OutcomeHistory } from "./recorder.ts";

/** Longer than a replica may lag (`min-replicas-max-lag 10`) or a disk delays a second's writes. */
const rememberedMs = 30_000;
/** About 1 KB each. */
const rememberedMax = 5_000;
/** The batch that is written again at once. */
const batchMax = 100;

interface Remembered {
  readonly outcome: Outcome;
  readonly from: SettleFrom | undefined;
  readonly poll: PollNote | undefined;
  readonly atMs: number;
}

/** A history that remembers its latest outcomes. */
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

  /** As the history does; a recorded outcome is remembered for a while. */
  async record(outcome: Outcome, from?: SettleFrom, poll?: PollNote): Promise<RecordResult> {
    const recorded = await this.#history.record(outcome, from, poll);
    if (isWritten(recorded)) this.#remember({ outcome, from, poll, atMs: this.#clock.monotonicMs() });
    return recorded;
  }

  /** As the history does. */
  recordAlone(outcome: Outcome): Promise<boolean> {
    return this.#history.recordAlone(outcome);
  }

  /** As the history does. */
  published(taskIds: readonly string[]): Promise<void> {
    return this.#history.published(taskIds);
  }

  /** As the history does. */
  claimUnpublished(task: OutcomeName): Promise<Outcome | number | undefined> {
    return this.#history.claimUnpublished(task);
  }

  /** Writes again what may be lost since `lastSeenMs` (monotonic clock). Never throws. */
  async restore(lastSeenMs: number): Promise<void> {
    const mayBeLost = [...this.#recent.values()].filter(({ atMs }) => atMs >= lastSeenMs - rememberedMs);
    let count = 0;
    try {
      for (let at = 0; at < mayBeLost.length; at += batchMax) {
        const batch = mayBeLost.slice(at, at + batchMax);
        const restored = (await Promise.all(batch.map((one) => this.#restoreOne(one)))).flat();
        count += restored.length;
        await this.#history.published(restored);
      }
    } catch (error) {
      this.#log.warn("outcome.not-restored", { message: errorText(error) });
    }
    if (count > 0) this.#log.warn("outcome.restored", { count });
  }

  /** "Sent" stays true; "not sent" only while the journal still shows `from`. */
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
