// The whole of a policy file (design §5). Read by load-policies.ts; policies.schema.json and docs/policies.md are made from it.
// Says what each key may hold; what keys may stand together is in rules.ts.
import { z } from "zod";
import { policyLimits } from "../policy-limits.ts";
import { actionFields } from "./action.ts";
import { afterSchema } from "./after.ts";
import { closedFields } from "./closed.ts";
import { behaviourFields } from "./follow.ts";
import { heartbeatSchema, tellingSchema } from "./notify.ts";
import { nameSchema, textSchema, timezoneSchema } from "./primitives.ts";
import { dstSchema, scheduleSchema } from "./schedule.ts";
import { servicesSchema } from "./service.ts";
import { outboundSchema, sinksSchema } from "./sink.ts";

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
    description: "What holds for every policy that does not say otherwise, over all files of a folder.",
    examples: [{ timezone: "Europe/Vienna", catchUp: "latest", overlap: "skip" }],
  });

const policySchema = z.strictObject({
  name: nameSchema.meta({
    description:
      "The policy's own name, unique over all files: 1 to 63 small letters, digits and hyphens, not all digits.",
    examples: ["contracts-nightly"],
  }),
  service: nameSchema.meta({ description: "The service, by its name under `services`.", examples: ["main"] }),
  repository: textSchema
    .meta({
      description: "The key of the destination repository; the service's own choice unless said.",
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
      .meta({ description: "What to do, to which sync jobs, when, and how to judge it." })
      .exactOptional(),
    sinks: sinksSchema.exactOptional(),
    outbound: outboundSchema.exactOptional(),
    telling: tellingSchema.exactOptional(),
  })
  .meta({ title: "Syncline policies", description: "A policy file of Syncline (syncline/v1)." });

/** A policy file as written. */
export type PolicyFileInput = z.infer<typeof policyFileSchema>;
/** One policy as written. */
export type PolicyInput = z.infer<typeof policySchema>;
/** The defaults as written. */
export type DefaultsInput = z.infer<typeof defaultsSchema>;
