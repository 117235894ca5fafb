// Limits log lines about single items to 20 a minute and feed. Counts are never sampled:
// `feed.walked` and the metrics have all of them. One a process, made by app.ts, used by
// walk-feed.ts.
import { type Feed, feedId } from "../model/feed.ts";

const linesMax = 20;
const windowMs = 60_000;
const feedsMax = 1_000;

/** Counts the lines of each feed. */
export class ItemSampling {
  readonly #windows = new Map<string, { readonly sinceMs: number; lines: number }>();

  /** Takes one line of a feed's minute; false when none is left. */
  take(feed: Feed, nowMs: number): boolean {
    const id = feedId(feed);
    let window = this.#windows.get(id);
    if (window === undefined || nowMs - window.sinceMs >= windowMs) {
      if (this.#windows.size >= feedsMax) this.#windows.clear();
      window = { sinceMs: nowMs, lines: 0 };
      this.#windows.set(id, window);
    }
    window.lines += 1;
    return window.lines <= linesMax;
  }
}
