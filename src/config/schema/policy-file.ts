// The whole of a policy file: what each key may hold. policy-rules.ts checks which keys
// go together. Read by load-policies.ts; policies.schema.json and docs/policies.md are made from
// it.

import { z } from "zod";
import { policyLimits } from "../rules/policy-limits.ts";
import { actionFields } from "./action.ts";
import { behaviourFields } from "./follow.ts";
import { heartbeatSchema, notificationsSchema } from "./notify.ts";
import { durationSchema, nameSchema, textSchema, timezoneSchema } from "./primitives.ts";
import { afterSchema, dstSchema, scheduleSchema } from "./schedule.ts";
import { serviceSchema, servicesSchema } from "./service.ts";
import { outboundSchema, sinksSchema } from "./sink.ts";

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
const closedFields = {
  blackout: z
    .array(blackoutSchema)
    .max(policyLimits.blackoutsMax)
    .meta({
      description:
        "Windows in which no slot starts. Their slots are skipped (blackout) and not caught up. [] for none, whatever `defaults` says.",
      examples: [[{ cron: "0 22 * * 5", for: "8h" }]],
    })
    .exactOptional(),
  holidays: z
    .array(dateSchema)
    .max(policyLimits.holidaysMax)
    .meta({
      description:
        "Dates in the policy's time zone on which no slot starts. Their slots are skipped (holiday) and not caught up. [] for none, whatever `defaults` says.",
      examples: [["2026-12-25", "2026-12-26"]],
    })
    .exactOptional(),
} as const;

const defaultsSchema = z
  .strictObject({
    timezone: timezoneSchema
      .meta({ description: "The IANA time zone of cron schedules.", default: "UTC", examples: ["Europe/Vienna"] })
      .exactOptional(),
    dst: dstSchema.exactOptional(),
    ...closedFields,
    ...behaviourFields,
  })
  .meta({
    description: "Settings for every policy without its own, over all files of a folder.",
    examples: [{ timezone: "Europe/Vienna", catchUp: "latest", overlap: "skip" }],
  });

const policySchema = z.strictObject({
  name: nameSchema.meta({
    description: "The policy's name, unique over all files: 1 to 63 small letters, digits and hyphens, not all digits.",
    examples: ["contracts-nightly"],
  }),
  service: nameSchema.meta({ description: "The service, by its name under `services`.", examples: ["main"] }),
  repository: textSchema
    .meta({
      description: "The key of the destination repository. Default: the service chooses.",
      examples: ["HR"],
    })
    .exactOptional(),
  ...actionFields,
  schedule: scheduleSchema.exactOptional(),
  ...closedFields,
  ...behaviourFields,
  after: afterSchema.exactOptional(),
  heartbeat: heartbeatSchema.exactOptional(),
});

/** A policy file as people write it. */
export const policyFileSchema = z
  .strictObject({
    apiVersion: z
      .literal("syncline/v1")
      .meta({ description: "The version of this format.", examples: ["syncline/v1"] }),
    services: servicesSchema.exactOptional(),
    defaults: defaultsSchema.exactOptional(),
    policies: z
      .array(policySchema)
      .max(policyLimits.policiesMax)
      .meta({ description: "The policies: what to do with which sync jobs, when, and how to follow it." })
      .exactOptional(),
    sinks: sinksSchema.exactOptional(),
    outbound: outboundSchema.exactOptional(),
    notifications: notificationsSchema.exactOptional(),
  })
  .meta({ title: "Syncline policies", description: "A policy file of Syncline (syncline/v1)." });

/** A policy file in which anything may be missing. */
export const policyDraftSchema = policyFileSchema
  .extend({
    services: z.record(nameSchema, serviceSchema.partial()),
    policies: z.array(policySchema.partial()).max(policyLimits.policiesMax),
  })
  .partial();

/** A policy file as written. */
export type PolicyFileInput = z.infer<typeof policyFileSchema>;
/** One policy as written. */
export type PolicyInput = z.infer<typeof policySchema>;
/** A policy file without what the schema refuses. */
export type PolicyFileDraft = z.infer<typeof policyDraftSchema>;
/** One policy of it. */
export type PolicyDraft = NonNullable<PolicyFileDraft["policies"]>[number];
/** The defaults as written. */
export type DefaultsInput = z.infer<typeof defaultsSchema>;

/** Whether a text is a date of the calendar. */
function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const instantMs = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(instantMs) && new Date(instantMs).toISOString().startsWith(text);
}
