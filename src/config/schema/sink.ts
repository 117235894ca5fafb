// The `sinks` and `outbound` of a policy file: where notices go, and which hosts are allowed.
// sink-rules.ts checks what goes together. Part of policy-file.ts.
import { z } from "zod";
import { listNames } from "../../core/list-name.ts";
import { policyLimits } from "../rules/policy-limits.ts";
import { durationSchema, nameSchema, textSchema } from "./primitives.ts";

const webhookSchema = z
  .strictObject({
    url: textSchema.meta({
      description: "Where notices are posted: https, or http to this machine.",
      examples: ["https://hooks.example.com/syncline"],
    }),
    allowHttp: z
      .boolean()
      .meta({
        description: "Allows plain http to a host other than this machine. Notices can then be read on the way.",
        default: false,
        examples: [false],
      })
      .exactOptional(),
    secretFile: textSchema
      .meta({
        description:
          "The file with the signing secret (`whsec_` and base64), relative to the policy file. It is read for each delivery, so a rotated secret applies at once. Required unless format is slack or teams.",
        examples: ["/run/secrets/syncline/webhook"],
      })
      .exactOptional(),
    previousSecretFile: textSchema
      .meta({
        description:
          "The file with the previous secret during a rotation. Both secrets sign, so the receiver may know either.",
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
      .meta({ description: "The time-out of one delivery.", default: "10s", examples: ["5s"] })
      .exactOptional(),
  })
  .meta({
    description: "A signed HTTP call for each notice.",
    examples: [{ url: "https://hooks.example.com/syncline", secretFile: "/run/secrets/syncline/webhook" }],
  });

const fileSchema = z
  .strictObject({
    path: textSchema.meta({
      description: "The file to append to, relative to the policy file. Give each worker its own.",
      examples: ["/var/log/syncline/notices.jsonl"],
    }),
    maxSize: z
      .string()
      .regex(/^[1-9]\d{0,6}(KB|MB|GB)$/, 'a size is a whole number and KB, MB or GB, such as "10MB"')
      .meta({
        description: "At this size the file is renamed to `path.1`, and a new one begins.",
        default: "10MB",
        examples: ["100MB"],
      })
      .exactOptional(),
    maxFiles: z
      .int()
      .min(1)
      .max(100)
      .meta({
        description: "How many files are kept, including the current one. The oldest is removed.",
        default: 5,
        examples: [10],
      })
      .exactOptional(),
  })
  .meta({ description: "A line of JSON for each notice.", examples: [{ path: "/var/log/syncline/notices.jsonl" }] });

const sinkSchema = z.strictObject({
  webhook: webhookSchema.exactOptional(),
  file: fileSchema.exactOptional(),
  giveUpAfter: durationSchema("1m", "30d")
    .meta({
      description: "How long delivery of a notice is tried. After that it goes to the failed list (`syncline failed`).",
      default: "24h",
      examples: ["72h"],
    })
    .exactOptional(),
  queueMax: z
    .int()
    .min(1)
    .max(policyLimits.sinkQueueMax)
    .meta({
      description: "How many notices may wait. Further ones are dropped and counted.",
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
        "Lists whose new items are sent here as notices of kind `items`, each once, from every service and repository, while runs follow the list or a poll reads it. Default: none.",
      default: "none",
      examples: [["activities", "conflictDetails"]],
    })
    .exactOptional(),
});

/** The sinks of a file, by name. */
export const sinksSchema = z.record(nameSchema, sinkSchema).meta({
  description: "Where notices go, by name; each sink has exactly one of webhook and file.",
  examples: [{ ops: { file: { path: "notices.jsonl" } } }],
});

/** A host in `outbound.hosts`: exact, or everything below a domain. */
const outboundHostPattern =
  /^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$|^\[[0-9a-f:]+\]$/;

/** Which hosts sinks and heartbeats may call. */
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
          "Hosts that sinks and heartbeats may call: exact names, or `*.example.com` for every host below that domain.",
        examples: [["hooks.example.com", "*.slack.com"]],
      }),
  })
  .meta({
    description: "Restricts the hosts of sinks and heartbeats, over all files of a folder. Default: any host.",
    examples: [{ hosts: ["hooks.example.com"] }],
  });

/** One sink as written. */
export type SinkInput = z.infer<typeof sinkSchema>;
