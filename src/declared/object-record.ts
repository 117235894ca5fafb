// How the record of an object changes while it is applied: pure steps from one record to the next. Used by apply-object.ts.
import type { DeclaredObject } from "../core/declared-object.ts";
import type { AppliedRecord, FieldChange, Refusal } from "../tasks/applied-record.ts";
import { type Knowledge, knownValue } from "./differences.ts";

/** The longest text that is remembered of what the service says a field is; a declared one is shorter. */
const textMax = 4_096;

/** The record as this caller goes on with it: what another one changed before has been told, what it only sent has not. */
export function takeOver(record: AppliedRecord, by: string): AppliedRecord {
  return record.by === by ? record : { ...record, by, changed: [] };
}

/** Settles what a look shows: what is in place counts as applied, and what was sent and is in place has been changed. */
export function settleLook(object: DeclaredObject, knowledge: Knowledge, record: AppliedRecord): AppliedRecord {
  const applied = { ...record.applied };
  const refused = { ...record.refused };
  const changed = [...record.changed];
  const sent: FieldChange[] = [];
  for (const change of record.sent) {
    const known = knownValue(change.field, knowledge);
    // What cannot be read stays open until it is answered.
    if (known.from !== "live") sent.push(change);
    else if (known.value === change.after) changed.push(change);
  }
  for (const [field, value] of Object.entries(object.fields)) {
    const known = knownValue(field, knowledge);
    if (known.from === "unknown" || known.value !== value) continue;
    applied[field] = value;
    delete refused[field];
  }
  return { ...record, applied, refused, sent, changed: lastOfEach(changed) };
}

/** These fields go out now. */
export function noteSent(record: AppliedRecord, changes: readonly FieldChange[]): AppliedRecord {
  return { ...record, sent: lastOfEach([...record.sent, ...changes]) };
}

/** These fields surely were not changed. */
export function withoutSent(record: AppliedRecord, changes: readonly FieldChange[]): AppliedRecord {
  return { ...record, sent: record.sent.filter(({ field }) => !isAmong(field, changes)) };
}

/** A good answer: what it shows counts, and where it shows nothing the success does. */
export function noteTaken(
  record: AppliedRecord,
  changes: readonly FieldChange[],
  { fields, etag }: { readonly fields: Readonly<Record<string, string | null>>; readonly etag: string | undefined },
): AppliedRecord {
  const taken = changes.filter(({ field, after }) => !(field in fields) || fields[field] === after);
  const applied = { ...record.applied };
  for (const { field, after } of taken) applied[field] = after;
  const cut = Object.entries(fields).map(([field, value]) => [field, value?.slice(0, textMax) ?? null] as const);
  // What the entity does not show is not contradicted any more by an older one.
  const before = Object.entries(record.returned).filter(([field]) => !isAmong(field, changes));
  return {
    ...withoutSent(record, changes),
    applied,
    changed: lastOfEach([...record.changed, ...taken]),
    returned: Object.fromEntries([...before, ...cut]),
    etag: etag ?? null,
  };
}

/** The service did not take this field. */
export function noteRefused(record: AppliedRecord, { field }: FieldChange, refusal: Refusal): AppliedRecord {
  const { [field]: _applied, ...applied } = record.applied;
  const changed = record.changed.filter((change) => change.field !== field);
  return {
    ...record,
    applied: refusal.how === "ignored" ? applied : record.applied,
    changed: refusal.how === "ignored" ? changed : record.changed,
    refused: { ...record.refused, [field]: refusal },
  };
}

function isAmong(field: string, changes: readonly FieldChange[]): boolean {
  return changes.some((change) => change.field === field);
}

function lastOfEach(changes: readonly FieldChange[]): FieldChange[] {
  return [...new Map(changes.map((change) => [change.field, change])).values()];
}
