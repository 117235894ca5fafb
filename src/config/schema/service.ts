// The `services` of a policy file: where a service is, how to log in, its limits, what its items
// mean. Part of policy-file.ts. Source: service-interface §4 (paths), §5 (token), §2 (items).

import { z } from "zod";
import { tlsSchema, tokenSchema } from "./login.ts";
import { durationSchema, expressionSchema, nameSchema, textSchema } from "./primitives.ts";

/** The user or group that `syncline doctor` loads. */
const identitySchema = z
  .strictObject({
    id: z
      .uuid({ error: (issue) => (issue.input === undefined ? undefined : "the id of an identity is a UUID") })
      .meta({ description: "Its id, a UUID.", examples: ["6f1c2a34-5b67-4c89-9d01-23456789abcd"] }),
    repository: textSchema.meta({ description: "The repository that has it.", examples: ["HR"] }),
    administrator: z
      .boolean()
      .meta({ description: "Whether `syncline doctor` expects an administrator.", default: false, examples: [true] })
      .exactOptional(),
  })
  .meta({
    description:
      "The user or group behind the token. Only `syncline doctor` uses it, to check that it can be loaded and what rights it has.",
    examples: [{ id: "6f1c2a34-5b67-4c89-9d01-23456789abcd", repository: "HR", administrator: true }],
  });

const itemMappingSchema = z.strictObject({
  id: expressionSchema
    .meta({
      description: "The item's unique id. Default: a fingerprint of the whole item.",
      examples: ["item.activityId"],
    })
    .exactOptional(),
  syncJobId: expressionSchema
    .meta({ description: "The sync job that the item belongs to. Default: unknown.", examples: ["item.syncJobId"] })
    .exactOptional(),
  startedAt: expressionSchema
    .meta({ description: "When it started. Default: when Syncline first saw it.", examples: ["item.startedAt"] })
    .exactOptional(),
  finished: expressionSchema
    .meta({
      description: "True when it has ended. Default: inferred when the list grows quiet.",
      examples: ['item.state in ["Finished", "Failed"]'],
    })
    .exactOptional(),
  succeeded: expressionSchema
    .meta({ description: "True when it has ended well. Default: unknown.", examples: ['item.state == "Finished"'] })
    .exactOptional(),
  label: expressionSchema
    .meta({ description: "Its name for people. Default: its id.", examples: ["item.name"] })
    .exactOptional(),
  sample: textSchema
    .meta({
      description:
        "A JSON file beside the policy file: one item, a list of items, or an answer of the service with `value`. Loading tries each expression on its items. Default: none.",
      examples: ["samples/activities.json"],
    })
    .exactOptional(),
});

const describedItem = (what: string) =>
  itemMappingSchema
    .meta({ description: `What an item of the list ${what} means: CEL expressions over \`item\`.` })
    .exactOptional();

const nameOfPropertySchema = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, "the name of a property is 1 to 128 letters, digits and _, no digit first");

const syncJobMappingSchema = z.strictObject({
  active: expressionSchema.meta({
    description:
      "True when the sync job is active. Then each activation is verified by reading the sync job, also when its answer was lost. Default: the answer decides.",
    examples: ['item.state == "Active"'],
  }),
  select: z
    .array(nameOfPropertySchema)
    .min(1)
    .max(20)
    .meta({
      description: "The properties to request (`$select`), if the service does not return them by default.",
      examples: [["state"]],
    })
    .exactOptional(),
});

const mappingSchema = z
  .strictObject({
    activity: describedItem("activities"),
    conflict: describedItem("conflictDetails"),
    approval: describedItem("approvals"),
    trigger: describedItem("triggers"),
    authActivity: describedItem("authActivities"),
    mask: describedItem("masks"),
    syncJob: syncJobMappingSchema
      .meta({ description: "What the properties of a sync job mean: CEL expressions over `item`." })
      .exactOptional(),
  })
  .meta({
    description:
      "What the fields of the service's items mean, since the interface does not document them. Without it runs are settled by inference.",
    examples: [{ activity: { id: "item.activityId", syncJobId: "item.syncJobId" } }],
  });

/** One service. */
export const serviceSchema = z.strictObject({
  baseUrl: textSchema.meta({
    description: "The URL of the service, http or https, without query, fragment and credentials.",
    examples: ["https://sync.example.com"],
  }),
  token: tokenSchema,
  tls: tlsSchema.exactOptional(),
  pathForm: z
    .enum(["parentheses", "segment"])
    .meta({
      description: "How paths hold keys: `run(42)` or `run/42`.",
      default: "parentheses",
      examples: ["segment"],
    })
    .exactOptional(),
  limits: z
    .strictObject({
      concurrency: z
        .int()
        .min(1)
        .max(100)
        .meta({
          description:
            "How many requests all replicas together send at a time, 1 to 100; also how many actions one replica works on at a time. Default: no limit over the replicas, and 4 actions each.",
          examples: [8],
        })
        .exactOptional(),
      requestsPerSecond: z
        .number()
        .min(0.1)
        .max(1_000)
        .meta({
          description:
            "How many requests all replicas together send in any second; below 1, one in 1/rate seconds. Default: no limit.",
          examples: [5, 0.2],
        })
        .exactOptional(),
    })
    .meta({
      description: "Limits over all replicas. A task that they block waits in the queue and takes no worker's slot.",
      examples: [{ concurrency: 4, requestsPerSecond: 5 }],
    })
    .exactOptional(),
  breaker: z
    .strictObject({
      after: z
        .int()
        .min(1)
        .max(1_000)
        .meta({
          description:
            "How many failures in a row, over all replicas, open the breaker: server errors, no answer, unreachable, no token, 401 and 403.",
          default: 5,
          examples: [10],
        })
        .exactOptional(),
      probe: durationSchema("1s", "1h")
        .meta({
          description: "How often all replicas together probe the service with one read while the breaker is open.",
          default: "30s",
          examples: ["1m"],
        })
        .exactOptional(),
    })
    .meta({
      description:
        "The circuit breaker: when the service counts as down. Until it answers a probe, tasks wait and no other request is sent.",
      examples: [{ after: 5, probe: "30s" }],
    })
    .exactOptional(),
  timeouts: z
    .strictObject({
      request: durationSchema("100ms", "10m")
        .meta({ description: "The time-out of one whole request.", default: "30s", examples: ["1m"] })
        .exactOptional(),
    })
    .meta({ description: "Time-outs of the service.", examples: [{ request: "1m" }] })
    .exactOptional(),
  mapping: mappingSchema.exactOptional(),
  identity: identitySchema.exactOptional(),
});

/** The services of a file, by name. */
export const servicesSchema = z.record(nameSchema, serviceSchema).meta({
  description: "The services, by name: 1 to 63 small letters, digits and hyphens, not all digits.",
  examples: [{ main: { baseUrl: "https://sync.example.com", token: { env: "SYNC_TOKEN" } } }],
});

/** One service as written. */
export type ServiceInput = z.infer<typeof serviceSchema>;
