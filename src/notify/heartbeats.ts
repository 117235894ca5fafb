// Dead man's switches: asks a policy's heartbeat URL after its success. Redis holds what is due, so
// it survives a process; only the latest success counts. The replica with the notifier's lease runs
// it; it delays no other work.
import { fewAtATime } from "../core/batcher.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import type { Pinger } from "../service/ping.ts";

/** What heartbeats need of the notifier's store. */
interface HeartbeatStore {
  nowMs(): Promise<number>;
  texts(part: "heartbeats"): Promise<Map<string, string>>;
  sent(policy: string, text: string): Promise<void>;
}

/** What heartbeats need. */
export interface HeartbeatOptions {
  readonly notifyStore: HeartbeatStore;
  /** The URL of a policy; undefined when it has none, or is not loaded yet. */
  readonly urlOf: (policy: string) => string | undefined;
  readonly ping: Pinger["ping"];
  readonly log: EventLog;
  readonly clock?: Pick<Clock, "sleep">;
}

const atOnce = 8;
const triesMax = 3;
const triesApartMs = 5_000;
/** The receiver has noticed the silence after an earlier success: that must not end it. */
const freshMs = 3_600_000;
/** Longer than replicas need to adopt new policies. */
const unknownForMs = 600_000;

/** Sends the heartbeats that are due. */
export class Heartbeats {
  readonly #options: HeartbeatOptions;
  readonly #stopping = new AbortController();
  #busy: Promise<void> | undefined;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  /** Sends what is due, unless it is sending already. Resolves when that is done. */
  runOnce(): Promise<void> {
    this.#busy ??= this.#sendAll()
      .catch((error: unknown) => this.#warn("", errorText(error)))
      .finally(() => {
        this.#busy = undefined;
      });
    return this.#busy;
  }

  /** Stops sending; the next holder of the lease sends the rest. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#busy;
  }

  async #sendAll(): Promise<void> {
    const { notifyStore } = this.#options;
    const due = await notifyStore.texts("heartbeats");
    const send = ([policy, text]: readonly [string, string]) => this.#send(policy, text);
    await fewAtATime(due, atOnce, send, this.#stopping.signal);
  }

  /** `text`: when the success was recorded. */
  async #send(policy: string, text: string): Promise<void> {
    const { urlOf, ping, notifyStore, clock = systemClock } = this.#options;
    // Its turn may come long after the pass began.
    const ageMs = (await notifyStore.nowMs()) - Number(text);
    const { signal } = this.#stopping;
    const isKnown = urlOf(policy) !== undefined;
    if (!isKnown && ageMs < unknownForMs) return;
    const isOld = ageMs >= freshMs;
    let problem = isOld && isKnown ? "not asked: the success is over an hour old" : undefined;
    for (let attempt = 1; attempt <= triesMax && !isOld; attempt += 1) {
      const url = urlOf(policy);
      problem = url === undefined ? undefined : await ping(url, signal);
      if (problem === undefined) break;
      if (attempt < triesMax) await clock.sleep(triesApartMs, signal);
      if (signal.aborted) return;
    }
    if (problem !== undefined) this.#warn(policy, problem);
    // Removed after the last try, too: the next success asks again, and the receiver notices the
    // silence.
    await notifyStore.sent(policy, text);
  }

  #warn(policy: string, message: string): void {
    this.#options.log.warn("heartbeat.failed", { policy, message });
  }
}
