// What a policy does: run, activate, apply, delete or poll. Part of policy-file.ts, which wants
// exactly one of them. Source: service-interface §4.1 (operations), §4.3 (what a PUT may change).
import { z } from "zod";
import { expressionSchema, idSchema, syncJobsSchema, textSchema } from "./primitives.ts";

const runSchema = z
  .strictObject({
    syncJobs: syncJobsSchema
      .meta({ description: "The ids of the sync jobs, 1 to 1,000.", examples: [[42, 43]] })
      .exactOptional(),
    fromMasks: z
      .strictObject({
        type: textSchema.meta({ description: "Only masks of this type.", examples: ["DocMask"] }).exactOptional(),
        name: z
          .string()
          .min(1)
          .max(200)
          .meta({
            description: "Only masks with this name; `*` stands for any text, `?` for one character.",
            examples: ["Contract*"],
          })
          .exactOptional(),
      })
      .meta({
        description: "The sync jobs that have such a mask when the slot is due; {} for every sync job with a mask.",
        examples: [{ type: "DocMask", name: "Contract*" }],
      })
      .exactOptional(),
    activate: z
      .boolean()
      .meta({
        description:
          "Activates each sync job before its run, once a task. When the service refuses or fails, the run is not started. When its answer is lost, the run starts anyway, unless onUnknown is give-up. Default: no activation.",
        default: false,
        examples: [true],
      })
      .exactOptional(),
  })
  .meta({
    description: "Starts a run of each sync job: exactly one of syncJobs and fromMasks.",
    examples: [{ syncJobs: [42, 43] }],
    minProperties: 1,
    maxProperties: 2,
  });

const activateSchema = z
  .strictObject({
    syncJobs: syncJobsSchema.meta({ description: "The ids of the sync jobs, 1 to 1,000.", examples: [[42]] }),
  })
  .meta({ description: "Activates each sync job.", examples: [{ syncJobs: [42] }] });

const pollSchema = z
  .strictObject({
    list: z
      .enum(["approvals", "triggers", "authActivities", "activities", "conflictDetails", "masks"])
      .meta({ description: "The list to read.", examples: ["approvals"] }),
    expect: expressionSchema
      .meta({
        description:
          "A CEL expression that must be true. It sees `count`, `items`, `new` and `modified` (items since this policy's last poll) and `previous` (`count` and `at` of that poll, null at the first). Without it and without `offending`, a poll only reports (docs/policy-kinds.md#polls).",
        examples: ["count <= 20", "previous == null || count <= previous.count"],
      })
      .exactOptional(),
    offending: expressionSchema
      .meta({
        description:
          "A CEL expression over `item`, true for an offending item. The outcome names up to 10 of them. Without `expect`, one offending item fails the expectation.",
        examples: ["!item.isActive"],
      })
      .exactOptional(),
    notifyOn: z
      .enum(["change", "always"])
      .meta({
        description:
          "Which outcomes notify the sinks in `notify`: `change` those that differ from the poll before (also a recovery), `always` each.",
        default: "change",
        examples: ["always"],
      })
      .exactOptional(),
  })
  .meta({
    description: "Reads a list and checks it against an expectation.",
    examples: [{ list: "approvals", expect: "count <= 20" }],
  });

const byId = <Value extends z.ZodType>(value: Value) =>
  z.record(z.string().regex(/^(0|[1-9]\d{0,14})$/, "the key is an id: digits only, without zeros in front"), value);
const named = byId(
  z.strictObject({ name: textSchema.meta({ description: "The name to set.", examples: ["Contracts"] }) }),
);
const targets = byId(
  z.strictObject({
    siteName: textSchema.meta({ description: "The name of the site.", examples: ["HR"] }).exactOptional(),
    siteId: textSchema.meta({ description: "The id of the site.", examples: ["a1"] }).exactOptional(),
    folderName: textSchema.meta({ description: "The name of the folder.", examples: ["In"] }).exactOptional(),
    folderId: textSchema.meta({ description: "The id of the folder.", examples: ["b2"] }).exactOptional(),
  }),
);

const applySchema = z
  .strictObject({
    syncJobs: named
      .meta({ description: "Sync jobs by id.", examples: [{ 42: { name: "Contracts" } }] })
      .exactOptional(),
    docMasks: named
      .meta({ description: "Document masks by id.", examples: [{ 7: { name: "Contract" } }] })
      .exactOptional(),
    driveTargets: targets
      .meta({ description: "Drive-type targets by id.", examples: [{ 9: { siteName: "HR" } }] })
      .exactOptional(),
    siteTargets: targets
      .meta({ description: "Site-type targets by id.", examples: [{ 9: { siteName: "HR" } }] })
      .exactOptional(),
  })
  .meta({
    description: "Applies a declared state: reads each object and changes only the fields that differ.",
    examples: [{ syncJobs: { 42: { name: "Contracts" } } }],
  });

const deleteSchema = z
  .strictObject({
    syncJob: idSchema.meta({ description: "The id of the sync job.", examples: [42] }),
    name: textSchema.meta({ description: "Its exact name, as a guard against the wrong id.", examples: ["Contracts"] }),
  })
  .meta({
    description: "Deletes a sync job, if it still has exactly this name (docs/policy-kinds.md#delete).",
    examples: [{ syncJob: 42, name: "Contracts" }],
  });

/** The action keys of a policy. */
export const actionFields = {
  run: runSchema.exactOptional(),
  activate: activateSchema.exactOptional(),
  poll: pollSchema.exactOptional(),
  apply: applySchema.exactOptional(),
  delete: deleteSchema.exactOptional(),
} as const;
