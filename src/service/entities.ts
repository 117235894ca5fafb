// The service's entities: documented fields are checked, unknown ones kept. Every field may be
// missing, since answers may be cut to default properties. Called by answer.ts; the types are part
// of the library. Source: service-interface §2.
import { z } from "zod";

const digits = /^-?\d{1,19}$/;

/**
 * A whole number of the service. Servers send Int64 as a number or as digits in a string. Beyond
 * ±2^53-1 it stays a string, so that no id is rounded to another one.
 */
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

/** A sync job. Source: service-interface §2, SyncJobEntity. */
export const syncJobSchema = z.looseObject({ syncJobId: optionalWholeNumber, name: text });
/**
 * A mask of a sync job; `type` was seen as `DocMask` and `FolderMask`. Source: service-interface
 * §2, MaskEntity.
 */
export const maskSchema = z.looseObject({
  maskId: optionalWholeNumber,
  name: text,
  ecmMaskId: text,
  type: text,
  syncJobId: optionalWholeNumber,
});
/**
 * A drive-type or site-type sync target: both have the same fields. Source: service-interface §2.
 */
export const syncTargetSchema = z.looseObject({
  thirdSystemSyncTargetId: optionalWholeNumber,
  siteName: text,
  siteId: text,
  folderName: text,
  folderId: text,
});
/** An item that waits for an approval. Source: service-interface §2, ApprovalEntity. */
const approvalSchema = z.looseObject({ approvalId: optionalWholeNumber, itemName: text, itemId: text });
/** A user or group of the repository. Source: service-interface §2, EcmIdentityEntity. */
export const identitySchema = z.looseObject({
  id: text,
  idAsNumber: optionalWholeNumber,
  name: text,
  isAdministrator: flag,
});
/** A trigger. Source: service-interface §2, TriggerEntity. */
const triggerSchema = z.looseObject({ triggerId: optionalWholeNumber, isActive: flag });
/**
 * An authentication activity of an account; it has more fields. Source: service-interface §2,
 * AuthAccountActivityEntity.
 */
const authActivitySchema = z.looseObject({
  authAccountActivityEntityId: optionalWholeNumber,
  accountIdentifier: flag,
  accountObjectId: flag,
});
/**
 * An entity without known fields: activities and conflict details. Source: service-interface §2,
 * Gaps.
 */
const unknownEntitySchema = z.looseObject({});

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

/** The item type of each list. */
export interface ItemTypes {
  readonly GetJobMasks: Mask;
  readonly GetApprovals: Approval;
  readonly GetTriggers: Trigger;
  readonly GetAuthActivities: AuthActivity;
  readonly GetActivities: UnknownEntity;
  readonly GetConflictDetails: UnknownEntity;
}

/** The schema of one item of each list. */
export const itemSchemas: { readonly [List in keyof ItemTypes]: z.ZodType<ItemTypes[List]> } = {
  GetJobMasks: maskSchema,
  GetApprovals: approvalSchema,
  GetTriggers: triggerSchema,
  GetAuthActivities: authActivitySchema,
  GetActivities: unknownEntitySchema,
  GetConflictDetails: unknownEntitySchema,
};

/** The item type of a list operation. */
export type ItemOf<List extends keyof ItemTypes> = ItemTypes[List];
