// A digest as the notifier keeps it. create-notifier.ts writes it; queries/sinks.ts shows the last
// sending.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";

const digestStateSchema = z.object({
  v: z.literal(1),
  slotMs: z.int(),
  schedule: z.string(),
  changedMs: z.int().exactOptional(),
  sent: z.object({ atMs: z.int(), id: z.string(), to: z.array(z.string()) }).nullable(),
});

/**
 * A digest as the notifier keeps it: up to which slot it has reported, a hash of its schedule, when
 * that was changed (undefined: not since that slot), and the last notice.
 */
export type DigestState = Readonly<z.infer<typeof digestStateSchema>>;

/** Reads a kept state. @throws NewerVersionError or ZodError. */
export function parseDigestState(text: string): DigestState {
  return parseVersioned("digest state", digestStateSchema, JSON.parse(text));
}
