// What a program does with data that a newer one wrote: nothing. In a rolling upgrade both run at once on one Redis.
// Thrown by every reader of versioned data; a task that meets it is put back for a replica that can read it.
import type * as z from "zod";
import { UsageError } from "./errors.ts";
import { isJsonObject } from "./json.ts";

/** A newer version of Syncline wrote this. The command line shows the message; a worker puts the task back, delayed. */
export class NewerVersionError extends UsageError {
  /** @param what the kind of data, in the singular. @param version the version that it says to have. */
  constructor(what: string, version: number) {
    super(`this ${what} is of version ${version}: a newer Syncline wrote it, and only that one can read it`);
  }
}

/**
 * Reads data that carries its version as `v`. Data without one is older than the field and read as version 1.
 * @param kind its name in the singular, and the newest version of it that is known: 1 unless said.
 * @throws NewerVersionError when the version is above the newest one known; ZodError when it is of a known version and wrong.
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

/** Refuses a version above the newest one that is known. @throws NewerVersionError */
export function refuseNewer(what: string, version: unknown, newest = 1): void {
  if (typeof version === "number" && version > newest) throw new NewerVersionError(what, version);
}
