// A notice: one message to people, and its delivery to one sink through that sink's durable queue.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";

/**
 * The kinds of notices. `removed`: a sink was notified of a target or a service as bad, and no
 * policy with a sink or heartbeat names it any more.
 */
export const noticeKinds = [
  "outcome",
  "failing",
  "recovered",
  "removed",
  "stale",
  "late",
  "service-down",
  "service-up",
  "token-expiring",
  "drift",
  "unusual",
  "items",
  "digest",
] as const;

const noticeSchema = z.object({
  v: z.literal(1),
  id: z.string().min(1).max(250),
  kind: z.enum([...noticeKinds, "trial"]),
  at: z.iso.datetime(),
  orderKey: z.string().min(1),
  policy: z.string().nullable(),
  service: z.string().nullable(),
  title: z.string().max(300),
  data: z.record(z.string(), z.json()),
  timezone: z.string().exactOptional(),
  link: z.string().exactOptional(),
});

/**
 * `id`: the same for the same message, so a receiver can drop repetitions. `at`: when it happened.
 * `kind`: also `trial`, which `syncline sinks test` sends and no policy causes.
 * `orderKey`: notices of one key reach a sink in order. `data`: at most 16 KiB. `timezone`: in
 * which people read its times. `link`: where to look.
 */
export type Notice = Readonly<z.infer<typeof noticeSchema>>;

/** A notice for one sink. */
export interface AddressedNotice {
  readonly sink: string;
  readonly notice: Notice;
}

/** Hands notices to these sinks, in order. Durable once it resolves; calling twice is safe. */
export type EnqueueNotices = (addressed: readonly AddressedNotice[]) => Promise<void>;

/** Reads a notice from a queue. @throws NewerVersionError or ZodError. */
export function parseNotice(value: unknown): Notice {
  return parseVersioned("notice", noticeSchema, value);
}

const deliverySchema = z.object({ v: z.literal(1), notice: z.unknown(), sinceMs: z.int() });

/** A notice on its way to one sink. `sinceMs`: when it was queued or replayed. */
export interface Delivery {
  readonly v: 1;
  readonly notice: Notice;
  readonly sinceMs: number;
}

/**
 * What becomes of a delivery. `failed`: it goes to the failed list: its sink refused it, it is no
 * notice, or it took too long. `later`: it stays first, and the queue is held for `afterMs`.
 * `back`: it stays first, since this process stops.
 */
export type DeliveryVerdict =
  | { readonly verdict: "delivered" }
  | { readonly verdict: "failed"; readonly reason: string; readonly isRefused?: true }
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

/** Reads a delivery from a queue. @throws NewerVersionError or ZodError. */
export function parseDelivery(value: unknown): Delivery {
  const { notice, ...rest } = parseVersioned("delivery", deliverySchema, value);
  return { ...rest, notice: parseNotice(notice) };
}
