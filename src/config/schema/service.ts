// The `services` of a policy file: where a service is, how to log in, its limits, what its items
// mean. Source: service-interface §4 (paths), §5 (token), §2 (items).
import { z } from "zod";
import {
  durationSchema,
  expressionSchema,
  nameSchema,
  optional,
  required,
  textSchema,
  unlessMissing,
  whole,
} from "./primitives.ts";

const oauth2Schema = z.strictObject({
  tokenUrl: required(
    textSchema,
    "The token endpoint: https, or http to this machine; trusted by public authorities and tls.caFile.",
    "https://login.example.com/oauth2/token",
  ),
  clientId: required(textSchema, "The client id.", "syncline"),
  clientSecretFile: required(
    textSchema,
    "The file with the client secret; read for each token request.",
    "/run/secrets/syncline/client",
  ),
  scope: optional(textSchema, "The scope to ask for. Default: none.", "sync.run"),
  auth: optional(z.enum(["basic", "post"]), "How the secret is sent: in the header, or in the body.", "post", "basic"),
  allowHttp: optional(z.boolean(), "Allows http to other hosts.", false, false),
});

const tokenSchema = z
  .strictObject(
    {
      file: optional(
        textSchema,
        "The file with the token; read again within 30 s of a change.",
        "/run/secrets/syncline/token",
      ),
      env: optional(
        z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "write the name of the variable alone, such as SYNC_TOKEN"),
        "The environment variable that holds the token.",
        "SYNC_TOKEN",
      ),
      oauth2: oauth2Schema.meta({ description: "A token by OAuth 2 client credentials." }).exactOptional(),
    },
    {
      error: (issue) =>
        typeof issue.input === "string"
          ? "a token never stands in a policy file: write { file: PATH } or { env: NAME }"
          : undefined,
    },
  )
  .meta({
    description: "The bearer token comes from exactly one of file, env, oauth2.",
    examples: [{ file: "/run/secrets/syncline/token" }],
    minProperties: 1,
    maxProperties: 1,
  });

