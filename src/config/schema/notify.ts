// Notifications: `notify` and `heartbeat` of a policy, `notifications` of a file with the link that
// notices lead to.
// docs/notifications.md has the table of rules and notices.
import { z } from "zod";
import { noticeKinds } from "../../model/notice.ts";
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
      "Which sinks are told what: names of sinks (each change), or `{ sink, on, match }` with rules and labels (docs/notifications.md). [] for none.",
    examples: [["ops"], [{ sink: "ops", on: [{ failure: 3 }, "recovery"] }]],
  });

/** The dead man's switch of a policy. */
export const heartbeatSchema = z.strictObject({
  url: required(textSchema, "The URL to request (GET). No log shows it.", "https://beats.example.com/ping/contracts"),
});

const muteTimingSchema = z.strictObject({
  from: required(clockTimeSchema, "Its beginning, in local time.", "22:00"),
  to: required(clockTimeSchema, "Its end; on the next day, if earlier than `from`.", "06:00"),
  timezone: optional(timezoneSchema, "Default: the time zone in `defaults`.", "Europe/Vienna"),
  except: optional(z.array(z.enum(noticeKinds)).max(noticeKinds.length), "Kinds of notices that are sent anyway.", [
    "service-down",
  ]),
});

const linkSchema = textSchema.superRefine((text, context) => {
  const message = problemOfLink(text);
  if (message !== undefined) context.addIssue({ code: "custom", message });
});

const digestSchema = z.strictObject({
  at: required(clockTimeSchema, "The local time of day.", "07:00"),
  on: optional(weekdaysSchema, "The weekdays, as cron writes them.", "1-5", "*"),
  timezone: optional(timezoneSchema, "Default: that in `defaults`.", "Europe/Vienna"),
  to: required(z.array(nameSchema).min(1, "name at least one sink").max(20), "The sinks that get it.", ["ops"]),
  label: optional(labelsSchema, "Only policies with all of these labels.", { team: "hr" }),
  by: optional(labelNameSchema, "The name of a label: a line for each of its values, the worst first.", "team"),
});

/** Grouping, mute timing and link of notices, for all policies. */
export const notificationsSchema = z.strictObject({
  muteTiming: optional(
    muteTimingSchema,
    "Hours in which notices wait (docs/notifications.md#mute-timing-and-heartbeat).",
    { from: "22:00", to: "06:00", timezone: "Europe/Vienna", except: ["service-down"] },
  ),
  groupWait: optional(
    durationSchema("1s", "1h"),
    "How long failures that may be the service's wait to become one notice, and a service must be well until its outage is over.",
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
    "Messages once a day, by name (docs/notifications.md#digests).",
    { morning: { at: "07:00", on: "1-5", to: ["ops"] } },
  ),
  link: optional(
    linkSchema,
    "Where a notice leads: a URL with {policy}, {service}, {kind} and {atMs} (milliseconds since 1970). Without a policy, no link with {policy}.",
    "https://grafana.example.com/d/syncline?var-policy={policy}&from={atMs}",
  ),
});

/** What may stand in braces in `notifications.link`. */
const places = ["policy", "service", "kind", "atMs"] as const;
const inBraces = /\{([^{}]*)\}/g;

/** What is wrong with a link, in one line; undefined when notices can have it. */
function problemOfLink(template: string): string | undefined {
  const names = [...template.matchAll(inBraces)].map(([, name = ""]) => name);
  const wrong = names.find((name) => !places.some((known) => known === name));
  if (wrong !== undefined) return `{${wrong}} is no place of a link: there are ${places.map(inPlace).join(", ")}`;
  const filled = template.replaceAll(inBraces, "x");
  if (/[{}\s]/.test(filled)) return "a link has its places in pairs of braces, and no blanks";
  const isWeb = /^https?:\/\//i.test(filled) && URL.canParse(filled);
  return isWeb ? undefined : "a link is a URL that begins with https:// or http://";
}

/** The link of one notice; undefined when it names what the notice has not: a policy or service. */
export function fillLink(
  template: string,
  { policy, service, kind, at }: Readonly<Record<"kind" | "at", string> & Record<"policy" | "service", string | null>>,
): string | undefined {
  const values = { policy, service, kind, atMs: String(Date.parse(at)) };
  if (places.some((place) => values[place] === null && template.includes(inPlace(place)))) return undefined;
  return places.reduce(
    (link, place) => link.replaceAll(inPlace(place), () => encodeURIComponent(values[place] ?? "")),
    template,
  );
}

function inPlace(name: string): string {
  return `{${name}}`;
}
