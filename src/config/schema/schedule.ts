// The `schedule` of a policy: cron with a time zone and a DST rule, an interval, or one time. Part of policy-file.ts.
// Whether a cron expression is right is checked by the loader, with the calendar it is given.
import { z } from "zod";
import { policyLimits } from "../policy-limits.ts";
import { durationSchema, timezoneSchema, wallTimeSchema } from "./primitives.ts";

/** The DST rule, also under `defaults`. */
export const dstSchema = z
  .strictObject({
    gap: z
      .enum(["next", "skip"])
      .meta({
        description:
          "A local time that the clocks leave out: `next` moves it to the first instant after the gap, `skip` drops it.",
        default: "next",
        examples: ["skip"],
      })
      .exactOptional(),
    overlap: z
      .enum(["first", "second", "both"])
      .meta({
        description: "A local time that the clocks show twice: which of the two.",
        default: "first",
        examples: ["both"],
      })
      .exactOptional(),
  })
  .meta({
    description:
      "What a clock change does to `once`, and to a cron slot whose hours are numbers, such as `30 2 * * *`. All other expressions keep elapsed time, whatever this says (docs/time.md).",
    examples: [{ gap: "skip", overlap: "both" }],
  });

const cronText = z.string().min(1).max(200);

/** A schedule. */
export const scheduleSchema = z
  .strictObject({
    cron: z
      .union([cronText, z.array(cronText).min(1).max(policyLimits.cronExpressionsMax)], {
        error: (issue) =>
          issue.input === undefined
            ? undefined
            : `a cron expression in quotes, or a list of 1 to ${policyLimits.cronExpressionsMax} of them`,
      })
      .meta({
        description:
          "When: a cron expression of 5 fields, or 6 with seconds first, a macro such as @daily, or a list of them (docs/time.md).",
        examples: ["30 2 * * 1-5", ["0 6 * * *", "0 18 * * *"]],
      })
      .exactOptional(),
    every: durationSchema("1s", "366d")
      .meta({ description: "How often: an interval of elapsed time, 1s to 366d.", examples: ["10m"] })
      .exactOptional(),
    once: wallTimeSchema
      .meta({
        description:
          "One time and never again: a local date and time in `timezone`, without an offset. In the past when the policy is first seen, it is never due (docs/time.md).",
        examples: ["2026-12-01T06:00"],
      })
      .exactOptional(),
    timezone: timezoneSchema
      .meta({
        description: "The IANA time zone of cron and once; that of `defaults` unless said.",
        default: "UTC",
        examples: ["Europe/Vienna"],
      })
      .exactOptional(),
    spread: durationSchema("0s", "1d")
      .meta({
        description:
          "Moves every slot by a fixed part of this time that follows from the policy's name, the same on every replica.",
        default: "0s",
        examples: ["10m"],
      })
      .exactOptional(),
    dst: dstSchema.exactOptional(),
  })
  .meta({
    description:
      "When the policy is due: exactly one of cron, every and once. Without a schedule it runs by `syncline run POLICY` only.",
    examples: [{ cron: "30 2 * * 1-5", timezone: "Europe/Vienna" }, { every: "10m" }, { once: "2026-12-01T06:00" }],
  });

/** A schedule as written. */
export type ScheduleInput = z.infer<typeof scheduleSchema>;
