// Merges the requests for the walk of a feed: many runs ask for the same one.
import type { Clock } from "../core/clock.ts";
import { type FeedWalk, feedId } from "../model/feed.ts";

/** What a debouncer needs. `onFailure`: a merged request failed; tasks ask again anyway. */
interface WalkDebouncerOptions {
  readonly ask: (walk: FeedWalk, options: { readonly hurry: boolean }) => Promise<void>;
  readonly clock: Pick<Clock, "sleep">;
  readonly onFailure: (error: unknown) => void;
}

interface PendingWalk {
  asked: boolean;
  hurry: boolean;
}

const debounceMs = 250;

/** The first request for a walk goes out at once, those of the next 250 ms together. */
export class WalkDebouncer {
  readonly #options: WalkDebouncerOptions;
  readonly #pending = new Map<string, PendingWalk>();
  readonly #closed = new AbortController();

  constructor(options: WalkDebouncerOptions) {
    this.#options = options;
  }

  /** Resolves when the request for a walk is in the queue, or sure to go soon. */
  async walk(walk: FeedWalk, { hurry }: { readonly hurry: boolean }): Promise<void> {
    const pending = this.#pending.get(feedId(walk));
    if (pending !== undefined) {
      pending.asked = true;
      pending.hurry ||= hurry;
      return;
    }
    this.#debounce(walk);
    await this.#options.ask(walk, { hurry });
  }

  /** Drops the merged requests. */
  close(): void {
    this.#closed.abort();
  }

  #debounce(walk: FeedWalk): void {
    const pending: PendingWalk = { asked: false, hurry: false };
    this.#pending.set(feedId(walk), pending);
    const flush = async () => {
      await this.#options.clock.sleep(debounceMs, this.#closed.signal);
      this.#pending.delete(feedId(walk));
      if (pending.asked && !this.#closed.signal.aborted) await this.walk(walk, pending);
    };
    flush().catch(this.#options.onFailure);
  }
}
