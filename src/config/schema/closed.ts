// When a policy's slots do not start: blackout windows and holidays. Part of policy-file.ts; the same keys stand in a
// policy and under `defaults`, and a policy's own list takes the place of that of `defaults`.
import { z } from "zod";
import { policyLimits } from "../policy-limits.ts";
import { durationSchema } from "./primitives.ts";

const blackoutSchema = z.strictObject({
  cron: z
    .string()
    .min(1)
    .max(200)
    .meta({
      description:
        "When the window opens, in the policy's time zone: a cron expression of 5 fields, or 6 with seconds first.",
      examples: ["0 22 * * 5"],
    }),
  for: durationSchema("1m", "31d").meta({ description: "How long it stays open, in elapsed time.", examples: ["8h"] }),
});

const dateSchema = z
  .string({ error: (issue) => (issue.input === undefined ? undefined : "a holiday is a date, such as 2026-12-25") })
  .refine(isDate, "a holiday is a date that exists, such as 2026-12-25");

/** The keys that a policy and `defaults` share. */
export const closedFields = {
  blackout: z
    .array(blackoutSchema)
    .max(policyLimits.blackoutsMax)
    .meta({
      description:
        "Windows in which no slot starts: it ends as skipped (blackout), and is not caught up. [] for none, whatever `defaults` says.",
      examples: [[{ cron: "0 22 * * 5", for: "8h" }]],
    })
    .exactOptional(),
  holidays: z
    .array(dateSchema)
    .max(policyLimits.holidaysMax)
    .meta({
      description:
        "Dates in the policy's time zone on which no slot starts: it ends as skipped (holiday), and is not caught up. [] for none, whatever `defaults` says.",
      examples: [["2026-12-25", "2026-12-26"]],
    })
    .exactOptional(),
} as const;

/** Tells whether a text is a date that the calendar has. */
function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const instantMs = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(instantMs) && new Date(instantMs).toISOString().startsWith(text);
}
