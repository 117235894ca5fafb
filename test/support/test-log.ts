// A log that tests wait on.
import type { EventFields, EventLog } from "../../src/core/event-log.ts";
import type { Outcome } from "../../src/model/outcome.ts";
import { LimitedWait } from "./limited-wait.ts";

/** One event of the log. */
export type LoggedEvent = EventFields & { readonly event: string; readonly level: "info" | "warn" | "error" };

const toldEventsMax = 20;

/** A log that keeps its events and wakes those who wait for one. */
export class TestLog implements EventLog {
  readonly events: LoggedEvent[] = [];
  readonly #wait = new LimitedWait(() => this.#last());

  info = (event: string, fields: EventFields = {}) => this.#add({ ...fields, event, level: "info" });
  warn = (event: string, fields: EventFields = {}) => this.#add({ ...fields, event, level: "warn" });
  error = (event: string, fields: EventFields = {}) => this.#add({ ...fields, event, level: "error" });

  /** Waits for the first event that fits, from the beginning. Fails after too long. */
  until(fits: (event: LoggedEvent) => boolean): Promise<LoggedEvent> {
    return this.#wait.until(() => this.events.find(fits), fits);
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
    this.#wait.wake();
  }

  #last(): string {
    return this.events
      .slice(-toldEventsMax)
      .map((event) => JSON.stringify(event))
      .join("\n");
  }
}
