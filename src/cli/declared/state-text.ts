// Renders declared, live and last applied state, object by object: for people with colours, and for
// machines. Pure.

import { describeBlock, showValue } from "../../apply/describe.ts";
import { type FieldDifference, knownValue } from "../../apply/differences.ts";
import { objectName, showObject } from "../../core/declared-object.ts";
import { escapeControls } from "../../service/error-body.ts";
import { paint, toTable } from "../table.ts";
import type { ItemLook } from "./session.ts";

/**
 * The state of an object. `differs`: `apply` would send something. `blocked`: it differs, and the
 * service refuses or ignores the change.
 */
export type ObjectState = "same" | "differs" | "blocked" | "missing" | "unreadable";

const colourOf = {
  same: "green",
  differs: "yellow",
  blocked: "red",
  missing: "red",
  unreadable: "red",
} as const satisfies Record<ObjectState, string>;

const wordOf: Readonly<Record<ObjectState, string>> = {
  same: "as declared",
  differs: "differs",
  blocked: "not taken",
  missing: "not there",
  unreadable: "not readable",
};

/** The state of an inspected object. */
export function stateOf({ look }: ItemLook): ObjectState {
  if (look === undefined) return "unreadable";
  if (look.state === "missing") return "missing";
  if (look.differences.some(({ block }) => block === undefined)) return "differs";
  return look.differences.length > 0 ? "blocked" : "same";
}

/** One table a policy, and a line with the counts. */
export function stateToText(looks: readonly ItemLook[], colours: boolean): string {
  if (looks.length === 0) return "No policy declares anything (apply).";
  const policies = [...new Set(looks.map(({ policy }) => policy))];
  const blocks = policies.map((policy) => {
    const { name, service, repository } = policy;
    const of = looks.filter((look) => look.policy === policy);
    const title = `${name} (${service}${repository === undefined ? "" : `, ${repository}`})`;
    const rows = of.flatMap((look) => rowsOf(look, colours));
    const table = toTable(["object", "state", "field", "declared", "live", "last applied", ""], rows, colours);
    return `${paint("bold", title, colours)}\n${table}`;
  });
  return [...blocks, countLine(looks)].join("\n\n");
}

function countLine(looks: readonly ItemLook[]): string {
  const states = looks.map(stateOf);
  const counts = (Object.keys(wordOf) as ObjectState[])
    .map((state) => [state, states.filter((one) => one === state).length] as const)
    .filter(([, count]) => count > 0);
  return `${looks.length} object${looks.length === 1 ? "" : "s"}: ${counts.map(([state, count]) => `${count} ${state === "differs" ? "to change" : wordOf[state]}`).join(", ")}`;
}

function rowsOf(item: ItemLook, colours: boolean): string[][] {
  const state = stateOf(item);
  const word = paint(colourOf[state], wordOf[state], colours);
  const head = [showObject(item.object), word];
  if (item.look === undefined) return [[...head, "", "", "", "", escapeControls(item.error?.message ?? "")]];
  if (item.look.state === "missing") return [[...head, "", "", "", "", escapeControls(item.look.detail)]];
  const { differences } = item.look;
  if (differences.length === 0) return [[...head, "", "", "", "", ""]];
  return differences.map((difference, index) => {
    const [declared, live] = [showValue(difference.after), liveText(item, difference.field)];
    return [
      ...(index === 0 ? head : ["", ""]),
      difference.field,
      paint("green", declared, colours),
      paint("red", live, colours),
      appliedText(item, difference.field),
      noteOf(difference),
    ];
  });
}

function liveText({ look }: ItemLook, field: string): string {
  if (look?.state !== "found") return "";
  const known = knownValue(field, look.knowledge);
  if (known.from === "live") return showValue(known.value);
  return look.isReadable ? "not shown" : "cannot be read";
}

function appliedText({ look }: ItemLook, field: string): string {
  const applied = look?.record.applied[field];
  return applied === undefined ? "never" : showValue(applied);
}

function noteOf(difference: FieldDifference): string {
  if (difference.block !== undefined) return escapeControls(describeBlock(difference));
  return difference.isDrift ? "changed by hand" : "";
}

/** The same for machines: one object for each declared object. */
export function stateToJson(looks: readonly ItemLook[]): object[] {
  return looks.map((item) => ({
    policy: item.policy.name,
    service: item.policy.service,
    repository: item.policy.repository ?? null,
    object: objectName(item.object),
    state: stateOf(item),
    problem: item.error?.message ?? (item.look?.state === "missing" ? item.look.detail : null),
    fields: Object.entries(item.object.fields).map(([field, declared]) => fieldToJson(item, field, declared)),
  }));
}

function fieldToJson({ look }: ItemLook, field: string, declared: string): object {
  if (look?.state !== "found") return { field, declared };
  const known = knownValue(field, look.knowledge);
  const difference = look.differences.find((one) => one.field === field);
  return {
    field,
    declared,
    live: known.from === "live" ? known.value : null,
    isLiveKnown: known.from === "live",
    lastApplied: look.record.applied[field] ?? null,
    differs: difference !== undefined,
    isDrift: difference?.isDrift ?? false,
    notTaken: difference?.block === undefined ? null : describeBlock(difference),
  };
}
