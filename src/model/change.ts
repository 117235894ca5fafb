// A change by hand, for the audit: written before it is made, completed after; shown by
// `syncline changes`.
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
  isBegun: z.literal(true).exactOptional(),
  from: z.object({ address: z.string(), requestId: z.string() }).exactOptional(),
});

/**
 * `at`: by Redis. `actor`: `user@host`, or the name of a caller. `what`: the command. `before`,
 * `after`: if short. `isBegun`: its end is not recorded. `from`: the request over HTTP.
 */
export type Change = Readonly<z.infer<typeof changeSchema>>;

/** Changes kept, about 500 bytes each. */
export const changesMax = 5_000;

/** The longest reason, in characters. */
export const reasonCharactersMax = 500;

/** Why it was made, and that its end is not known; empty when there is nothing to say. */
export function describeReason({ reason, isBegun }: Pick<Change, "reason" | "isBegun">): string {
  return [reason ?? "", isBegun ? "begun, its end is not known" : ""].filter((text) => text !== "").join("; ");
}

/** Reads a change from Redis. @throws NewerVersionError or ZodError. */
export function parseChange(value: unknown): Change {
  return parseVersioned("change", changeSchema, value);
}
