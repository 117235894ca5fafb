// The whole of a policy file: what each key may hold. The rules check which keys go together.
// policies.schema.json and docs/policies.md are made from it.
import { z } from "zod";
import { parseWallText } from "../../core/duration.ts";
import { policyLimits } from "../rules/policy-limits.ts";
import { actionFields } from "./action.ts";
import { behaviourFields } from "./follow.ts";
import { heartbeatSchema, notificationsSchema } from "./notify.ts";
import {
  durationSchema,
  labelsSchema,
  maybe,
  namePattern,
  nameSchema,
  optional,
  required,
  textSchema,
  timezoneSchema,
  unlessMissing,
} from "./primitives.ts";
import { afterSchema, dstSchema, expectSchema, needsSchema, scheduleSchema } from "./schedule.ts";
import { serviceSchema, servicesSchema } from "./service.ts";
import { outboundSchema, sinksSchema } from "./sink.ts";

const blackoutSchema = z.strictObject({
  cron: required(
    z.string().min(1).max(200),
    "When the window opens: a cron expression in the policy's time zone.",
    "0 22 * * 5",
  ),
  for: required(durationSchema("1m", "31d"), "How long it stays open, in elapsed time.", "8h"),
});

const windowForm = 'a window is { cron: "0 22 * * 5", for: 8h }, or the name of a calendar';

/** An object is judged by its keys. */
const blackoutItemSchema = z.union([blackoutSchema, z.string().regex(namePattern, windowForm)], {
  error: (issue) => (typeof issue.input === "object" ? undefined : windowForm),
});

const holiday = "a holiday is a date that exists, such as 2026-12-25, or the name of a calendar";
const isDate = (text: string) => parseWallText(`${text}T00:00`) !== undefined;

const holidaySchema = z
  .string(unlessMissing(holiday))
  .refine((text) => isDate(text) || (!/^\d/.test(text) && nameSchema.safeParse(text).success), holiday);

/** A calendar's name is no date: both stand in `holidays`. */
const calendarsSchema = z.record(
  nameSchema.regex(/^\D/, "the name of a calendar starts with a letter"),
  z.strictObject({
    file: required(
      textSchema.regex(/\.ics$/, "a calendar file ends with .ics"),
      "The file, relative to the policy file; read again within 30 s of a change.",
      "bank-holidays.ics",
    ),
  }),
);

/** Who owns a policy, and when its slots are skipped: of policies and `defaults`. */
const closedFields = {
  owner: optional(
    z.string().min(1, "must not be empty").max(policyLimits.ownerCharactersMax),
    `Who to call about a policy; stands in its notices, status, explain and digests. ${policyLimits.ownerCharactersMax} characters at most.`,
    "HR integration, ext. 4711",
  ),
  blackout: optional(
    z.array(blackoutItemSchema).max(policyLimits.blackoutsMax),
    "Windows in which slots are skipped: `cron` opens one, `for` is its elapsed time, 31d at most; or names of `calendars`. [] for none.",
    [{ cron: "0 22 * * 5", for: "8h" }, "maintenance"],
  ),
  holidays: optional(
    z.array(holidaySchema).max(policyLimits.holidaysMax),
    "Dates in the policy's time zone on which slots are skipped, or names of `calendars` of whole days. [] for none.",
    ["bank-holidays", "2026-12-24"],
  ),
} as const;

const defaultsSchema = z.strictObject({
  timezone: optional(timezoneSchema, "The IANA time zone of policies and digests.", "Europe/Vienna", "UTC"),
  dst: dstSchema,
  ...closedFields,
  ...behaviourFields,
});

const policySchema = z.strictObject({
  name: required(
    nameSchema,
    "The policy's name, unique over all files: 1 to 63 small letters, digits and hyphens.",
    "contracts-nightly",
  ),
  service: required(nameSchema, "The service, by its name under `services`.", "main"),
  labels: optional(
    labelsSchema,
    `Names and values to choose policies by (\`--label team=hr\`), ${policyLimits.labelsMax} at most.`,
    { team: "hr", stage: "prod" },
  ),
  repository: optional(textSchema, "The key of the destination repository. Default: the service chooses.", "HR"),
  ...actionFields,
  schedule: maybe(scheduleSchema),
  ...closedFields,
  ...behaviourFields,
  after: optional(
    afterSchema,
    "Starts the policy when a slot of another policy has ended, in place of `schedule` (docs/policy-kinds.md#chains).",
    { policy: "masks-nightly", on: ["succeeded", "conflicts"], within: "2h" },
  ),
  needs: optional(
    needsSchema,
    "An input: while it is not fresh, slots are skipped (docs/policy-kinds.md#fresh-input).",
    { policy: "orders", within: "24h" },
  ),
  expect: optional(expectSchema, "A deadline: exactly one of successBy and within (docs/time.md#deadlines).", {
    successBy: "06:00",
    on: "1-5",
  }),
  heartbeat: optional(
    heartbeatSchema,
    "A dead man's switch: a URL that Syncline requests after each success, while no sync job of the policy is bad.",
    {
      url: "https://beats.example.com/ping/contracts",
    },
  ),
});

/** A policy file as people write it. */
export const policyFileSchema = z
  .strictObject({
    apiVersion: required(z.literal("syncline/v1"), "The version of this format.", "syncline/v1"),
    services: servicesSchema.exactOptional(),
    defaults: optional(defaultsSchema, "For every policy without its own, over all files of a folder.", {
      timezone: "Europe/Vienna",
      catchUp: "latest",
      overlap: "skip",
    }),
    policies: z
      .array(policySchema)
      .max(policyLimits.policiesMax)
      .meta({ description: "What to do with which sync jobs, when, and how to follow it." })
      .exactOptional(),
    sinks: sinksSchema.exactOptional(),
    calendars: optional(
      calendarsSchema,
      "Calendar files (iCalendar), by name, for `holidays` and `blackout` (docs/day-to-day.md#blackouts-and-holidays).",
      { "bank-holidays": { file: "bank-holidays.ics" } },
    ),
    outbound: optional(
      outboundSchema,
      "Hosts that sinks and heartbeats may call, over all files of a folder. Default: any.",
      { hosts: ["hooks.example.com"] },
    ),
    notifications: optional(
      notificationsSchema,
      "Grouping, muting, digests and link of notices (docs/notifications.md); in one file of a folder.",
      { muteTiming: { from: "22:00", to: "06:00" }, groupWait: "30s" },
    ),
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
