// Notifications: `notify` and `heartbeat` of a policy, and `notifications` of a file.
// docs/notifications.md has the table of rules and notices.
import { z } from "zod";
import { noticeKinds } from "../../model/notice.ts";
import { problemOfLink } from "../notice-link.ts";
import { policyLimits } from "../rules/policy-limits.ts";
import {
  clockTimeSchema,
  durationSchema,
  labelNameSchema,
  labelsSchema,
  nameSchema,
  optional,
  required,
  textSchema,
  timezoneSchema,
  weekdaysSchema,
  whole,
} from "./primitives.ts";

/** The rules that are one word. */
export const ruleWords = [
  "every",
  "change",
  "failure",
  "recovery",
  "conflicts",
  "blocked",
  "unknown",
  "missed",
  "drift",
  "unusual",
  "stale",
  "late",
  "token-expiring",
] as const;

const ruleSchema = z.union(
  [
    z.enum(ruleWords),
    z.strictObject({
      failure: required(whole(1, 100), "After this many slots in a row with a failed task.", 3),
    }),
    z.strictObject({
      conflicts: required(whole(0, 1_000_000), "When a run brings more new conflicts than this.", 10),
    }),
  ],
  { error: () => `a rule is ${ruleWords.join(", ")}, { failure: 3 } or { conflicts: 10 }` },
);

const notifyObject = z.strictObject({
  sink: required(nameSchema, "The sink, by its name under `sinks`.", "ops"),
  match: optional(
    labelsSchema,
    "Only for policies with all of these labels: one list under `defaults` leads each team's notices to its own sink.",
    { team: "hr" },
  ),
  on: optional(z.array(ruleSchema).min(1).max(ruleWords.length), "What notifies it.", [{ failure: 3 }, "recovery"]),
});

const notifyItemSchema = z.union([nameSchema, notifyObject], {
  error: (issue) =>
    typeof issue.input === "object"
      ? undefined
      : "write the name of a sink, or { sink: NAME, on: [change] } with the rules",
});

/** Which sinks are told what. The same key stands under `defaults`. */
export const notifySchema = z
  .array(notifyItemSchema)
  .max(20)
  .meta({
    description:
      "Which sinks are notified of what: names of sinks (each change), or `{ sink, on }` with rules: `change`, `every`, `failure` or `{ failure: 3 }`, `recovery`, `conflicts` or `{ conflicts: 10 }`, `blocked`, `unknown`, `missed`, `drift`, `unusual`, `stale`, `late`, `token-expiring` (docs/notifications.md). `match: { team: hr }` beside it takes policies with that label only. [] for no sink.",
    examples: [["ops"], [{ sink: "ops", on: [{ failure: 3 }, "recovery"] }]],
  });

/** The dead man's switch of a policy. */
export const heartbeatSchema = z.strictObject({
  url: required(
    textSchema,
    "The URL to request (GET) after each success. It may be a secret, so no log shows it.",
    "https://beats.example.com/ping/contracts",
  ),
});

const muteTimingSchema = z.strictObject({
  from: required(clockTimeSchema, "When mute timing begins, in local time.", "22:00"),
  to: required(clockTimeSchema, "When mute timing ends; on the next day, if earlier than `from`.", "06:00"),
  timezone: optional(timezoneSchema, "The IANA time zone of both. Default: the one in `defaults`.", "Europe/Vienna"),
  except: optional(z.array(z.enum(noticeKinds)).max(noticeKinds.length), "Kinds of notices that are sent anyway.", [
    "service-down",
  ]),
});

const linkSchema = textSchema.superRefine((text, context) => {
  const message = problemOfLink(text);
  if (message !== undefined) context.addIssue({ code: "custom", message });
});

const digestSchema = z.strictObject({
  at: required(clockTimeSchema, "The time of day, in local time.", "07:00"),
  on: optional(weekdaysSchema, "The weekdays, as cron writes them.", "1-5", "*"),
  timezone: optional(timezoneSchema, "The IANA time zone. Default: the one in `defaults`.", "Europe/Vienna"),
  to: required(z.array(nameSchema).min(1, "name at least one sink").max(20), "The sinks that get it.", ["ops"]),
  label: optional(labelsSchema, "Only policies with all of these labels.", { team: "hr" }),
  by: optional(labelNameSchema, "The name of a label: one line for each of its values, the worst first.", "team"),
});

/** Grouping, mute timing and link of notices, for all policies. */
export const notificationsSchema = z.strictObject({
  muteTiming: optional(
    muteTimingSchema,
    "Hours in which notices wait. At their end each policy and service sends one: its latest state.",
    { from: "22:00", to: "06:00", timezone: "Europe/Vienna", except: ["service-down"] },
  ),
  groupWait: optional(
    durationSchema("1s", "1h"),
    "How long failures that may be the service's wait, so that an outage is one notice; also how long a service must be healthy before its outage is over.",
    "1m",
    "30s",
  ),
  digests: optional(
    z
      .record(nameSchema, digestSchema)
      .refine(
        (digests) => Object.keys(digests).length <= policyLimits.digestsMax,
        `at most ${policyLimits.digestsMax} digests`,
      ),
    "Messages once a day, by name: what needs a person, and what happened since the one before (docs/notifications.md#digests).",
    { morning: { at: "07:00", on: "1-5", to: ["ops"] } },
  ),
  link: optional(
    linkSchema,
    "Where a notice leads: a URL in which {policy}, {service}, {kind} and {atMs} (milliseconds since 1970) are filled in. A notice without a policy has no link when it stands for {policy}.",
    "https://grafana.example.com/d/syncline?var-policy={policy}&from={atMs}",
  ),
});
