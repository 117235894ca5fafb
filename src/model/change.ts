// A change by hand, for the audit. Written by cli/, kept by store/changes.ts, shown by `syncline
// changes`.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";

const changeSchema = z.object({
  v: z.literal(1),
  at: z.iso.datetime(),
  actor: z.string(),
  what: z.string(),
  subject: z.string(),
  reason: z.string().nullable(),
  before: z.unknown(),
  after: z.unknown(),
});

/**
 * A change by hand (version 1). `at`: by Redis's clock, ISO 8601 UTC. `actor`: `user@host`. `what`:
 * the command, such as `pause` or `failed replay`. `subject`: its object, in words. `before`,
 * `after`: the old and new state, where that is short.
 */
export type Change = Readonly<z.infer<typeof changeSchema>>;

/** The longest reason, in characters. */
export const reasonCharactersMax = 500;

/**
 * Reads a change from Redis.
 * @throws NewerVersionError for one of a newer version; ZodError when it is none.
 */
export function parseChange(value: unknown): Change {
  return parseVersioned("change", changeSchema, value);
}
