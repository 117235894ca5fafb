// Says in one line what applying an object came to: which fields changed, which were not taken, and what to do. Pure; used by work/apply.ts and
// by the commands. Values are names and ids of the service; they are cut, and nothing in them acts on a terminal or a log.
import { type DeclaredObject, showObject } from "../core/declared-object.ts";
import { withoutSecrets } from "../core/secrets.ts";
import { escapeControls } from "../service/error-body.ts";
import type { FieldChange } from "../tasks/applied-record.ts";
import type { Difference } from "./differences.ts";

const valueMax = 80;

/** A value in quotes, at most 80 characters of it. */
export function showValue(value: string | null): string {
  if (value === null) return "nothing";
  const whole = escapeControls(withoutSecrets(value));
  return `"${whole.length <= valueMax ? whole : `${whole.slice(0, valueMax - 1)}…`}"`;
}

/** `name: "Old" → "New"`; without what it was where nobody knows. */
function tellChange({ field, before, isBeforeKnown, after }: FieldChange): string {
  return `${field}: ${isBeforeKnown ? `${showValue(before)} → ` : ""}${showValue(after)}`;
}

/** Why a field was not taken, and what to do. */
export function tellBlock({ field, after, before, block }: Difference): string {
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

/** What was changed, in one line; empty when nothing was. */
export function tellChanges(changes: readonly FieldChange[]): string {
  const [drifted, applied] = [true, false].map((isDrift) =>
    changes.filter((change) => change.isDrift === isDrift).map(tellChange),
  );
  return [
    ...(drifted === undefined || drifted.length === 0
      ? []
      : [`changed by somebody else and set again: ${drifted.join(", ")}`]),
    ...(applied === undefined || applied.length === 0 ? [] : [`set ${applied.join(", ")}`]),
  ].join("; ");
}

/** Why an object that wants its version named cannot be changed, and what to do. */
export function tellPrecondition(object: DeclaredObject, detail: string): string {
  return `${showObject(object)} can be changed only by who names its present version (ETag, If-Match), and the version that was read is missing or was overtaken: ${detail}. Change it by hand with a tool that sends If-Match, or ask those who run the service`;
}
