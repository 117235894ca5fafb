// What Syncline remembers of a declared object: what it applied, what the service returned and
// refused. Made by apply/, kept by store/.
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

/**
 * A field that was changed, or may have been. `isDrift`: it was changed outside Syncline after it
 * had been applied. `before` is valid only with `isBeforeKnown`.
 */
export type FieldChange = Readonly<z.infer<typeof changeSchema>>;

/**
 * A field that the service did not take, with the value. `refused`: status 400. `ignored`: a good
 * answer, but the old value (`before`) stayed. `said`: the service's words, at most 200 characters.
 */
export type Refusal = Readonly<z.infer<typeof refusalSchema>>;

/**
 * The memory of a declared object (version 1). `applied`: the declared fields as last seen in
 * place. `returned`: the declarable fields of the last PUT's answer; `etag`: of that entity.
 * `sent`: fields that went out and are not answered yet. `changed`: what task `by` changed, so that
 * a repeated task reports the same. `refused`: by field.
 */
export type AppliedRecord = Readonly<z.infer<typeof appliedRecordSchema>>;

/**
 * A field that this service refuses on every object of its kind, in its words. `atMs`: when it did.
 */
export interface ReadOnlyField {
  readonly field: string;
  readonly said: string;
  readonly atMs: number;
  /** False: the service refused the field sent alone, but did not say why. */
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
