// When a policy is due: its `schedule`, or the policy that it follows (`after`).
import { z } from "zod";
import { outcomeStatuses } from "../../model/outcome.ts";
import { policyLimits } from "../rules/policy-limits.ts";
import {
  clockTimeSchema,
  durationSchema,
  nameSchema,
  optional,
  required,
  timezoneSchema,
  wallTimeSchema,
  weekdaysSchema,
} from "./primitives.ts";

const dstRule = z.strictObject({
  gap: optional(
    z.enum(["next", "skip"]),
    "A local time that the clocks skip: `next` moves it to the first instant after the gap, `skip` drops it.",
    "skip",
    "next",
  ),
  overlap: optional(
    z.enum(["first", "second", "both"]),
    "Which one counts of a local time that comes twice.",
    "both",
    "first",
  ),
});

/** The DST rule, also under `defaults`. */
export const dstSchema = optional(
  dstRule,
  "What a clock change does to `once` and to cron slots whose hours are numbers (docs/time.md).",
  { gap: "skip", overlap: "both" },
);

const cronText = z.string().min(1).max(200);

const cronSchema = z.union([cronText, z.array(cronText).min(1).max(policyLimits.cronExpressionsMax)], {
  error: (issue) =>
    issue.input === undefined
      ? undefined
      : `a cron expression in quotes, or a list of 1 to ${policyLimits.cronExpressionsMax} of them`,
});

/** A schedule. */
export const scheduleSchema = z
  .strictObject({
    cron: cronSchema
      .meta({
        description:
          "A cron expression of 5 fields, or 6 with seconds first, a macro, or a list of them (docs/time.md).",
        examples: ["30 2 * * 1-5", ["0 6 * * *", "0 18 * * *"]],
      })
      .exactOptional(),
    every: optional(durationSchema("1s", "366d"), "An interval of elapsed time, 1s to 366d.", "10m"),
    once: optional(
      wallTimeSchema,
      "One local date and time. If over when the policy is first seen, never due.",
      "2026-12-01T06:00",
    ),
    timezone: optional(timezoneSchema, "The zone of cron and once, or the one in `defaults`.", "Europe/Vienna", "UTC"),
    spread: optional(
      durationSchema("0s", "1d"),
      "Delays every slot by a part of this time that follows from the policy's name.",
      "10m",
      "0s",
    ),
    dst: dstSchema,
  })
  .meta({
    description:
      "When the policy is due: exactly one of cron, every, once. Without it only `syncline run POLICY` starts it.",
    examples: [{ cron: "30 2 * * 1-5", timezone: "Europe/Vienna" }, { every: "10m" }, { once: "2026-12-01T06:00" }],
  });

/** By when a policy must have ended well. */
export const expectSchema = z.strictObject({
  successBy: optional(clockTimeSchema, "A time of day in the policy's zone.", "06:00"),
  on: optional(weekdaysSchema, "The weekdays of successBy, as cron writes them.", "1-5", "*"),
  within: optional(durationSchema("1m", "31d"), "A time after each slot.", "2h"),
});

/** The input of a policy. */
export const needsSchema = z.strictObject({
  policy: required(nameSchema, "The policy that must have ended well, of any file.", "orders"),
  within: required(durationSchema("1m", "366d"), "How recently each of its sync jobs must have.", "24h"),
});

/** What a policy follows. */
export const afterSchema = z.strictObject({
  policy: required(nameSchema, "The policy that this one follows, in the same file.", "masks-nightly"),
  on: optional(
    z.array(z.enum(outcomeStatuses)).min(1).max(outcomeStatuses.length),
    "The endings that all tasks of the predecessor's slot must have; else the slot is skipped.",
    ["succeeded", "conflicts"],
    ["succeeded"],
  ),
  within: optional(
    durationSchema("1s", "31d"),
    "How long after the predecessor's slot this one may begin; else it is missed.",
    "2h",
    "1d",
  ),
});

/** A schedule as written. */
export type ScheduleInput = z.infer<typeof scheduleSchema>;
