// What Syncline remembers of a declared object: what it applied, what the service answered.
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
  sent: z.array(changeSchema.extend({ by: z.string().default("") })),
  changed: z.array(changeSchema),
  by: z.string(),
  refused: z.record(z.string(), refusalSchema),
  createdAtMs: z.int().exactOptional(),
});

/** A field that was changed, or may have been. `isDrift`: it had been changed outside Syncline. */
export type FieldChange = Readonly<z.infer<typeof changeSchema>>;

/** A value that the service refused (400), or ignored: a good answer, but `before` stayed. */
export type FieldRefusal = Readonly<z.infer<typeof refusalSchema>>;

/**
 * `applied`: the declared fields as last seen in place. `returned`, `etag`: of the last PUT's
 * answer. `sent`: fields not answered yet, each with the task that sent it. `changed`: by task
 * `by`, which may be repeated. `createdAtMs`: when the service made the target of an update, since
 * it had none with this id.
 */
export type AppliedRecord = Readonly<z.infer<typeof appliedRecordSchema>>;

/** A field that this service refuses on every object of its kind, in its words. */
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

/** Reads a record from Redis. @throws NewerVersionError or ZodError. */
export function parseAppliedRecord(value: unknown): AppliedRecord {
  return parseVersioned("applied record", appliedRecordSchema, value);
}
