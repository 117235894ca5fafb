// What a program does with data of a newer version: nothing. In a rolling upgrade both versions
// share one Redis. Every reader of versioned data throws this; a task goes back to the queue for a
// newer replica.
import type * as z from "zod";
import { UsageError } from "./errors.ts";
import { isJsonObject } from "./json.ts";

/**
 * A newer version of Syncline wrote this. The command line shows the message; a worker returns the
 * task.
 */
export class NewerVersionError extends UsageError {
  /**
   * @param what the kind of data, in the singular.
   * @param version the version that it carries.
   */
  constructor(what: string, version: number) {
    super(`this ${what} is of version ${version}: a newer Syncline wrote it, and only that one can read it`);
  }
}

/**
 * Reads data with its version in `v`; without one it is version 1.
 * @param kind its name in the singular, and the newest known version (default 1).
 * @throws NewerVersionError for a newer version; ZodError for wrong data of a known one.
 */
export function parseVersioned<Schema extends z.ZodType>(
  kind: string | { readonly what: string; readonly newest: number },
  schema: Schema,
  value: unknown,
): z.infer<Schema> {
  const { what, newest } = typeof kind === "string" ? { what: kind, newest: 1 } : kind;
  refuseNewer(what, isJsonObject(value) ? value["v"] : undefined, newest);
  return schema.parse(value);
}

/**
 * Refuses a version above the newest known one.
 * @throws NewerVersionError
 */
export function refuseNewer(what: string, version: unknown, newest = 1): void {
  if (typeof version === "number" && version > newest) throw new NewerVersionError(what, version);
}
