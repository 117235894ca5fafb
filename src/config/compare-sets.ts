// What differs between two policy sets: names only, for the log of a reload. Pure.
import { canonicalJson } from "../core/stable-hash.ts";
import type { PolicySet } from "./policy-set.ts";

/** Names of what is new, means something else, or is gone; each in the order of the sets. */
export interface Difference {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/** What differs, for policies, services and sinks each. Comments, order and places make no difference. */
export function compareSets(
  before: PolicySet,
  after: PolicySet,
): { readonly policies: Difference; readonly services: Difference; readonly sinks: Difference } {
  return {
    policies: compare(policyTexts(before), policyTexts(after)),
    services: compare(serviceTexts(before), serviceTexts(after)),
    sinks: compare(sinkTexts(before), sinkTexts(after)),
  };
}

function policyTexts({ policies }: PolicySet): Map<string, string> {
  return new Map(policies.map(({ where: _, ...policy }) => [policy.name, canonicalJson(policy)]));
}

function serviceTexts({ services }: PolicySet): Map<string, string> {
  return new Map(
    [...services].map(([name, service]) => [
      name,
      canonicalJson({ ...service, mapping: Object.fromEntries(service.mapping) }),
    ]),
  );
}

function sinkTexts({ sinks }: PolicySet): Map<string, string> {
  return new Map([...sinks].map(([name, sink]) => [name, canonicalJson(sink)]));
}

function compare(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): Difference {
  const names = [...after.keys()];
  return {
    added: names.filter((name) => !before.has(name)),
    changed: names.filter((name) => before.has(name) && before.get(name) !== after.get(name)),
    removed: [...before.keys()].filter((name) => !after.has(name)),
  };
}
