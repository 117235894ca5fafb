// The parts of the policy schema: keys with their descriptions, names, durations, time zones,
// expressions. Each has its own message; schema-problems.ts has the one for missing values.
import { z } from "zod";
import { durationPattern, formatDuration, parseDuration, parseWallText } from "../../core/duration.ts";
import { isZone } from "../../core/instant.ts";
import { policyLimits } from "../rules/policy-limits.ts";

const wallTimeForm =
  "a local date and time such as 2026-12-01T06:00, without an offset: say the zone with schedule.timezone";

/** Names of policies, services and sinks: they become parts of task ids, metric labels and URLs. */
export const namePattern = /^(?!\d+$)[a-z0-9][a-z0-9-]{0,62}$/;

/** Names and values of labels: a shell and a metric label take them as they are. */
const labelPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

/** A required key: what it says, and an example. */
export function required<Schema extends z.ZodType>(schema: Schema, description: string, example: unknown): Schema {
  return schema.meta({ description, examples: [example] });
}

/** An optional key. `fallback`: the default that the reference shows. */
export function optional<Schema extends z.ZodType>(
  schema: Schema,
  description: string,
  example: unknown,
  fallback?: unknown,
): z.ZodExactOptional<Schema> {
  const shown = fallback === undefined ? {} : { default: fallback };
  return maybe(schema.meta({ description, ...shown, examples: [example] }));
}

/**
 * A key that may be missing. `exactOptional` alone tries all that the key may hold on nothing, and
 * most keys of most policies are missing.
 */
export function maybe<Schema extends z.ZodType>(schema: Schema): z.ZodExactOptional<Schema> {
  return schema.optional() as unknown as z.ZodExactOptional<Schema>;
}

/** One message for every wrong value, none for a missing one. */
export function unlessMissing(message: string): { error: (issue: { readonly input?: unknown }) => string | undefined } {
  return { error: (issue) => (issue.input === undefined ? undefined : message) };
}

/** A name: 1 to 63 of a-z, 0-9 and hyphen, not starting with a hyphen, not digits only. */
export const nameSchema = z
  .string(unlessMissing("a name is text"))
  .regex(
    namePattern,
    "a name is 1 to 63 small letters, digits and hyphens, starts with a letter or digit, and is not all digits",
  );

/** A text of 1 to 4,096 characters. */
export const textSchema = z.string().min(1, "must not be empty").max(policyLimits.textCharactersMax);

/** A CEL expression; its syntax is checked by the loader. */
export const expressionSchema = z.string(unlessMissing("an expression is text")).min(1, "must not be empty").max(1_000);

/** What is said of any other form of a duration. */
export const durationForm = 'a duration is a whole number and ms, s, m, h or d, such as "90s"';

/** A duration such as "90s" within a range given as durations. */
export function durationSchema(least: string, most: string) {
  const [leastMs, mostMs] = [parseDuration(least), parseDuration(most)];
  return z
    .string(unlessMissing(durationForm))
    .regex(durationPattern, durationForm)
    .refine(
      (text) => {
        if (!durationPattern.test(text)) return true;
        const durationMs = parseDuration(text);
        return durationMs >= leastMs && durationMs <= mostMs;
      },
      `must be between ${formatDuration(leastMs)} and ${formatDuration(mostMs)}`,
    );
}

/** An IANA time zone that this Node knows. */
export const timezoneSchema = z
  .string(unlessMissing("a time zone is text, such as Europe/Vienna"))
  .refine(isTimezone, "this is no IANA time zone, such as Europe/Vienna or UTC");

/** Offsets such as "+01:00" are refused: they have no DST. */
function isTimezone(name: string): boolean {
  return /^[A-Za-z]/.test(name) && isZone(name);
}

/** A local date and time that exists on some clock, such as `2026-12-01T06:00`. */
export const wallTimeSchema = z
  .string(unlessMissing(wallTimeForm))
  .refine((text) => parseWallText(text) !== undefined, wallTimeForm);

/** A time of day, such as `22:00`. */
export const clockTimeSchema = z
  .string(unlessMissing('a time of day is text, such as "22:00"'))
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'a time of day is written "22:00"');

/** Weekdays, as the last field of a cron expression; the rules check it. */
export const weekdaysSchema = z.string().regex(/^\S{1,50}$/, 'weekdays are written as in cron, such as "1-5"');

/** The id of a sync job, a mask or a target. Source: service-interface §2 (number). */
export const idSchema = z.int(unlessMissing("an id is a whole number, 0 or more")).min(0);

/** A whole number in a range. */
export function whole(least: number, most: number): z.ZodInt {
  return z.int().min(least).max(most);
}

/** A list of 1 to 1,000 sync job ids. */
export const syncJobsSchema = z
  .array(idSchema, unlessMissing("a list of sync job ids, such as [42, 43]"))
  .min(1, "name at least one sync job")
  .max(policyLimits.syncJobsMax, `at most ${policyLimits.syncJobsMax} sync jobs a policy: split it in two`);

const labelForm = "1 to 63 letters, digits, hyphens, dots and underscores, and begins with a letter or digit";
const labelSchema = (what: string) =>
  z.string(unlessMissing(`a label's ${what} is text`)).regex(labelPattern, `a label's ${what} has ${labelForm}`);

/** The name of a label. */
export const labelNameSchema = labelSchema("name");

/** Labels: names and values. */
export const labelsSchema = z
  .record(labelNameSchema, labelSchema("value"))
  .refine((labels) => Object.keys(labels).length <= policyLimits.labelsMax, `at most ${policyLimits.labelsMax} labels`);
