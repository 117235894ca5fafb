// The `sinks` and `outbound` of a policy file: where notices go, and which hosts are allowed.
import { z } from "zod";
import { listNames } from "../../model/feed.ts";
import { policyLimits } from "../rules/policy-limits.ts";
import { durationSchema, nameSchema, optional, required, textSchema, unlessMissing, whole } from "./primitives.ts";

const webhookSchema = z.strictObject({
  url: required(textSchema, "Where notices go: https, or http to this machine.", "https://hooks.example.com/syncline"),
  allowHttp: optional(z.boolean(), "Allows http to other hosts: notices can be read on the way.", false, false),
  secretFile: optional(
    textSchema,
    "The file with the signing secret (`whsec_…`); read for each delivery. Required unless format is slack or teams.",
    "/run/secrets/syncline/webhook",
  ),
  previousSecretFile: optional(
    textSchema,
    "The previous secret during a rotation. Both sign.",
    "/run/secrets/syncline/webhook-before",
  ),
  format: optional(
    z.enum(["cloudevents", "slack", "teams"]),
    "A CloudEvents 1.0 event, or a message for Slack or Teams.",
    "slack",
    "cloudevents",
  ),
  timeout: optional(durationSchema("1s", "60s"), "The time-out of one delivery.", "5s", "10s"),
});

const fileSchema = z.strictObject({
  path: required(textSchema, "The file to append to; workers may share it.", "/var/log/syncline/notices.jsonl"),
  maxSize: optional(
    z.string().regex(/^[1-9]\d{0,6}(KB|MB|GB)$/, 'a size is a whole number and KB, MB or GB, such as "10MB"'),
    "At this size the file is renamed to `path.1`, and a new one begins.",
    "100MB",
    "10MB",
  ),
  maxFiles: optional(whole(1, 100), "How many files are kept, with the current one.", 10, 5),
});

const addressSchema = z
  .string(unlessMissing("an address is text, such as ops@example.com"))
  .max(254)
  .regex(
    /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/,
    "an address is written ops@example.com, without a name beside it",
  );

const emailSchema = z.strictObject({
  host: required(
    z
      .string()
      .max(253)
      .regex(/^[A-Za-z0-9.-]+$|^[0-9a-f:]+$/, "a host is a name or an address: no scheme, no port"),
    "The mail server.",
    "smtp.example.com",
  ),
  port: optional(whole(1, 65_535), "Its port.", 587, 465),
  startTls: optional(
    z.boolean(),
    "STARTTLS; false: TLS from the first byte. Default: false for port 465, else true.",
    true,
  ),
  from: required(addressSchema, "The sender.", "syncline@example.com"),
  to: required(
    z.array(addressSchema).min(1, "name at least one recipient").max(policyLimits.recipientsMax),
    `The recipients of one message, ${policyLimits.recipientsMax} at most.`,
    ["ops@example.com"],
  ),
  user: optional(textSchema, "The name to sign in with. Default: no sign-in.", "syncline"),
  passwordFile: optional(
    textSchema,
    "The file with the password; read for each delivery.",
    "/run/secrets/syncline/smtp",
  ),
  tls: optional(
    z.strictObject({
      caFile: optional(textSchema, "Authorities of its certificate, in PEM, instead of the public ones.", "ca.pem"),
      serverName: optional(textSchema, "The name in its certificate, where it is not the host's.", "mail.internal"),
    }),
    "How its certificate is checked.",
    { caFile: "ca.pem" },
  ),
  timeout: optional(durationSchema("1s", "2m"), "The time-out of one delivery.", "60s", "30s"),
});

const sinkSchema = z.strictObject({
  webhook: optional(webhookSchema, "A signed HTTP call for each notice.", {
    url: "https://hooks.example.com/syncline",
    secretFile: "/run/secrets/syncline/webhook",
  }),
  file: optional(fileSchema, "A line of JSON for each notice.", { path: "/var/log/syncline/notices.jsonl" }),
  email: optional(emailSchema, "An e-mail for each notice (docs/notifications.md#e-mail).", {
    host: "smtp.example.com",
    from: "syncline@example.com",
    to: ["ops@example.com"],
  }),
  giveUpAfter: optional(
    durationSchema("1m", "30d"),
    "How long it is tried; then the notice goes to the failed list.",
    "72h",
    "24h",
  ),
  queueMax: optional(
    whole(1, policyLimits.sinkQueueMax),
    "How many notices may wait; more are dropped and counted.",
    10_000,
    policyLimits.sinkQueueMax,
  ),
  items: optional(
    z.array(z.enum(listNames)).min(1, "name at least one list, or leave it out").max(listNames.length),
    "Lists whose new items are sent here, each once (docs/notifications.md#new-items-of-lists).",
    ["activities", "conflictDetails"],
    "none",
  ),
});

/** The sinks of a file, by name. */
export const sinksSchema = z.record(nameSchema, sinkSchema).meta({
  description: "Where notices go, by name; each sink has exactly one of webhook, file and email.",
  examples: [{ ops: { file: { path: "notices.jsonl" } } }],
});

/** A host in `outbound.hosts`: exact, or everything below a domain. */
const hostSchema = z
  .string()
  .max(253)
  .regex(
    /^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$|^\[[0-9a-f:]+\]$/,
    "a host is a name in small letters, or *. and a domain: no scheme, no port",
  );

/** Which hosts sinks and heartbeats may call. */
export const outboundSchema = z.strictObject({
  hosts: required(
    z.array(hostSchema).min(1, "name at least one host").max(policyLimits.outboundHostsMax),
    "Exact names, or `*.example.com` for every host below that domain.",
    ["hooks.example.com", "*.slack.com"],
  ),
});

/** One sink as written. */
export type SinkInput = z.infer<typeof sinkSchema>;
