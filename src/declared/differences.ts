// What differs between what is declared and what is known of an object. Pure: the rule of `apply` and of `plan --state`.
// A field that is not declared is not looked at, so it can never be sent.
import type { DeclaredObject } from "../core/declared-object.ts";
import type { AppliedRecord, FieldChange, ReadOnlyField, Refusal } from "../tasks/applied-record.ts";

/** What one field is known to be. `live`: read just now. `remembered`: as it was applied or returned last. `unknown`: nobody knows. */
export type KnownValue =
  | { readonly from: "live" | "remembered"; readonly value: string | null }
  | { readonly from: "unknown" };

/** Why a field that differs is not sent. */
interface Block {
  readonly how: "read-only" | Refusal["how"];
  /** The service's own words; empty when it said nothing. */
  readonly said: string;
}

/** One declared field that is not, or not surely, as declared. */
export interface Difference extends FieldChange {
  readonly block: Block | undefined;
}

/** What differences are found from. `entity`: what was read; undefined for what cannot be read. */
export interface Knowledge {
  readonly entity: Readonly<Record<string, unknown>> | undefined;
  readonly record: AppliedRecord;
  readonly readOnly: readonly ReadOnlyField[];
  /** Somebody changed the object since, says the service (412): what is remembered is not true any more. */
  readonly isStale: boolean;
}

/** What is known of a field: what was read, or else what was applied, unless the entity that the service returned contradicts it. */
export function knownValue(field: string, { entity, record, isStale }: Knowledge): KnownValue {
  const live = entity?.[field];
  if (live !== undefined) return { from: "live", value: toText(live) };
  // A request without an answer may have changed it or not.
  if (isStale || record.sent.some((change) => change.field === field)) return { from: "unknown" };
  const value = field in record.returned ? record.returned[field] : record.applied[field];
  return value === undefined ? { from: "unknown" } : { from: "remembered", value };
}

/** The declared fields that differ, in the order of the declaration. */
export function findDifferences({ fields }: DeclaredObject, knowledge: Knowledge): Difference[] {
  return Object.entries(fields).flatMap(([field, after]) => {
    const known = knownValue(field, knowledge);
    const isBeforeKnown = known.from !== "unknown";
    const before = known.from === "unknown" ? null : known.value;
    if (isBeforeKnown && before === after) return [];
    // Sent before and not answered: what was known then is what there is to tell.
    const open = knowledge.record.sent.find((change) => change.field === field && change.after === after);
    if (!isBeforeKnown && open !== undefined) return [{ ...open, block: blockOf(open, knowledge) }];
    const isDrift = (isBeforeKnown || knowledge.isStale) && knowledge.record.applied[field] === after;
    const change = { field, before, isBeforeKnown, after, isDrift };
    return [{ ...change, block: blockOf(change, knowledge) }];
  });
}

function blockOf({ field, before, after }: FieldChange, { record, readOnly }: Knowledge): Block | undefined {
  const certain = readOnly.find((known) => known.field === field && known.isCertain);
  if (certain !== undefined) return { how: "read-only", said: certain.said };
  const refusal = record.refused[field];
  if (refusal === undefined || refusal.value !== after) return undefined;
  // What was ignored once and changed since can be changed.
  if (refusal.how === "ignored" && refusal.before !== before) return undefined;
  return { how: refusal.how, said: refusal.said };
}

/** What the service has there, as far as it can be compared with a text. */
function toText(value: unknown): string | null {
  if (typeof value === "string") return value;
  return value === null ? null : JSON.stringify(value);
}
