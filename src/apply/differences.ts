// Finds what differs between the declared and the known state of an object: the rule of `apply` and
// of `plan --state`. Only declared fields are compared, so no other field is ever sent. Also says
// in one line how applying ended; values of the service are cut and cleaned. Pure.

import { type DeclaredObject, showObject } from "../core/declared-object.ts";
import { toIso } from "../core/instant.ts";
import { withoutSecrets } from "../core/secrets.ts";
import type { AppliedRecord, FieldChange, FieldRefusal, ReadOnlyField } from "../model/applied-record.ts";
import { escapeControls } from "../service/error-body.ts";

/** What is known of one field. `live`: read just now. `remembered`: as last applied or returned. */
export type KnownValue =
  | { readonly from: "live" | "remembered"; readonly value: string | null }
  | { readonly from: "unknown" };

/** Why a differing field is not sent. `altered`: it was just changed, and shows another value. */
interface Block {
  readonly how: "read-only" | "altered" | FieldRefusal["how"];
  /** The service's own words; empty when it gave none. */
  readonly said: string;
}

/** A declared field that differs, or may differ. */
export interface FieldDifference extends FieldChange {
  readonly block: Block | undefined;
}

/** `entity`: what was read; undefined for an object that cannot be read. */
export interface Knowledge {
  readonly entity: Readonly<Record<string, unknown>> | undefined;
  readonly record: AppliedRecord;
  readonly readOnly: readonly ReadOnlyField[];
  /** The service reported a change since (412): remembered values are not valid any more. */
  readonly isStale: boolean;
}

/** The value that was read, else the applied one, unless the returned entity contradicts it. */
export function knownValue(field: string, { entity, record, isStale }: Knowledge): KnownValue {
  const live = entity?.[field];
  if (live !== undefined) return { from: "live", value: toText(live) };
  // A request without an answer may have changed the field.
  if (isStale || record.sent.some((change) => change.field === field)) return { from: "unknown" };
  const value = field in record.returned ? record.returned[field] : record.applied[field];
  return value === undefined ? { from: "unknown" } : { from: "remembered", value };
}

/** The declared fields that differ, in the order of the declaration. */
export function findDifferences({ fields }: DeclaredObject, knowledge: Knowledge): FieldDifference[] {
  return Object.entries(fields).flatMap(([field, after]) => {
    const known = knownValue(field, knowledge);
    const isBeforeKnown = known.from !== "unknown";
    const before = known.from === "unknown" ? null : known.value;
    if (isBeforeKnown && before === after) return [];
    // Sent before without an answer: report the value known at that time.
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
  // An ignored field that has changed since can be changed after all.
  if (refusal.how === "ignored" && refusal.before !== before) return undefined;
  return { how: refusal.how, said: refusal.said };
}

/** The service's value as text, where it can be compared with one. */
function toText(value: unknown): string | null {
  if (typeof value === "string") return value;
  return value === null ? null : JSON.stringify(value);
}

const valueMax = 80;

/** A value in quotes, at most 80 characters of it. */
export function showValue(value: string | null): string {
  if (value === null) return "nothing";
  const whole = escapeControls(withoutSecrets(value));
  return `"${whole.length <= valueMax ? whole : `${whole.slice(0, valueMax - 1)}…`}"`;
}

/** `name: "Old" → "New"`; without the old value where it is not known. */
function tellChange({ field, before, isBeforeKnown, after }: FieldChange): string {
  return `${field}: ${isBeforeKnown ? `${showValue(before)} → ` : ""}${showValue(after)}`;
}

/** Why a field was not changed, and what to do. */
export function describeBlock({ field, after, before, block }: FieldDifference): string {
  const said = block === undefined || block.said === "" ? "" : `, which says: ${block.said.replace(/\.$/, "")}`;
  switch (block?.how) {
    case "read-only":
      return `${field} cannot be changed at this service${said}; take it out of the policy, or change it in the service`;
    case "refused":
      return `${field} ${showValue(after)} is refused by the service${said}; correct it, or take it out of the policy if it is read-only`;
    case "altered":
      return `${field} is ${showValue(before)} although ${showValue(after)} was sent and answered with success: the service writes it in another way, does not show it yet, or a person changed it; the next slot looks again`;
    case "ignored":
    case undefined:
      return `${field} stayed ${showValue(before)} although the service answered with success; take it out of the policy, or change it in the service`;
  }
}

/** The changes in one line; empty without changes. */
export function describeChanges(changes: readonly FieldChange[]): string {
  const told = (words: string, wanted: readonly FieldChange[]) =>
    wanted.length === 0 ? [] : [`${words} ${wanted.map(tellChange).join(", ")}`];
  const drifted = changes.filter(({ isDrift }) => isDrift);
  const applied = changes.filter(({ isDrift }) => !isDrift);
  return [...told("changed by hand and set again:", drifted), ...told("set", applied)].join("; ");
}

/** Why a target that the service made of an update counts as missing, and what to do. */
export function describeCreated(createdAtMs: number): string {
  return `none but the one that an update created (status 201, ${toIso(createdAtMs)}); delete that one in the service and correct the id, or keep it by \`syncline apply --retry-refused\``;
}

/** Why an object that requires a version cannot be changed, and what to do. */
export function describePrecondition(object: DeclaredObject, detail: string): string {
  return `${showObject(object)} can be changed only by who names its present version (ETag, If-Match), and the version that was read is missing or was overtaken: ${detail}. Change it by hand with a tool that sends If-Match, or ask those who run the service`;
}
