// Inspects a declared object: what is remembered, what is live, what differs. Changes it by one PUT
// (putFields). Sync jobs and masks can be read; drive and site targets cannot. Used by
// apply-object.ts and `plan --state`. Source: service-interface §4.1
import type { DeclaredObject } from "../core/declared-object.ts";
import type { AppliedRecord, ReadOnlyField } from "../model/applied-record.ts";
import { ServiceError, type UpdateOptions } from "../service/client.ts";
import { inRepository } from "../service/request-url.ts";
import type { InspectDependencies } from "./apply-dependencies.ts";
import { describeCreated, type FieldDifference, findDifferences, type Knowledge } from "./differences.ts";

/**
 * What an inspection found. `syncJobId`: in digits, where known. `etag`: goes back with a change.
 */
export type Inspection =
  | { readonly state: "missing"; readonly record: AppliedRecord; readonly detail: string }
  | {
      readonly state: "found";
      readonly knowledge: Knowledge;
      readonly record: AppliedRecord;
      readonly readOnly: readonly ReadOnlyField[];
      readonly differences: readonly FieldDifference[];
      readonly isReadable: boolean;
      readonly syncJobId: string | undefined;
      readonly etag: string | undefined;
    };

/** `isFresh`: earlier readings are too old. `isStale`: remembered values are not valid any more. */
export interface InspectOptions {
  readonly isFresh: boolean;
  readonly isStale: boolean;
}

/** @throws ServiceError when it cannot be read; NewerVersionError for a newer version's record. */
export async function inspect(
  object: DeclaredObject,
  deps: InspectDependencies,
  { isFresh, isStale }: InspectOptions,
): Promise<Inspection> {
  const { memory, place, forgetBeforeMs = 0 } = deps;
  const kept = await memory.record(place, object);
  const counts = ({ atMs }: { readonly atMs: number }) => atMs >= forgetBeforeMs;
  const refused = Object.fromEntries(Object.entries(kept.refused).filter(([, refusal]) => counts(refusal)));
  const record = { ...kept, refused };
  const readOnly = (await memory.readOnly(place.service, object.kind)).filter(counts);
  const live = await readLive(object, deps, isFresh || record.sent.length > 0);
  if (live.state === "missing") return { state: "missing", record, detail: live.detail };
  const isReadable = live.state === "read";
  const { createdAtMs } = record;
  // A success of a later update would only say that what Syncline created by mistake is there.
  if (createdAtMs !== undefined && !isReadable && counts({ atMs: createdAtMs }))
    return { state: "missing", record, detail: describeCreated(createdAtMs) };
  const entity = isReadable ? live.entity : undefined;
  const knowledge = { entity, record, readOnly, isStale };
  return {
    state: "found",
    knowledge,
    record,
    readOnly,
    differences: findDifferences(object, knowledge),
    isReadable,
    syncJobId: isReadable ? live.syncJobId : undefined,
    etag: entity === undefined ? (record.etag ?? undefined) : etagOf(entity),
  };
}

/** `missing`: why the object counts as missing. `unreadable`: no operation reads it. */
type Live =
  | {
      readonly state: "read";
      readonly entity: Readonly<Record<string, unknown>>;
      /** The sync job of the object, in digits, where it names one. */
      readonly syncJobId: string | undefined;
    }
  | { readonly state: "missing"; readonly detail: string }
  | { readonly state: "unreadable" };

/** Reads an object; `isFresh`: no earlier reading of the masks will do. @throws ServiceError */
async function readLive(object: DeclaredObject, deps: InspectDependencies, isFresh: boolean): Promise<Live> {
  switch (object.kind) {
    case "syncJob":
      return readSyncJob(object, deps, isFresh);
    case "docMask":
      return readMask(object, deps, isFresh);
    case "driveTarget":
    case "siteTarget":
      return { state: "unreadable" };
  }
}

/** Changes fields. Returns the entity of the answer, `{}` for none. @throws ServiceError */
export function putFields(
  { kind, id }: DeclaredObject,
  body: Readonly<Record<string, string>>,
  { service, place, signal, ifMatch }: InspectDependencies & Pick<UpdateOptions, "ifMatch">,
): Promise<Readonly<Record<string, unknown>>> {
  const query = inRepository(place);
  const options = { signal, ifMatch };
  switch (kind) {
    case "syncJob":
      return service.updateSyncJobById(id, body, query, options);
    case "docMask":
      return service.updateEcmDocumentMaskById(id, body, query, options);
    case "driveTarget":
      return service.updateDriveSyncTargetById(id, body, query, options);
    case "siteTarget":
      return service.updateSiteSyncTargetById(id, body, query, options);
  }
}

/** The entity's ETag, where it has one that can be sent back. */
export function etagOf(entity: Readonly<Record<string, unknown>>): string | undefined {
  const etag = entity["@odata.etag"] ?? entity["@etag"];
  return typeof etag === "string" && /^[\x21-\x7e]{1,500}$/.test(etag) ? etag : undefined;
}

async function readSyncJob(
  { id }: DeclaredObject,
  { service, place, signal }: InspectDependencies,
  isFresh: boolean,
): Promise<Live> {
  try {
    const entity = await service.getSyncJobById(id, inRepository(place), { signal, isFollowUp: isFresh });
    const { syncJobId = null } = entity;
    if (syncJobId !== null && String(syncJobId) !== String(id))
      return { state: "missing", detail: `the service answered with sync job ${syncJobId} instead` };
    return { state: "read", entity, syncJobId: String(id) };
  } catch (error) {
    if (!(error instanceof ServiceError) || error.kind !== "not-found") throw error;
    return { state: "missing", detail: error.message };
  }
}

async function readMask({ id }: DeclaredObject, deps: InspectDependencies, isFresh: boolean): Promise<Live> {
  const sinceMs = isFresh ? undefined : deps.sinceMs;
  let read = await deps.masks.read({ ...deps, sinceMs, isFollowUp: isFresh });
  // It may have slipped over a page boundary while another one was deleted, hardly twice in a row.
  if (!read.byId.has(String(id)) && !read.isOnePage && !read.isAgreed)
    read = await deps.masks.read({ ...deps, sinceMs: read.endedMs, isFollowUp: true });
  const { byId } = read;
  const mask = byId.get(String(id));
  if (mask === undefined) return { state: "missing", detail: `none of the ${byId.size} masks has this id` };
  // Only document masks can be changed. Source: service-interface §4.1 (UpdateEcmDocumentMaskById)
  if (mask.type === "FolderMask") return { state: "missing", detail: "the mask with this id is a FolderMask" };
  const syncJobId = mask.syncJobId === undefined || mask.syncJobId === null ? undefined : String(mask.syncJobId);
  return { state: "read", entity: mask, syncJobId };
}
