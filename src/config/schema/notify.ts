// Whom to tell what: the `notify` and `heartbeat` of a policy, and `telling` of a file. Part of policy-file.ts; what the words mean
// for a policy's fate is in telling/, and the table of rules and messages in docs/telling.md.
import { z } from "zod";
import { noticeKinds } from "../notice-kinds.ts";
import { durationSchema, nameSchema, textSchema, timezoneSchema } from "./primitives.ts";

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
  "silence",
  "token-expiring",
] as const;

const ruleSchema = z.union(
  [
    z.enum(ruleWords),
    z.strictObject({
      failure: z
        .int()
        .min(1)
        .max(100)
        .meta({ description: "So many slots in a row in which a task failed.", examples: [3] }),
    }),
    z.strictObject({
      conflicts: z
        .int()
        .min(0)
        .max(1_000_000)
        .meta({ description: "A run brought more new conflicts than this.", examples: [10] }),
    }),
  ],
  { error: () => `a rule is ${ruleWords.join(", ")}, { failure: 3 } or { conflicts: 10 }` },
);

const notifyItemSchema = z.union(
  [
    nameSchema,
    z.strictObject({
      sink: nameSchema.meta({ description: "The sink, by its name under `sinks`.", examples: ["ops"] }),
      on: z
        .array(ruleSchema)
        .min(1)
        .max(ruleWords.length)
        .meta({
          description: "What it is told.",
          examples: [[{ failure: 3 }, "recovery"]],
        })
        .exactOptional(),
    }),
  ],
  {
    error: (issue) =>
      typeof issue.input === "object"
        ? undefined
        : "write the name of a sink, or { sink: NAME, on: [change] } with the rules",
  },
);

/** Whom a policy tells what. The same key stands under `defaults`. */
export const notifySchema = z
  .array(notifyItemSchema)
  .max(20)
  .meta({
    description:
      "Who is told what (docs/telling.md): names of sinks, or `{ sink, on }` with rules. Rules are `change` (what a bare name means: every change between good, failing, conflicts, blocked, unknown and missed, and `drift`), `every` (each outcome), `failure` or `{ failure: 3 }` (slots in a row), `recovery`, `conflicts` or `{ conflicts: 10 }` (more than so many), `blocked`, `unknown`, `missed`, `drift` (an `apply` policy found what somebody had changed by hand, and set it again), `silence` (no success for two intervals), `token-expiring`. [] for nobody, whatever `defaults` says.",
    examples: [["ops"], [{ sink: "ops", on: [{ failure: 3 }, "recovery"] }]],
  });

/** The dead man's switch of a policy. */
export const heartbeatSchema = z
  .strictObject({
    url: textSchema.meta({
      description: "What is asked (GET) after each success. Never shown in a log: it may be a secret.",
      examples: ["https://beats.example.com/ping/contracts"],
    }),
  })
  .meta({
    description:
      "A dead man's switch: a URL that is asked after each success, so that somebody else notices when it stops. Three tries, then not until the next success.",
    examples: [{ url: "https://beats.example.com/ping/contracts" }],
  });

const clockTimeSchema = z
  .string({ error: (issue) => (issue.input === undefined ? undefined : 'a time of day is text, such as "22:00"') })
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'a time of day is written "22:00"');

const quietHoursSchema = z
  .strictObject({
    from: clockTimeSchema.meta({ description: "When they begin, on the wall clock.", examples: ["22:00"] }),
    to: clockTimeSchema.meta({
      description: "When they end; the next day, when that is earlier.",
      examples: ["06:00"],
    }),
    timezone: timezoneSchema
      .meta({ description: "Their IANA time zone; that of `defaults` unless said.", examples: ["Europe/Vienna"] })
      .exactOptional(),
    except: z
      .array(z.enum(noticeKinds))
      .max(noticeKinds.length)
      .meta({ description: "Kinds of messages that are told all the same.", examples: [["service-down"]] })
      .exactOptional(),
  })
  .meta({
    description:
      "Hours in which messages wait. At their end each policy and service has one: its latest state, with how many it stands for.",
    examples: [{ from: "22:00", to: "06:00", timezone: "Europe/Vienna", except: ["service-down"] }],
  });

/** How messages are gathered, for all policies. */
export const tellingSchema = z
  .strictObject({
    quietHours: quietHoursSchema.exactOptional(),
    groupFor: durationSchema("1s", "1h")
      .meta({
        description:
          "How long failures that may be the service's are held back, so that an outage is one message; also how long a service must be well before its outage is over.",
        default: "30s",
        examples: ["1m"],
      })
      .exactOptional(),
  })
  .meta({
    description: "How messages are gathered (docs/telling.md); in one file of a folder.",
    examples: [{ quietHours: { from: "22:00", to: "06:00" }, groupFor: "30s" }],
  });
