// The `sinks` and `outbound` parts of a policy file: where people and machines are told, and which hosts may be spoken to. Part of
// policy-file.ts; what may stand together is in sink-rules.ts.
import { z } from "zod";
import { listNames } from "../../core/list-name.ts";
import { policyLimits } from "../policy-limits.ts";
import { durationSchema, nameSchema, textSchema } from "./primitives.ts";

const webhookSchema = z
  .strictObject({
    url: textSchema.meta({
      description: "Where notices are sent: https, or http to this machine.",
      examples: ["https://hooks.example.com/syncline"],
    }),
    allowHttp: z
      .boolean()
      .meta({
        description: "Let notices go over plain http to a host other than this machine.",
        default: false,
        examples: [false],
      })
      .exactOptional(),
    secretFile: textSchema
      .meta({
        description:
          "The file that holds the signing secret, whsec_ and base64, relative to the policy file; read again for each delivery. Needed unless format is slack or teams.",
        examples: ["/run/secrets/syncline/webhook"],
      })
      .exactOptional(),
    previousSecretFile: textSchema
      .meta({
        description:
          "While a secret is changed: the file with the one before. Both sign, so a receiver may know either.",
        examples: ["/run/secrets/syncline/webhook-before"],
      })
      .exactOptional(),
    format: z
      .enum(["cloudevents", "slack", "teams"])
      .meta({
        description: "The body: a CloudEvents 1.0 JSON event, or a message for an incoming webhook of Slack or Teams.",
        default: "cloudevents",
        examples: ["slack"],
      })
      .exactOptional(),
    timeout: durationSchema("1s", "60s")
      .meta({ description: "How long one delivery may take.", default: "10s", examples: ["5s"] })
      .exactOptional(),
  })
  .meta({
    description: "A signed HTTP call for each notice.",
    examples: [{ url: "https://hooks.example.com/syncline", secretFile: "/run/secrets/syncline/webhook" }],
  });

const fileSchema = z
  .strictObject({
    path: textSchema.meta({
      description: "The file to append to, relative to the policy file; of each worker its own.",
      examples: ["/var/log/syncline/notices.jsonl"],
    }),
    maxSize: z
      .string()
      .regex(/^[1-9]\d{0,6}(KB|MB|GB)$/, 'a size is a whole number and KB, MB or GB, such as "10MB"')
      .meta({
        description: "At this size the file is put aside as `path.1` and a new one begun.",
        default: "10MB",
        examples: ["100MB"],
      })
      .exactOptional(),
    maxFiles: z
      .int()
      .min(1)
      .max(100)
      .meta({ description: "How many files are kept, with the one written to.", default: 5, examples: [10] })
      .exactOptional(),
  })
  .meta({ description: "A line of JSON for each notice.", examples: [{ path: "/var/log/syncline/notices.jsonl" }] });

const sinkSchema = z.strictObject({
  webhook: webhookSchema.exactOptional(),
  file: fileSchema.exactOptional(),
  giveUpAfter: durationSchema("1m", "30d")
    .meta({
      description: "How long a notice is tried, from when it was handed over, before it goes to the failed list.",
      default: "24h",
      examples: ["72h"],
    })
    .exactOptional(),
  queueMax: z
    .int()
    .min(1)
    .max(policyLimits.sinkQueueMax)
    .meta({
      description: "How many notices may wait; more are dropped, and counted.",
      default: policyLimits.sinkQueueMax,
      examples: [10_000],
    })
    .exactOptional(),
  items: z
    .array(z.enum(listNames))
    .min(1, "name at least one list, or leave it out")
    .max(listNames.length)
    .meta({
      description:
        "Lists whose new items come here as notices of kind `items`, each once, from every service and repository, while runs follow the list or a poll reads it.",
      default: "none",
      examples: [["activities", "conflictDetails"]],
    })
    .exactOptional(),
});

/** The sinks of a file, by name. */
export const sinksSchema = z.record(nameSchema, sinkSchema).meta({
  description: "Where notices go, by name; exactly one of webhook and file each.",
  examples: [{ ops: { file: { path: "notices.jsonl" } } }],
});

/** A host as it stands in `outbound.hosts`: exact, or everything below a domain. */
const outboundHostPattern =
  /^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$|^\[[0-9a-f:]+\]$/;

/** Which hosts sinks and heartbeats may be on. */
export const outboundSchema = z
  .strictObject({
    hosts: z
      .array(
        z
          .string()
          .max(253)
          .regex(outboundHostPattern, "a host is a name in small letters, or *. and a domain: no scheme, no port"),
      )
      .min(1, "name at least one host")
      .max(policyLimits.outboundHostsMax)
      .meta({
        description:
          "Hosts that sinks may send to and heartbeats may ask: exact names, or `*.example.com` for every host below that domain.",
        examples: [["hooks.example.com", "*.slack.com"]],
      }),
  })
  .meta({
    description:
      "Restricts where sinks may send to and heartbeats may ask, over all files of a folder; anywhere unless said.",
    examples: [{ hosts: ["hooks.example.com"] }],
  });

/** One sink as written. */
export type SinkInput = z.infer<typeof sinkSchema>;
