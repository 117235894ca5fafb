// Describes in one line how applying an object ended: the changed fields, the refused ones, and
// what to do. Values come from the service: they are cut, and control characters are removed. Pure;
// used by tasks/apply.ts and the commands.
import { type DeclaredObject, showObject } from "../core/declared-object.ts";
import { withoutSecrets } from "../core/secrets.ts";
import type { FieldChange } from "../model/applied-record.ts";
import { escapeControls } from "../service/error-body.ts";
import type { FieldDifference } from "./differences.ts";

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
    case "ignored":
    case undefined:
      return `${field} stayed ${showValue(before)} although the service answered with success; take it out of the policy, or change it in the service`;
  }
}

/** The changes in one line; empty without changes. */
export function describeChanges(changes: readonly FieldChange[]): string {
  const [drifted, applied] = [true, false].map((isDrift) =>
    changes.filter((change) => change.isDrift === isDrift).map(tellChange),
  );
  return [
    ...(drifted === undefined || drifted.length === 0 ? [] : [`changed by hand and set again: ${drifted.join(", ")}`]),
    ...(applied === undefined || applied.length === 0 ? [] : [`set ${applied.join(", ")}`]),
  ].join("; ");
}

/** Why an object that requires a version cannot be changed, and what to do. */
export function describePrecondition(object: DeclaredObject, detail: string): string {
  return `${showObject(object)} can be changed only by who names its present version (ETag, If-Match), and the version that was read is missing or was overtaken: ${detail}. Change it by hand with a tool that sends If-Match, or ask those who run the service`;
}
