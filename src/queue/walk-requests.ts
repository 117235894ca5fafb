// Many tasks ask for the walk of the same feed at nearly the same time: the first one is passed on at once, the others of the
// next quarter of a second together, as one, at its end. Called by producer.ts; a feed has a gap of a second between walks anyway.
import type { Clock } from "../core/clock.ts";
import { type FeedWalk, feedId } from "../tasks/feed.ts";

/** Asks the queue for one walk. */
type AskForWalk = (walk: FeedWalk, options: { readonly hurry: boolean }) => Promise<void>;

/** What gathered requests need. `onFailure`: a request for several tasks failed; each of them asks again at its next step. */
export interface WalkRequestsOptions {
  readonly ask: AskForWalk;
  readonly clock: Pick<Clock, "sleep">;
  readonly onFailure: (error: unknown) => void;
}

interface Gathered {
  asked: boolean;
  hurry: boolean;
}

const gatherMs = 250;

/** The requests for walks of one process. */
export class WalkRequests {
  readonly #options: WalkRequestsOptions;
  readonly #gathering = new Map<string, Gathered>();
  readonly #closed = new AbortController();

  constructor(options: WalkRequestsOptions) {
    this.#options = options;
  }

  /** Sees to it that the feed is walked; resolves when that is asked for, or sure to be asked for soon. */
  async walk(walk: FeedWalk, { hurry }: { readonly hurry: boolean }): Promise<void> {
    const gathered = this.#gathering.get(feedId(walk));
    if (gathered !== undefined) {
      gathered.asked = true;
      gathered.hurry ||= hurry;
      return;
    }
    this.#gather(walk);
    await this.#options.ask(walk, { hurry });
  }

  /** What is gathered is not asked for any more. */
  close(): void {
    this.#closed.abort();
  }

  #gather(walk: FeedWalk): void {
    const gathered: Gathered = { asked: false, hurry: false };
    this.#gathering.set(feedId(walk), gathered);
    const pass = async () => {
      await this.#options.clock.sleep(gatherMs, this.#closed.signal);
      this.#gathering.delete(feedId(walk));
      if (gathered.asked && !this.#closed.signal.aborted) await this.walk(walk, gathered);
    };
    pass().catch(this.#options.onFailure);
  }
}
