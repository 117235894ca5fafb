// The notice: one thing that people are told. Made by telling/ from outcomes and new items, carried to the sinks by a durable queue of each sink.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";

/**
 * What a notice says. `outcome`: how one task ended. `failing` and `recovered`: how a policy fares. `silent`: it had no success for two
 * intervals. `service-down` and `service-up`: one message for all policies of a service. `token-expiring`, `drift`: what their names say. `items`: what is new in
 * a followed list, for sinks that want it.
 */
export const noticeKinds = [
  "outcome",
  "failing",
  "recovered",
  "silent",
  "service-down",
  "service-up",
  "token-expiring",
  "drift",
  "items",
] as const;

const noticeSchema = z.object({
  v: z.literal(1),
  id: z.string().min(1).max(250),
  kind: z.enum(noticeKinds),
  at: z.iso.datetime(),
  orderKey: z.string().min(1),
  policy: z.string().nullable(),
  service: z.string().nullable(),
  title: z.string().max(300),
  data: z.record(z.string(), z.json()),
});

/**
 * One notice (version 1). `id`: the same whenever the same thing is told, so a receiver can drop repetitions. `at`: when it happened, ISO 8601 UTC.
 * `orderKey`: notices of one key reach a sink in the order in which they were handed over. `title`: one line of plain text, without a secret.
 * `data`: the fields of the outcome, or of the kind; bounded by whoever makes it, 16 KiB at most.
 */
export type Notice = Readonly<z.infer<typeof noticeSchema>>;

/**
 * Hands notices to sinks, by the names of the sinks, in this order. Durable when it resolves; a notice that a sink has already is dropped, so calling twice is safe.
 * A sink that is not configured any more is left out and said in the log.
 */
export type DeliverNotices = (
  deliveries: readonly { readonly sink: string; readonly notice: Notice }[],
) => Promise<void>;

/**
 * Reads a notice from a queue.
 * @throws NewerVersionError for one of a newer version; ZodError when it is no notice.
 */
export function parseNotice(value: unknown): Notice {
  return parseVersioned("notice", noticeSchema, value);
}
