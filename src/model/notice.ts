// A notice: one message to people. notify/ makes it from outcomes and new items; a durable queue of
// each sink carries it.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";

/**
 * The kinds of notices. `outcome`: how one task ended. `failing`, `recovered`: the health of a
 * policy. `removed`: an earlier notice was about a sync job that the policy does not name any more.
 * `stale`: no success for two intervals. `service-down`, `service-up`: one notice for all policies
 * of a service. `token-expiring`, `drift`: as they say. `items`: new items of a followed list, for
 * sinks that want them.
 */
export const noticeKinds = [
  "outcome",
  "failing",
  "recovered",
  "removed",
  "stale",
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
 * A notice (version 1). `id`: the same for the same message, so a receiver can drop repetitions.
 * `at`: when it happened, ISO 8601 UTC. `orderKey`: notices of one key reach a sink in order.
 * `title`: one line of plain text without secrets. `data`: the fields of the outcome or of the
 * kind, at most 16 KiB.
 */
export type Notice = Readonly<z.infer<typeof noticeSchema>>;

/**
 * Hands notices to these sinks, in order. Durable once it resolves; a sink drops a notice that it
 * has, so calling twice is safe. A sink that is not configured any more is skipped and logged.
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
