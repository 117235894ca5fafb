// From `notify`, `heartbeat` and `telling` as written to what telling/ works with. Called by normalise.ts. Pure.
import { parseDuration } from "../core/duration.ts";
import { policyDefaults } from "./defaults.ts";
import type { NotifyRule, Policy, TellingSettings } from "./policy-set.ts";
import type { DefaultsInput, PolicyFileInput, PolicyInput } from "./schema/policy-file.ts";

type NotifyItem = NonNullable<PolicyInput["notify"]>[number];
type RuleInput = NonNullable<Exclude<NotifyItem, string>["on"]>[number];

/** The rules of a policy, one for each sink, and its heartbeat; without the keys where it has none. */
export function toNotify(input: PolicyInput, defaults: DefaultsInput): Pick<Policy, "notify" | "heartbeat"> {
  const items = input.notify ?? defaults.notify ?? [];
  return {
    ...(items.length === 0 ? {} : { notify: items.map(toRule) }),
    ...(input.heartbeat === undefined ? {} : { heartbeat: { url: input.heartbeat.url } }),
  };
}

function toRule(item: NotifyItem): NotifyRule {
  const { sink, on = ["change"] } = typeof item === "string" ? { sink: item } : item;
  const has = (...words: readonly RuleInput[]) => on.some((rule) => words.includes(rule));
  const failures = on.flatMap((rule) => (typeof rule === "object" && "failure" in rule ? [rule.failure] : []));
  const conflicts = on.flatMap((rule) => (typeof rule === "object" && "conflicts" in rule ? [rule.conflicts] : []));
  return {
    sink,
    every: has("every"),
    // What is said with a number is meant more closely than what `change` implies.
    failuresInRow: failures[0] ?? (has("failure", "change") ? 1 : undefined),
    conflicts: conflicts[0] ?? (has("conflicts", "change") ? "judged" : undefined),
    blocked: has("blocked", "change"),
    unknown: has("unknown", "change"),
    missed: has("missed", "change"),
    drift: has("drift", "change"),
    recovery: has("recovery", "change"),
    silence: has("silence"),
    tokenExpiring: has("token-expiring"),
  };
}

/** How messages are gathered: from the one file that says it, with the defaults filled in. */
export function toTelling(inputs: readonly PolicyFileInput[], defaults: DefaultsInput): TellingSettings {
  const telling = inputs.find((input) => input.telling !== undefined)?.telling;
  const groupForMs = telling?.groupFor === undefined ? policyDefaults.groupForMs : parseDuration(telling.groupFor);
  const hours = telling?.quietHours;
  if (hours === undefined) return { groupForMs, quietHours: undefined };
  const { from, to, except = [] } = hours;
  const timezone = hours.timezone ?? defaults.timezone ?? policyDefaults.timezone;
  return { groupForMs, quietHours: { fromMinute: toMinute(from), toMinute: toMinute(to), timezone, except } };
}

function toMinute(clockTime: string): number {
  const [hours = 0, minutes = 0] = clockTime.split(":").map(Number);
  return hours * 60 + minutes;
}
