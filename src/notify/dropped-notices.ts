// Logs notices that a sink's queue had no room for: at the first, then once a minute with their
// number, and when there is room again. The sum of the lines is exact. Called by
// app/running-sinks.ts.
import type { Clock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";

const quietMs = 60_000;

interface DropCount {
  unlogged: number;
  total: number;
  loggedAtMs: number;
}

/** Counts the dropped notices of one process. */
export class DroppedNotices {
  readonly #log: EventLog;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #sinks = new Map<string, DropCount>();

  constructor(log: EventLog, clock: Pick<Clock, "monotonicMs">) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Counts notices without room. */
  dropped(sink: string, count: number): void {
    const nowMs = this.#clock.monotonicMs();
    const dropped = this.#sinks.get(sink) ?? { unlogged: 0, total: 0, loggedAtMs: Number.NEGATIVE_INFINITY };
    dropped.unlogged += count;
    dropped.total += count;
    this.#sinks.set(sink, dropped);
    if (nowMs - dropped.loggedAtMs < quietMs) return;
    dropped.loggedAtMs = nowMs;
    this.#write(sink, dropped);
  }

  /** Notes that all notices had room. */
  hadRoom(sink: string): void {
    const dropped = this.#sinks.get(sink);
    if (dropped === undefined) return;
    this.#write(sink, dropped);
    this.#sinks.delete(sink);
    this.#log.info("sink.has-room", { sink, dropped: dropped.total });
  }

  /** Logs what is not logged yet. */
  flush(): void {
    for (const [sink, dropped] of this.#sinks) this.#write(sink, dropped);
  }

  #write(sink: string, dropped: DropCount): void {
    if (dropped.unlogged > 0) this.#log.error("sink.dropped", { sink, count: dropped.unlogged });
    dropped.unlogged = 0;
  }
}
