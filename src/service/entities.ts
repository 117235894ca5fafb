// The service's entities: documented fields are checked, unknown ones kept, and any may be missing.
// Called by answer.ts; the types are part of the library. Source: service-interface §2.
import { z } from "zod";
import { isJsonObject } from "../core/json.ts";

const digits = /^-?\d{1,19}$/;

/** A whole number of the service; beyond ±2^53-1 its digits, so that no id is rounded. */
export type WholeNumber = number | string;

const wholeNumber = z.union([z.number().refine(Number.isSafeInteger, "not a whole number"), z.string().regex(digits)]);
const optionalWholeNumber = wholeNumber
  .transform((value): WholeNumber => {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  })
  .nullish();
const text = z.string().nullish();
const flag = z.boolean().nullish();

/** SyncJobEntity. */
export const syncJobSchema = z.looseObject({ syncJobId: optionalWholeNumber, name: text });
/** MaskEntity; `type` was seen as `DocMask` and `FolderMask`. */
export const maskSchema = z.looseObject({
  maskId: optionalWholeNumber,
  name: text,
  ecmMaskId: text,
  type: text,
  syncJobId: optionalWholeNumber,
});
/** DriveSyncTargetEntity and SiteSyncTargetEntity: both have the same fields. */
export const syncTargetSchema = z.looseObject({
  thirdSystemSyncTargetId: optionalWholeNumber,
  siteName: text,
  siteId: text,
  folderName: text,
  folderId: text,
});
/** ApprovalEntity. */
const approvalSchema = z.looseObject({ approvalId: optionalWholeNumber, itemName: text, itemId: text });
/** EcmIdentityEntity: a user or group of the repository. */
const identitySchema = z.looseObject({
  id: text,
  idAsNumber: optionalWholeNumber,
  name: text,
  isAdministrator: flag,
});
/** Some identities. */
export const identitiesSchema = z.array(identitySchema);
/** TriggerEntity. */
const triggerSchema = z.looseObject({ triggerId: optionalWholeNumber, isActive: flag });
/** AuthAccountActivityEntity; it has more fields. */
const authActivitySchema = z.looseObject({
  authAccountActivityEntityId: optionalWholeNumber,
  accountIdentifier: flag,
  accountObjectId: flag,
});
/** An entity without known fields: activities and conflict details (§2, Gaps). Not copied. */
const unknownEntitySchema = z.custom<Record<string, unknown>>(isJsonObject);

/** A sync job as the service answers it. */
export type SyncJob = z.infer<typeof syncJobSchema>;
/** A mask as the service answers it. */
export type Mask = z.infer<typeof maskSchema>;
/** A drive-type or site-type sync target as the service answers it. */
export type SyncTarget = z.infer<typeof syncTargetSchema>;
/** An approval as the service answers it. */
export type Approval = z.infer<typeof approvalSchema>;
/** An identity as the service answers it. */
export type Identity = z.infer<typeof identitySchema>;
/** A trigger as the service answers it. */
export type Trigger = z.infer<typeof triggerSchema>;
/** An authentication activity as the service answers it. */
export type AuthActivity = z.infer<typeof authActivitySchema>;
/** An entity without known fields. */
export type UnknownEntity = z.infer<typeof unknownEntitySchema>;

/** The schema of the items of one page of each list. */
export const itemSchemas = {
  GetJobMasks: z.array(maskSchema),
  GetApprovals: z.array(approvalSchema),
  GetTriggers: z.array(triggerSchema),
  GetAuthActivities: z.array(authActivitySchema),
  GetActivities: z.array(unknownEntitySchema),
  GetConflictDetails: z.array(unknownEntitySchema),
};

/** The item type of a list operation. */
export type ItemOf<List extends keyof typeof itemSchemas> = z.infer<(typeof itemSchemas)[List]>[number];
