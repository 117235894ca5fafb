// How many lines about single items a feed may write: 20 a minute, however many appear. Made by app.ts, one a process, asked by
// walk-feed.ts. Counts are never sampled: `feed.walked` and the metrics have all of them.
import { type Feed, feedId } from "../tasks/feed.ts";

const linesMax = 20;
const windowMs = 60_000;
const feedsMax = 1_000;

/** Keeps count of the lines of each feed. */
export class ItemSampling {
  readonly #windows = new Map<string, { readonly sinceMs: number; lines: number }>();

  /** Takes one line of a feed's minute; false when there is none left. */
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
