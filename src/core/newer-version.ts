// What a program does with data of a newer version: nothing. In a rolling upgrade both versions
// share one Redis; a worker returns such a task to the queue for a newer replica.
import type * as z from "zod";
import { UsageError } from "./errors.ts";
import { isJsonObject } from "./json.ts";

/** A newer version of Syncline wrote this. `what`: the kind of data, in the singular. */
export class NewerVersionError extends UsageError {
  constructor(what: string, version: number) {
    super(`this ${what} is of version ${version}: a newer Syncline wrote it, and only that one can read it`);
  }
}

/**
 * Reads data with its version in `v`; without one it is version 1.
 * @throws NewerVersionError for a newer version; ZodError for wrong data of a known one.
 */
export function parseVersioned<Schema extends z.ZodType>(
  what: string,
  schema: Schema,
  value: unknown,
): z.infer<Schema> {
  refuseNewer(what, isJsonObject(value) ? value["v"] : undefined);
  return schema.parse(value);
}

/** Refuses a version above the newest known one. @throws NewerVersionError */
export function refuseNewer(what: string, version: unknown, newest = 1): void {
  if (typeof version === "number" && version > newest) throw new NewerVersionError(what, version);
}
