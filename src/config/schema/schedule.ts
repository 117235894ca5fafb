// When a policy is due: its `schedule`, or the policy that it follows (`after`).
import { z } from "zod";
import { outcomeStatuses } from "../../model/outcome.ts";
import { policyLimits } from "../rules/policy-limits.ts";
import { durationSchema, nameSchema, timezoneSchema, wallTimeSchema } from "./primitives.ts";

/** The DST rule, also under `defaults`. */
export const dstSchema = z
  .strictObject({
    gap: z
      .enum(["next", "skip"])
      .meta({
        description:
          "What happens to a local time that the clocks skip: `next` moves it to the first instant after the gap, `skip` drops it.",
        default: "next",
        examples: ["skip"],
      })
      .exactOptional(),
    overlap: z
      .enum(["first", "second", "both"])
      .meta({
        description: "Which of the two counts when the clocks show a local time twice.",
        default: "first",
        examples: ["both"],
      })
      .exactOptional(),
  })
  .meta({
    description:
      "What a clock change does to `once`, and to a cron slot whose hours are numbers, such as `30 2 * * *`. All other expressions follow elapsed time (docs/time.md).",
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
          "A cron expression of 5 fields, or 6 with seconds first, a macro such as @daily, or a list of them (docs/time.md).",
        examples: ["30 2 * * 1-5", ["0 6 * * *", "0 18 * * *"]],
      })
      .exactOptional(),
    every: durationSchema("1s", "366d")
      .meta({ description: "An interval of elapsed time, 1s to 366d.", examples: ["10m"] })
      .exactOptional(),
    once: wallTimeSchema
      .meta({
        description:
          "A single time: a local date and time in `timezone`, without an offset. If it is over when the scheduler first sees the policy, it never comes due (docs/time.md).",
        examples: ["2026-12-01T06:00"],
      })
      .exactOptional(),
    timezone: timezoneSchema
      .meta({
        description: "The IANA time zone of cron and once. Default: the one in `defaults`.",
        default: "UTC",
        examples: ["Europe/Vienna"],
      })
      .exactOptional(),
    spread: durationSchema("0s", "1d")
      .meta({
        description:
          "Delays every slot by a fixed part of this time, so that policies do not start at once. The part depends on the policy's name and is the same on every replica. Default: no delay.",
        default: "0s",
        examples: ["10m"],
      })
      .exactOptional(),
    dst: dstSchema.exactOptional(),
  })
  .meta({
    description:
      "When the policy is due: exactly one of cron, every and once. Without a schedule only `syncline run POLICY` starts it.",
    examples: [{ cron: "30 2 * * 1-5", timezone: "Europe/Vienna" }, { every: "10m" }, { once: "2026-12-01T06:00" }],
  });

/** What a policy follows. */
export const afterSchema = z
  .strictObject({
    policy: nameSchema.meta({
      description: "The policy that this one follows; it must be in the same file.",
      examples: ["masks-nightly"],
    }),
    on: z
      .array(z.enum(outcomeStatuses))
      .min(1)
      .max(outcomeStatuses.length)
      .meta({
        description:
          "The endings that every task of the predecessor's slot must have. Otherwise this policy's slot is skipped.",
        default: ["succeeded"],
        examples: [["succeeded", "conflicts"]],
      })
      .exactOptional(),
    within: durationSchema("1s", "31d")
      .meta({
        description: "How long after the predecessor's slot this one may begin. After that its slot is missed.",
        default: "1d",
        examples: ["2h"],
      })
      .exactOptional(),
  })
  .meta({
    description:
      "Starts the policy when a slot of another policy has ended, instead of a schedule of its own (docs/policy-kinds.md#chains).",
    examples: [{ policy: "masks-nightly", on: ["succeeded", "conflicts"], within: "2h" }],
  });

/** A schedule as written. */
export type ScheduleInput = z.infer<typeof scheduleSchema>;
