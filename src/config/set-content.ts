// The content of a policy set, part by part: its hash, and what a hot reload compares.
import { canonicalJson, hashText } from "../core/stable-hash.ts";
import type { ClosedTimes, Policy, PolicySet } from "./policy-set.ts";

/** Of each part for itself: all of it as one text would take as much memory as the set. */
export function hashContent(set: Omit<PolicySet, "contentHash" | "files">): string {
  const { services: _services, sinks: _sinks, calendars: _calendars, policies: _policies, ...rest } = set;
  const parts = Array.from(contentOf(set), (part) => hashText(part.join(" "), 64));
  return hashText([canonicalJson(rest), ...parts.sort()].join(" "), 64);
}

/** A part of a set: what it is, its name, and a text that changes with its meaning. */
type ContentPart = readonly [what: "policies" | "services" | "sinks" | "calendars", name: string, text: string];

/** The parts of a set, in its order. */
export function* contentOf({
  services,
  sinks,
  calendars = new Map(),
  policies,
}: Pick<PolicySet, ContentPart[0]>): Iterable<ContentPart> {
  for (const policy of policies)
    yield ["policies", policy.name, canonicalJson({ ...plainPolicy(policy), where: undefined })];
  for (const service of services.values()) yield ["services", service.name, canonicalJson(service)];
  for (const sink of sinks.values()) yield ["sinks", sink.name, canonicalJson(sink)];
  for (const { name, hash } of calendars.values()) yield ["calendars", name, hash];
}

/** A policy that names its calendars: plain JSON without what the set holds once. */
export type PlainPolicy = Omit<Policy, "closed"> & {
  readonly closed: Omit<ClosedTimes, "calendars"> & {
    readonly calendars?: readonly { readonly as: "holiday" | "blackout"; readonly calendar: string }[];
  };
};

/** Puts names in the place of calendars. */
export function plainPolicy(policy: Policy): PlainPolicy {
  const { calendars, ...closed } = policy.closed;
  if (calendars === undefined) return { ...policy, closed };
  return {
    ...policy,
    closed: { ...closed, calendars: calendars.map(({ as, calendar }) => ({ as, calendar: calendar.name })) },
  };
}
