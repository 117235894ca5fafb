// The interface of a sink: it takes one notice a call.
import type { Notice } from "../model/notice.ts";

/** What a receiver answered: its HTTP or SMTP status, and the beginning of what it said. */
interface Answer {
  readonly status?: number;
  readonly said?: string;
}

/**
 * The result of one try. `refused`: this notice will never be taken, others may be. `later`: no
 * notice would be taken now; `afterMs`: the receiver's own wait. `stopped`: by this process.
 * `refusedFor`: recipients that do not get it although others do, each with why.
 */
export type Receipt =
  | (Answer & { readonly type: "taken"; readonly refusedFor?: readonly string[] })
  | (Answer & { readonly type: "refused"; readonly reason: string })
  | (Answer & { readonly type: "later"; readonly reason: string; readonly afterMs?: number | undefined })
  | { readonly type: "stopped" };

/** One sink. Its reasons contain no secret and no path or query of a URL. */
export interface Sink {
  /** Makes one try. Throws only on a bug. */
  deliver(notice: Notice, signal: AbortSignal): Promise<Receipt>;
  close(): void;
}
