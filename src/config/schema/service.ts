// The `services` part of a policy file: where a service is, how to log in, how much to ask of it, what its items mean.
// Part of policy-file.ts. Source: service-interface §4 (paths), §5 (token), §2 (items).
import { z } from "zod";
import { identitySchema } from "./identity.ts";
import { tlsSchema, tokenSchema } from "./login.ts";
import { durationSchema, expressionSchema, nameSchema, textSchema } from "./primitives.ts";

const itemMappingSchema = z.strictObject({
  id: expressionSchema
    .meta({
      description: "What tells the item from all others. Without it: a fingerprint of the whole item.",
      examples: ["item.activityId"],
    })
    .exactOptional(),
  syncJobId: expressionSchema
    .meta({ description: "The sync job that the item belongs to. Without it: unknown.", examples: ["item.syncJobId"] })
    .exactOptional(),
  startedAt: expressionSchema
    .meta({ description: "When it started. Without it: when Syncline first saw it.", examples: ["item.startedAt"] })
    .exactOptional(),
  finished: expressionSchema
    .meta({
      description: "True when it has ended. Without it: inferred from the list growing quiet.",
      examples: ['item.state in ["Finished", "Failed"]'],
    })
    .exactOptional(),
  succeeded: expressionSchema
    .meta({ description: "True when it has ended well. Without it: unknown.", examples: ['item.state == "Finished"'] })
    .exactOptional(),
  label: expressionSchema
    .meta({ description: "What people call it. Without it: its id.", examples: ["item.name"] })
    .exactOptional(),
  sample: textSchema
    .meta({
      description:
        "A JSON file beside the policy file: one item, a list of items, or an answer of the service with `value`. When policies are loaded, each expression is tried on its items.",
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
      "True when the sync job is active. Then an activation ends as what is seen: each is looked at, also one whose answer got lost.",
    examples: ['item.state == "Active"'],
  }),
  select: z
    .array(nameOfPropertySchema)
    .min(1)
    .max(20)
    .meta({
      description: "The properties to ask for (`$select`), where the service does not show it unasked.",
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
      "What the service's items mean, since their fields are not promised. Without it runs are settled by inference.",
    examples: [{ activity: { id: "item.activityId", syncJobId: "item.syncJobId" } }],
  });

/** One service. */
const serviceSchema = z.strictObject({
  baseUrl: textSchema.meta({
    description: "The address of the service, http or https, without query, fragment and credentials.",
    examples: ["https://sync.example.com"],
  }),
  token: tokenSchema,
  tls: tlsSchema.exactOptional(),
  pathForm: z
    .enum(["parentheses", "segment"])
    .meta({
      description: "How keys stand in paths: `run(42)` or `run/42`.",
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
            "Requests to the service at a time, all replicas together, 1 to 100; also how many actions one replica works on at a time. Unless said: no limit over the replicas, and 4 actions each.",
          examples: [8],
        })
        .exactOptional(),
      requestsPerSecond: z
        .number()
        .min(0.01)
        .max(1_000)
        .meta({
          description:
            "Requests to the service a second, all replicas together: never more than that in any second, and below 1 one in 1/rate seconds. Unlimited unless said.",
          examples: [5, 0.2],
        })
        .exactOptional(),
    })
    .meta({
      description:
        "How much to ask of the service, all replicas together. What finds no place sleeps without a worker.",
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
            "Failures in a row, over all replicas, that open the breaker: server errors, no answer, out of reach, no token, 401 and 403.",
          default: 5,
          examples: [10],
        })
        .exactOptional(),
      probe: durationSchema("1s", "1h")
        .meta({
          description: "How often a service whose breaker is open is asked again, by one read over all replicas.",
          default: "30s",
          examples: ["1m"],
        })
        .exactOptional(),
    })
    .meta({
      description: "When a service counts as down. Until it answers again, tasks sleep and nothing else is sent.",
      examples: [{ after: 5, probe: "30s" }],
    })
    .exactOptional(),
  timeouts: z
    .strictObject({
      request: durationSchema("100ms", "10m")
        .meta({ description: "How long one request may take in all.", default: "30s", examples: ["1m"] })
        .exactOptional(),
    })
    .meta({ description: "How long to wait for the service.", examples: [{ request: "1m" }] })
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
