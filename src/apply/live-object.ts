// Reads and changes one declared object through the service's client, each kind by its operation.
// Sync jobs and masks can be read; targets cannot. Used by inspect.ts and apply-object.ts. Source:
// service-interface §4.1
import type { DeclaredObject } from "../core/declared-object.ts";
import type { UpdateOptions } from "../service/client.ts";
import { ServiceError } from "../service/client.ts";
import { inRepository } from "../service/request-url.ts";
import type { InspectDependencies } from "./contracts.ts";

/** `missing`: why the object counts as missing. `unreadable`: no operation reads it. */
export type Live =
  | {
      readonly state: "read";
      readonly entity: Readonly<Record<string, unknown>>;
      /** The sync job of the object, in digits, where it names one. */
      readonly syncJobId: string | undefined;
    }
  | { readonly state: "missing"; readonly detail: string }
  | { readonly state: "unreadable" };

/** Reads an object; `isFresh`: no earlier reading of the masks will do. @throws ServiceError */
export async function readLive(object: DeclaredObject, parts: InspectDependencies, isFresh: boolean): Promise<Live> {
  switch (object.kind) {
    case "syncJob":
      return readSyncJob(object, parts, isFresh);
    case "docMask":
      return readMask(object, parts, isFresh);
    case "driveTarget":
    case "siteTarget":
      return { state: "unreadable" };
  }
}

/** Changes fields. Returns the entity of the answer, `{}` for none. @throws ServiceError */
export function putFields(
  { kind, id }: DeclaredObject,
  body: Readonly<Record<string, string>>,
  { service, owner, signal, ifMatch }: InspectDependencies & Pick<UpdateOptions, "ifMatch">,
): Promise<Readonly<Record<string, unknown>>> {
  const query = inRepository(owner);
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
  { service, owner, signal }: InspectDependencies,
  isFresh: boolean,
): Promise<Live> {
  try {
    const entity = await service.getSyncJobById(id, inRepository(owner), { signal, isFollowUp: isFresh });
    return { state: "read", entity, syncJobId: String(id) };
  } catch (error) {
    if (!(error instanceof ServiceError) || error.kind !== "not-found") throw error;
    return { state: "missing", detail: error.message };
  }
}

async function readMask({ id }: DeclaredObject, parts: InspectDependencies, isFresh: boolean): Promise<Live> {
  const masks = await parts.masks.read({ ...parts, sinceMs: isFresh ? undefined : parts.sinceMs });
  const mask = masks.get(String(id));
  if (mask === undefined) return { state: "missing", detail: `none of the ${masks.size} masks has this id` };
  // Only document masks can be changed. Source: service-interface §4.1 (UpdateEcmDocumentMaskById)
  if (mask.type === "FolderMask") return { state: "missing", detail: "the mask with this id is a FolderMask" };
  const syncJobId = mask.syncJobId === undefined || mask.syncJobId === null ? undefined : String(mask.syncJobId);
  return { state: "read", entity: mask, syncJobId };
}
