// The part of `syncline doctor` that needs no network: zones, next slots, chains, mappings. Called by doctor.ts. Pure.
import { versions } from "node:process";
import type { Policy, PolicySet } from "../../config/policy-set.ts";
import { createSlotSource } from "../../schedule/slots.ts";
import { showInstant } from "../table.ts";
import { type Finding, withinLines } from "./finding.ts";

const nextShownMax = 3;

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

/** Looks at the policies by themselves. */
export function checkPolicies(set: PolicySet, slots: readonly NextSlot[]): readonly Finding[] {
  return [...checkMappings(set), checkZones(set), ...checkSlots(slots), ...checkChains(set)];
}

/** A zone that this Node does not know is refused when the policies are loaded; what is left to say is whose rules they are. */
function checkZones({ policies }: PolicySet): Finding {
  const zones = new Set(
    policies.flatMap(({ schedule }) =>
      schedule === undefined || schedule.kind === "every" ? ["UTC"] : [schedule.timezone],
    ),
  );
  const shown = [...zones].toSorted().slice(0, nextShownMax).join(", ");
  const more = zones.size > nextShownMax ? ` and ${zones.size - nextShownMax} more` : "";
  const what = `${shown}${more}: known to this Node, by the rules of tzdata ${versions["tz"] ?? "(no version)"}`;
  return { check: "zones", subject: "", level: "ok", what };
}

function checkSlots(slots: readonly NextSlot[]): readonly Finding[] {
  const never = slots.filter(({ slotMs }) => slotMs === undefined);
  const findings = never.map(
    ({ policy }): Finding => ({
      check: "next slots",
      subject: policy,
      level: "warning",
      what: "its schedule has no slot any more",
      cure: "change the schedule, or remove the policy; `syncline plan` shows what a schedule gives",
    }),
  );
  const coming = slots.filter(({ slotMs }) => slotMs !== undefined);
  const shown = coming.slice(0, nextShownMax).map(({ policy, slotMs = 0 }) => `${policy} ${showInstant(slotMs)}`);
  const what =
    coming.length === 0
      ? "no policy has a schedule: all run by hand"
      : `${coming.length} scheduled; next ${shown.join(", ")}`;
  return [{ check: "next slots", subject: "", level: "ok", what }, ...withinLines(findings)];
}

function checkChains({ policies }: PolicySet): readonly Finding[] {
  const followers = policies.filter(({ after }) => after !== undefined);
  if (followers.length === 0) return [];
  const shown = followers.slice(0, nextShownMax).map(({ name, after }) => `${name} after ${after?.policy}`);
  const more = followers.length > nextShownMax ? ` and ${followers.length - nextShownMax} more` : "";
  return [{ check: "chains", subject: "", level: "ok", what: `${shown.join(", ")}${more}` }];
}

/** Whose runs are settled by a list that grows quiet, because nothing says what a finished activity looks like. */
function checkMappings({ services, policies }: PolicySet): readonly Finding[] {
  const findings = [...services.values()].flatMap((service): Finding[] => {
    const followed = policies.filter((policy) => policy.service === service.name && isFollowed(policy));
    if (followed.length === 0) return [];
    const activity = service.mapping.get("activities");
    const missing = (["syncJobId", "finished", "succeeded"] as const).filter(
      (field) => activity?.[field] === undefined,
    );
    const base = { check: "mapping", subject: service.name } as const;
    if (missing.length === 0) return [{ ...base, level: "ok", what: "says whose an activity is, and how it ended" }];
    const names = followed
      .slice(0, nextShownMax)
      .map(({ name }) => name)
      .join(", ");
    const whose = `${followed.length} ${followed.length === 1 ? "policy" : "policies"} (${names}${followed.length > nextShownMax ? ", …" : ""})`;
    return [
      {
        ...base,
        level: "warning",
        what: `no ${missing.join(", ")} for activities: the outcomes of ${whose} are inferred from a list that grows quiet`,
        cure: `look at items with \`syncline api GetActivities\`, and write services.${service.name}.mapping.activity`,
      },
    ];
  });
  return withinLines(findings);
}

function isFollowed({ action, follow }: Policy): boolean {
  return action.kind === "run" && follow.until !== "accepted";
}
