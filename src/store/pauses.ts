// The pauses in Redis, also ended ones: the scheduler may plan a slot inside one later.
import { type Pause, type PauseSubject, parsePause, subjectKey } from "../model/pause.ts";
import type { Store } from "./redis.ts";
import { asTexts, asWord, createScript, type ScriptArgument } from "./script.ts";

/** The most pauses in force at once. */
export const pausesMax = 1_000;
/** Ended pauses kept, about 250 bytes each, and for how long: the longest catch-up window. */
const endedMax = 200;
const endedRetentionMs = 31 * 86_400_000;

const changeScript = createScript("change-pause", (answer) => {
  const [word, ...texts] = asTexts(answer);
  return { word: asWord("set", "ended", "full")(word), pauses: texts.map((text) => parsePause(JSON.parse(text))) };
});

/** The pauses in Redis. */
export class Pauses {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Returns the pauses in force, and the newest 200 that ended in the last 31 days. */
  async all(): Promise<Pause[]> {
    const texts = await this.#store.redis.hvals(this.#store.key("pauses"));
    return texts.map((text) => parsePause(JSON.parse(text)));
  }

  /** Sets a pause from now on, in the place of one in force; undefined: there are `pausesMax`. */
  async set(pause: Pick<Pause, "scope" | "name" | "note" | "actor" | "untilMs">): Promise<Pause | undefined> {
    const { untilMs, ...rest } = pause;
    const text = JSON.stringify({ v: 1, ...rest, endedBy: null });
    const { pauses } = await this.#change("set", pause, [text, untilMs ?? "", pause.actor]);
    return pauses[0];
  }

  /** Ends the pause in force now. Answers the ended ones: none when there was no pause. */
  async end(subject: PauseSubject, actor: string): Promise<Pause[]> {
    return (await this.#change("end", subject, ["", "", actor])).pauses;
  }

  #change(what: "set" | "end", subject: PauseSubject, how: readonly ScriptArgument[]) {
    const args = [subjectKey(subject), what, ...how, pausesMax, endedMax, endedRetentionMs];
    return changeScript(this.#store, [this.#store.key("pauses")], args);
  }
}
