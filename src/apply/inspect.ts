// Inspects a declared object: what is remembered, what is live, what differs. Changes nothing. Used
// by apply-object.ts and `plan --state`.
import type { DeclaredObject } from "../core/declared-object.ts";
import type { AppliedRecord, ReadOnlyField } from "../model/applied-record.ts";
import type { InspectDependencies } from "./contracts.ts";
import { type FieldDifference, findDifferences, type Knowledge } from "./differences.ts";
import { etagOf, readLive } from "./live-object.ts";

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
  parts: InspectDependencies,
  { isFresh, isStale }: InspectOptions,
): Promise<Inspection> {
  const { memory, owner, forgetBeforeMs = 0 } = parts;
  const kept = await memory.record(owner, object);
  const counts = ({ atMs }: { readonly atMs: number }) => atMs >= forgetBeforeMs;
  const refused = Object.fromEntries(Object.entries(kept.refused).filter(([, refusal]) => counts(refusal)));
  const record = { ...kept, refused };
  const readOnly = (await memory.readOnly(owner.service, object.kind)).filter(counts);
  const live = await readLive(object, parts, isFresh || record.sent.length > 0);
  if (live.state === "missing") return { state: "missing", record, detail: live.detail };
  const isReadable = live.state === "read";
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
