// The `sinks` part of a policy file: where outcomes go beside the log and the history. Part of policy-file.ts.
import { z } from "zod";
import { nameSchema, textSchema } from "./primitives.ts";

const webhookSchema = z
  .strictObject({
    url: textSchema.meta({ description: "Where outcomes are sent.", examples: ["https://hooks.example.com/syncline"] }),
    secretFile: textSchema.meta({
      description: "The file that holds the signing secret, relative to the policy file.",
      examples: ["/run/secrets/syncline/webhook"],
    }),
  })
  .meta({
    description: "A signed HTTP call for each outcome.",
    examples: [{ url: "https://hooks.example.com/syncline" }],
  });

const fileSchema = z
  .strictObject({
    path: textSchema.meta({ description: "The file to append to.", examples: ["/var/log/outcomes.jsonl"] }),
  })
  .meta({ description: "A line of JSON for each outcome.", examples: [{ path: "/var/log/outcomes.jsonl" }] });

/** The sinks of a file, by name. */
export const sinksSchema = z
  .record(nameSchema, z.strictObject({ webhook: webhookSchema.exactOptional(), file: fileSchema.exactOptional() }))
  .meta({
    description: "Where outcomes go, by name; exactly one of webhook and file each.",
    examples: [{ ops: { file: { path: "outcomes.jsonl" } } }],
  });
