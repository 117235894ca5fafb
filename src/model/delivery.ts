// A delivery: one notice on its way to one sink, as it stands in that sink's queue. Made by
// queue/notice-queues.ts, judged by notify/.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";
import { type Notice, parseNotice } from "./notice.ts";

const deliverySchema = z.object({ v: z.literal(1), notice: z.unknown(), sinceMs: z.int() });

/**
 * A delivery (version 1). `sinceMs`: when it was queued or replayed; the time for its tries counts
 * from there.
 */
export interface Delivery {
  readonly v: 1;
  readonly notice: Notice;
  readonly sinceMs: number;
}

/**
 * What becomes of a delivery. `failed`: it goes to the failed list. `later`: it stays first, and
 * the queue cools down for `afterMs`. `back`: it stays first without a cool-down, since this
 * process stops.
 */
export type DeliveryVerdict =
  | { readonly verdict: "delivered" }
  | { readonly verdict: "failed"; readonly reason: string }
  | { readonly verdict: "later"; readonly reason: string; readonly afterMs: number }
  | { readonly verdict: "back" };

/** One try. `tries`: all of them with this one, from 1. */
export interface DeliveryTry {
  readonly tries: number;
  readonly signal: AbortSignal;
}

/** A failed delivery. */
export interface FailedDelivery {
  readonly sink: string;
  readonly notice: Notice;
  readonly reason: string;
  readonly failedAtMs: number;
  readonly tries: number;
}

/**
 * Reads a delivery from a queue.
 * @throws NewerVersionError for one of a newer version; ZodError when it is none.
 */
export function parseDelivery(value: unknown): Delivery {
  const { notice, ...rest } = parseVersioned("delivery", deliverySchema, value);
  return { ...rest, notice: parseNotice(notice) };
}
