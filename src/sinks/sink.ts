// What a sink is: something that a notice is handed to, once a call. Made by create-sink.ts, used by process-delivery.ts.
import type { Notice } from "../tasks/notice.ts";

/**
 * What came of one try. `taken`: it is there. `refused`: this very notice will never be taken, others may. `later`: nothing would be
 * taken now; `afterMs` is the receiver's own wish. `cancelled`: this process stopped it.
 */
export type Receipt =
  | { readonly type: "taken" }
  | { readonly type: "refused"; readonly reason: string }
  | { readonly type: "later"; readonly reason: string; readonly afterMs?: number | undefined }
  | { readonly type: "cancelled" };

/** One sink. Reasons name no secret and no path or query of a URL. */
export interface Sink {
  /** Makes one try. Throws only on a bug. */
  deliver(notice: Notice, signal: AbortSignal): Promise<Receipt>;
  close(): void;
}
