// The checks of `syncline doctor` that need the policies only: mappings, zones, next slots, chains.
// Pure.
import { versions } from "node:process";
import type { Policy, PolicySet } from "../../config/policy-set.ts";
import { showInstant } from "../../core/instant.ts";
import { counted } from "../../core/plain-text.ts";
import { createSlotSource } from "../../schedule/slots.ts";
import { type Finding, findingsOf, withinLines } from "./finding.ts";

const shownMax = 3;

/** A policy's next slot; undefined: its schedule has none any more. */
export interface NextSlot {
  readonly policy: string;
  readonly slotMs: number | undefined;
}

/** The next slot of every policy that has a schedule, soonest first. */
export function nextSlots({ policies }: PolicySet, nowMs: number): readonly NextSlot[] {
  return policies
    .filter(({ schedule }) => schedule !== undefined)
    .map((policy) => ({ policy: policy.name, slotMs: createSlotSource(policy)?.next(nowMs) }))
    .sort((a, b) => (a.slotMs ?? Number.POSITIVE_INFINITY) - (b.slotMs ?? Number.POSITIVE_INFINITY));
}

/** Checks the policies by themselves. */
export function checkPolicies(set: PolicySet, slots: readonly NextSlot[]): readonly Finding[] {
  return [...checkMappings(set), checkZones(set), ...checkSlots(slots), ...checkChains(set)];
}

/** Loading refuses unknown zones. This shows which version of the zone rules Node has. */
function checkZones({ policies }: PolicySet): Finding {
  const zones = policies.flatMap(({ schedule }) =>
    schedule === undefined || schedule.kind === "every" ? ["UTC"] : [schedule.timezone],
  );
  const rules = `known to this Node, by the rules of tzdata ${versions["tz"] ?? "(no version)"}`;
  return findingsOf("zones").ok(`${firstOf([...new Set(zones)].toSorted())}: ${rules}`);
}

function checkSlots(slots: readonly NextSlot[]): readonly Finding[] {
  const cure = "change the schedule, or remove the policy; `syncline plan` shows what a schedule gives";
  const never = slots
    .filter(({ slotMs }) => slotMs === undefined)
    .map(({ policy }) => findingsOf("next slots", policy).warning("its schedule has no slot any more", cure));
  const coming = slots.flatMap(({ policy, slotMs }) =>
    slotMs === undefined ? [] : [`${policy} ${showInstant(slotMs)}`],
  );
  const next = `${coming.length} scheduled; next ${coming.slice(0, shownMax).join(", ")}`;
  const what = coming.length === 0 ? "no policy has a schedule: all run by hand" : next;
  return [findingsOf("next slots").ok(what), ...withinLines(never)];
}

function checkChains({ policies }: PolicySet): readonly Finding[] {
  const chained = policies.flatMap(({ name, after }) => (after === undefined ? [] : [`${name} after ${after.policy}`]));
  return chained.length === 0 ? [] : [findingsOf("chains").ok(firstOf(chained))];
}

/** Without a mapping of how activities end, runs are settled by a list that grows quiet. */
function checkMappings({ services, policies }: PolicySet): readonly Finding[] {
  const findings = [...services.values()].flatMap(({ name: service, mapping }): Finding[] => {
    const followed = policies.filter((policy) => policy.service === service && isFollowed(policy));
    if (followed.length === 0) return [];
    const activity = mapping.get("activities");
    const missing = (["syncJobId", "finished", "succeeded"] as const).filter(
      (field) => activity?.[field] === undefined,
    );
    const { ok, warning } = findingsOf("mapping", service);
    if (missing.length === 0) return [ok("shows the sync job of an activity, and how it ended")];
    const whose = `${counted(followed.length, "policy", "policies")} (${firstOf(followed.map(({ name }) => name))})`;
    const what = `no ${missing.join(", ")} for activities: the outcomes of ${whose} are inferred from a list that grows quiet`;
    const cure = `look at items with \`syncline api GetActivities\`, and write services.${service}.mapping.activity`;
    return [warning(what, cure)];
  });
  return withinLines(findings);
}

function firstOf(names: readonly string[]): string {
  const more = names.length > shownMax ? ` and ${names.length - shownMax} more` : "";
  return `${names.slice(0, shownMax).join(", ")}${more}`;
}

function isFollowed({ action, follow }: Policy): boolean {
  return action.kind === "run" && follow.until !== "accepted";
}
