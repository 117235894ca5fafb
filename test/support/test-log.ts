// A log that tests wait on.
import type { EventFields, EventLog } from "../../src/core/event-log.ts";
import type { Outcome } from "../../src/model/outcome.ts";

/** One event of the log. */
export type LoggedEvent = EventFields & { readonly event: string; readonly level: "info" | "warn" | "error" };

/**
 * Shorter than the time of a test that waits (vitest.config.ts), so that the error says what there
 * was instead.
 */
const untilMsMax = 90_000;
const toldEventsMax = 20;

/** A log that keeps its events and wakes those who wait for one. */
export class TestLog implements EventLog {
  readonly events: LoggedEvent[] = [];
  #waiting: (() => void)[] = [];

  info = (event: string, fields: EventFields = {}) => this.#add({ ...fields, event, level: "info" });
  warn = (event: string, fields: EventFields = {}) => this.#add({ ...fields, event, level: "warn" });
  error = (event: string, fields: EventFields = {}) => this.#add({ ...fields, event, level: "error" });

  /**
   * Waits for the first event that fits, from the beginning. Fails after a minute and a half with
   * the last events.
   */
  async until(fits: (event: LoggedEvent) => boolean): Promise<LoggedEvent> {
    let isInVain = false;
    const limit = setTimeout(() => {
      isInVain = true;
      this.#wake();
    }, untilMsMax);
    try {
      for (;;) {
        const found = this.events.find(fits);
        if (found !== undefined) return found;
        if (isInVain) throw new Error(`waited in vain for ${fits}; last came:\n${this.#last()}`);
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
    } finally {
      clearTimeout(limit);
    }
  }

  /** The outcomes of a policy so far. */
  outcomesOf(policy: string): Outcome[] {
    return this.named("task.finished")
      .filter((event) => event["policy"] === policy)
      .map(({ event: _event, level: _level, ...outcome }) => ({ v: 1, ...outcome }) as unknown as Outcome);
  }

  named(event: string): LoggedEvent[] {
    return this.events.filter((one) => one.event === event);
  }

  #add(event: LoggedEvent): void {
    this.events.push(event);
    this.#wake();
  }

  #last(): string {
    return this.events
      .slice(-toldEventsMax)
      .map((event) => JSON.stringify(event))
      .join("\n");
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}
