// What Syncline remembers of one declared object: what it applied, what the service returned, what it refused. Worked on by declared/, kept by store/.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";

const changeSchema = z.object({
  field: z.string(),
  before: z.string().nullable(),
  isBeforeKnown: z.boolean(),
  after: z.string(),
  isDrift: z.boolean(),
});

const refusalSchema = z.object({
  value: z.string(),
  how: z.enum(["refused", "ignored"]),
  before: z.string().nullable(),
  said: z.string(),
  atMs: z.int(),
});

const appliedRecordSchema = z.object({
  v: z.literal(1),
  applied: z.record(z.string(), z.string()),
  returned: z.record(z.string(), z.string().nullable()),
  etag: z.string().nullable(),
  sent: z.array(changeSchema),
  changed: z.array(changeSchema),
  by: z.string(),
  refused: z.record(z.string(), refusalSchema),
});

/** One field that was changed, or may have been. `isDrift`: it had been applied before and somebody else changed it. `before` says nothing unless `isBeforeKnown`. */
export type FieldChange = Readonly<z.infer<typeof changeSchema>>;

/**
 * A field that the service did not take, with this value. `refused`: status 400. `ignored`: a good answer, and the old value (`before`) stayed.
 * `said`: the service's own words, at most 200 characters.
 */
export type Refusal = Readonly<z.infer<typeof refusalSchema>>;

/**
 * The memory of one declared object (version 1). `applied`: what the declared fields were when they were last seen in place. `returned`: the
 * declarable fields of the entity that the last PUT answered. `etag`: of that entity. `sent`: went out without an answer so far.
 * `changed`: what the task `by` changed, so that a task that is delivered again tells the same. `refused`: by field.
 */
export type AppliedRecord = Readonly<z.infer<typeof appliedRecordSchema>>;

/** A field that cannot be set on any object of its kind at this service, in the service's words. `atMs`: when that was learned. */
export interface ReadOnlyField {
  readonly field: string;
  readonly said: string;
  readonly atMs: number;
  /** False: it was refused when it was sent alone, but the service did not say why. */
  readonly isCertain: boolean;
}

/** The memory of an object that was never applied. */
export const noRecord: AppliedRecord = {
  v: 1,
  applied: {},
  returned: {},
  etag: null,
  sent: [],
  changed: [],
  by: "",
  refused: {},
};

/**
 * Reads a record from Redis.
 * @throws NewerVersionError for one of a newer version; ZodError when it is none.
 */
export function parseAppliedRecord(value: unknown): AppliedRecord {
  return parseVersioned("applied record", appliedRecordSchema, value);
}