const hostName =
  /^(?=.{1,253}$)(?!\d+(\.\d+){3}$)([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

const tlsSchema = z.strictObject({
  caFile: optional(
    textSchema,
    "Authorities of the service's certificate, in PEM, instead of the public ones.",
    "/run/secrets/syncline/ca.crt",
  ),
  certFile: optional(textSchema, "The client certificate, in PEM; requires keyFile.", "/run/secrets/syncline/tls.crt"),
  keyFile: optional(textSchema, "The private key of certFile, in PEM.", "/run/secrets/syncline/tls.key"),
  keyPassphraseFile: optional(textSchema, "A file with the passphrase of keyFile.", "/run/secrets/syncline/pass"),
  serverName: optional(
    z.string().regex(hostName, "write a host name, such as sync.example.com"),
    "The host name in the service's certificate. Default: that of baseUrl.",
    "sync.example.com",
  ),
});

const identitySchema = z.strictObject({
  id: required(
    z.uuid(unlessMissing("the id of an identity is a UUID")),
    "Its id, a UUID.",
    "6f1c2a34-5b67-4c89-9d01-23456789abcd",
  ),
  repository: required(textSchema, "The repository that has it.", "HR"),
  administrator: optional(z.boolean(), "Whether `syncline doctor` expects an administrator.", true, false),
});

const itemMappingSchema = z.strictObject({
  id: optional(
    expressionSchema,
    "The item's unique id. Default: the documented key, or a fingerprint.",
    "item.activityId",
  ),
  syncJobId: optional(expressionSchema, "The sync job that the item belongs to. Default: unknown.", "item.syncJobId"),
  startedAt: optional(expressionSchema, "When it started. Default: unknown.", "item.startedAt"),
  finished: optional(expressionSchema, "True when it has ended. Default: inferred from quiet.", "item.endedAt != null"),
  succeeded: optional(
    expressionSchema,
    "True when it has ended well. Default: assumed (inferred).",
    'item.state == "Finished"',
  ),
  label: optional(expressionSchema, "Its name for people. Default: its name or id.", "item.name"),
  sample: optional(
    textSchema,
    "A JSON file with items on which loading tries each expression (docs/outcomes.md#mappings-that-fail).",
    "samples/activities.json",
  ),
});

const describedItem = (list: string) => itemMappingSchema.meta({ description: `An item of ${list}.` }).exactOptional();

const propertyName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, "the name of a property is 1 to 128 letters, digits and _, no digit first");

const syncJobMappingSchema = z.strictObject({
  active: required(
    expressionSchema,
    "True when the sync job is active: a read then verifies each activation of an activate policy.",
    'item.state == "Active"',
  ),
  select: optional(z.array(propertyName).min(1).max(20), "The properties to request (`$select`); default: none.", [
    "state",
  ]),
});

const mappingSchema = z.strictObject({
  activity: describedItem("activities"),
  conflict: describedItem("conflictDetails"),
  approval: describedItem("approvals"),
  trigger: describedItem("triggers"),
  authActivity: describedItem("authActivities"),
  mask: describedItem("masks"),
  syncJob: syncJobMappingSchema.meta({ description: "What the properties of a sync job mean." }).exactOptional(),
});

const limitsSchema = z.strictObject({
  concurrency: optional(
    whole(1, 100),
    "Requests at a time over all replicas, 1 to 100; also actions in work at a time in each. Default: no limit, and 4 actions.",
    8,
  ),
  requestsPerSecond: z
    .number()
    .min(0.1)
    .max(1_000)
    .meta({
      description: "Requests in any second over all replicas, 0.1 to 1,000. Default: no limit.",
      examples: [5, 0.2],
    })
    .exactOptional(),
});

const breakerSchema = z.strictObject({
  after: optional(whole(1, 1_000), "So many failures in a row, over all replicas, open the breaker.", 10, 5),
  probe: optional(durationSchema("1s", "1h"), "How often a read probes the service while it is open.", "1m", "30s"),
});

const timeoutsSchema = z.strictObject({
  request: optional(durationSchema("100ms", "10m"), "The time-out of one whole request.", "1m", "30s"),
});

/** One service. */
export const serviceSchema = z.strictObject({
  baseUrl: required(textSchema, "Its URL, without query, fragment and credentials.", "https://sync.example.com"),
  token: tokenSchema,
  tls: optional(
    tlsSchema.meta({ minProperties: 1 }),
    "Private authority and client certificate; read again within 30 s of a change.",
    { caFile: "/run/secrets/syncline/ca.crt" },
  ),
  pathForm: optional(
    z.enum(["parentheses", "segment"]),
    "Keys in paths: `run(42)` or `run/42`.",
    "segment",
    "parentheses",
  ),
  limits: optional(limitsSchema, "Limits over all replicas. A task that they block waits in the queue.", {
    concurrency: 4,
    requestsPerSecond: 5,
  }),
  breaker: optional(
    breakerSchema,
    "The circuit breaker: while it is open, tasks of the service wait (docs/day-to-day.md).",
    { after: 5, probe: "30s" },
  ),
  timeouts: optional(timeoutsSchema, "Time-outs of the service.", { request: "1m" }),
  mapping: optional(
    mappingSchema,
    "What the fields of items mean, by CEL over `item`. Without it runs are settled by inference.",
    { activity: { id: "item.activityId", syncJobId: "item.syncJobId" } },
  ),
  identity: optional(identitySchema, "The user or group behind the token; for `syncline doctor`.", {
    id: "6f1c2a34-5b67-4c89-9d01-23456789abcd",
    repository: "HR",
    administrator: true,
  }),
});

/** The services of a file, by name. */
export const servicesSchema = z.record(nameSchema, serviceSchema).meta({
  description: "The services, by name: 1 to 63 small letters, digits and hyphens.",
  examples: [{ main: { baseUrl: "https://sync.example.com", token: { env: "SYNC_TOKEN" } } }],
});

/** One service as written. */
export type ServiceInput = z.infer<typeof serviceSchema>;
