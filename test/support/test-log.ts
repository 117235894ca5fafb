// A log that tests wait on.
import type { EventFields, EventLog } from "../../src/core/event-log.ts";
import type { Outcome } from "../../src/tasks/outcome.ts";

/** One event of the log. */
export type LoggedEvent = EventFields & { readonly event: string; readonly level: "info" | "warn" | "error" };

/** A log that keeps its events and wakes those who wait for one. */
export class TestLog implements EventLog {
  readonly events: LoggedEvent[] = [];
  #waiting: (() => void)[] = [];

  info = (event: string, fields: EventFields = {}) => this.#add({ ...fields, event, level: "info" });
  warn = (event: string, fields: EventFields = {}) => this.#add({ ...fields, event, level: "warn" });
  error = (event: string, fields: EventFields = {}) => this.#add({ ...fields, event, level: "error" });

  /** Waits for the first event that fits, from the beginning. */
  async until(fits: (event: LoggedEvent) => boolean): Promise<LoggedEvent> {
    for (;;) {
      const found = this.events.find(fits);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
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
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}
