// Logs notices that a sink's queue had no room for: at the first, then once a minute with their
// number, and when there is room again. The sum of the lines is exact. Called by
// app/running-sinks.ts.
import type { Clock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";

const quietMs = 60_000;

/** Counts the dropped notices of one process. */
export class DroppedNotices {
  readonly #log: EventLog;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #sinks = new Map<string, { untold: number; total: number; toldAtMs: number }>();

  constructor(log: EventLog, clock: Pick<Clock, "monotonicMs">) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Counts notices without room. */
  dropped(sink: string, count: number): void {
    const nowMs = this.#clock.monotonicMs();
    const tally = this.#sinks.get(sink) ?? { untold: 0, total: 0, toldAtMs: Number.NEGATIVE_INFINITY };
    tally.untold += count;
    tally.total += count;
    this.#sinks.set(sink, tally);
    if (nowMs - tally.toldAtMs < quietMs) return;
    tally.toldAtMs = nowMs;
    this.#tell(sink, tally);
  }

  /** Notes that all notices had room. */
  hadRoom(sink: string): void {
    const tally = this.#sinks.get(sink);
    if (tally === undefined) return;
    this.#tell(sink, tally);
    this.#sinks.delete(sink);
    this.#log.info("sink.has-room", { sink, dropped: tally.total });
  }

  /** Logs what is not logged yet. */
  flush(): void {
    for (const [sink, tally] of this.#sinks) this.#tell(sink, tally);
  }

  #tell(sink: string, tally: { untold: number }): void {
    if (tally.untold > 0) this.#log.error("sink.dropped", { sink, count: tally.untold });
    tally.untold = 0;
  }
}
