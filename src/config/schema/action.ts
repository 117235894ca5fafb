// What a policy does: run, activate, apply, delete or poll; a rule wants exactly one of them.
// Source: service-interface §4.1 (operations), §4.3 (what a PUT may change).
import { z } from "zod";
import { listNames } from "../../model/feed.ts";
import { expressionSchema, idSchema, optional, required, syncJobsSchema, textSchema } from "./primitives.ts";

const fromMasksSchema = z.strictObject({
  type: optional(textSchema, "Only masks of this type.", "DocMask"),
  name: optional(
    z.string().min(1).max(200),
    "Only masks with this name; `*` is any text, `?` one character.",
    "Contract*",
  ),
});

const runSchema = z.strictObject({
  syncJobs: optional(syncJobsSchema, "The ids of the sync jobs, 1 to 1,000.", [42, 43]),
  fromMasks: optional(
    fromMasksSchema,
    "The sync jobs that have such a mask when the slot is due; {} for every sync job with a mask.",
    { type: "DocMask", name: "Contract*" },
  ),
  activate: optional(
    z.boolean(),
    "Activates each sync job first. Refused or failed: no run; answer lost: the run starts, unless onUnknown is give-up.",
    true,
    false,
  ),
});

const activateSchema = z.strictObject({
  syncJobs: required(syncJobsSchema, "The ids of the sync jobs, 1 to 1,000.", [42]),
});

const pollSchema = z.strictObject({
  list: required(z.enum(listNames), "The list to read.", "approvals"),
  expect: expressionSchema
    .meta({
      description:
        "A CEL expression that must be true of the list: it sees `count`, `items`, `new`, `modified`, `previous`.",
      examples: ["count <= 20", "previous == null || count <= previous.count"],
    })
    .exactOptional(),
  offending: optional(
    expressionSchema,
    "A CEL expression, true for an offending `item`. Without `expect`, no item may offend.",
    "!item.isActive",
  ),
  notifyOn: optional(
    z.enum(["change", "always"]),
    "Which outcomes are told: `change` those that differ from the poll before, `always` each.",
    "always",
    "change",
  ),
});

const byId = <Value extends z.ZodType>(value: Value) =>
  z.record(z.string().regex(/^(0|[1-9]\d{0,14})$/, "the key is an id: digits only, without zeros in front"), value);

const named = byId(z.strictObject({ name: required(textSchema, "The name to set.", "Contracts") }));

const targets = byId(
  z.strictObject({
    siteName: optional(textSchema, "The name of the site.", "HR"),
    siteId: optional(textSchema, "The id of the site.", "a1"),
    folderName: optional(textSchema, "The name of the folder.", "In"),
    folderId: optional(textSchema, "The id of the folder.", "b2"),
  }),
);

const applySchema = z.strictObject({
  syncJobs: optional(named, "Sync jobs by id.", { 42: { name: "Contracts" } }),
  docMasks: optional(named, "Document masks by id.", { 7: { name: "Contract" } }),
  driveTargets: optional(targets, "Drive-type targets by id.", { 9: { siteName: "HR" } }),
  siteTargets: optional(targets, "Site-type targets by id.", { 9: { siteName: "HR" } }),
});

const deleteSchema = z.strictObject({
  syncJob: required(idSchema, "The id of the sync job.", 42),
  name: required(textSchema, "Its exact name, as a guard against the wrong id.", "Contracts"),
});

/** The action keys of a policy. */
export const actionFields = {
  run: optional(
    runSchema.meta({ minProperties: 1, maxProperties: 2 }),
    "Starts a run of each sync job: exactly one of syncJobs and fromMasks.",
    { syncJobs: [42, 43] },
  ),
  activate: optional(activateSchema, "Activates each sync job.", { syncJobs: [42] }),
  poll: optional(pollSchema, "Reads a list and judges it (docs/policy-kinds.md#polls).", {
    list: "approvals",
    expect: "count <= 20",
  }),
  apply: optional(applySchema, "Sets what differs from a declared state (docs/policy-kinds.md#apply).", {
    syncJobs: { 42: { name: "Contracts" } },
  }),
  delete: optional(
    deleteSchema,
    "Deletes a sync job, if it still has exactly this name (docs/policy-kinds.md#delete).",
    { syncJob: 42, name: "Contracts" },
  ),
} as const;
