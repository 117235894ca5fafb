// One pass of telling: from events and what is remembered to notices and what is to be remembered. Pure but for what it reads before;
// called by teller.ts, which hands the notices over and saves the rest.
import type { Policy, PolicySet } from "../config/policy-set.ts";
import type { TellingEvent } from "../tasks/telling-event.ts";
import { decideEnding, releasePolicy } from "./decide.ts";
import { decideService, outageSinks, type ServiceMoment } from "./decide-service.ts";
import { toEnding } from "./fate.ts";
import { silentNotice, type Telling, tokenNotice } from "./notices.ts";
import type { PolicyStanding, ServiceStanding } from "./standing.ts";

/** A service's breaker; undefined while it is closed. */
export type Breaker = ServiceMoment["breaker"];

/** What a pass looks at. Standings are changed in place: they are this pass's own. */
export interface PassState {
  readonly set: PolicySet;
  readonly nowMs: number;
  readonly policies: Map<string, PolicyStanding>;
  readonly services: Map<string, ServiceStanding>;
  readonly breakers: ReadonlyMap<string, Breaker>;
  /** Reads a policy's standing that is not among those of the events. */
  readonly policy: (name: string) => Policy | undefined;
}

/** Tells of events, in their order. Policies that are not configured any more are passed over. */
export function tellEvents(
  state: PassState,
  events: readonly TellingEvent[],
): { tellings: Telling[]; beats: string[] } {
  const tellings: Telling[] = [];
  const beats: string[] = [];
  for (const event of events) {
    const policy = state.policy(event.kind === "outcome" ? event.outcome.policy : event.policy);
    const standing = policy && state.policies.get(policy.name);
    const service = policy && state.services.get(policy.service);
    if (policy === undefined || standing === undefined || service === undefined) continue;
    const notifyOn = policy.action.kind === "poll" ? policy.action.notifyOn : undefined;
    const ending = toEnding(event, state.breakers.get(policy.service) !== undefined, notifyOn);
    const decision = decideEnding(policy, { policy: standing, service }, ending);
    state.policies.set(policy.name, decision.policy);
    state.services.set(policy.service, decision.service);
    tellings.push(...decision.tellings);
    if (policy.heartbeat !== undefined && (ending.fate === "good" || ending.fate === "conflicts"))
      beats.push(policy.name);
  }
  return { tellings, beats };
}

/** Looks at each service: an outage begins or ends, a window closes. Answers whose policies must be released, too. */
export function tellServices(state: PassState): {
  readonly tellings: Telling[];
  readonly release: readonly { readonly policy: string; readonly sinceMs: number }[];
} {
  const tellings: Telling[] = [];
  const release: { policy: string; sinceMs: number }[] = [];
  const bySinks = policiesByService(state.set.policies);
  for (const [service, standing] of state.services) {
    const sinks = outageSinks(bySinks.get(service) ?? []);
    const { nowMs, set, breakers } = state;
    const moment = { service, nowMs, groupForMs: set.telling.groupForMs, breaker: breakers.get(service), sinks };
    const decision = decideService(standing, moment);
    state.services.set(service, decision.service);
    tellings.push(...decision.tellings);
    for (const policy of decision.release) release.push({ policy, sinceMs: standing.sinceMs });
  }
  return { tellings, release };
}

/** Tells what was held back of policies whose service was not down after all. Their standings must be there. */
export function tellReleased(
  state: PassState,
  release: readonly { readonly policy: string; readonly sinceMs: number }[],
): Telling[] {
  return release.flatMap(({ policy: name, sinceMs }) => {
    const policy = state.policy(name);
    const standing = state.policies.get(name);
    if (policy === undefined || standing === undefined) return [];
    const { policy: released, tellings } = releasePolicy(policy, standing, sinceMs);
    state.policies.set(name, released);
    return tellings;
  });
}

/** Tells of policies without a success for two intervals, once for each silence, unless their service is down: that is told already. */
export function tellSilence(state: PassState, silences: ReadonlyMap<string, number>): Telling[] {
  const tellings: Telling[] = [];
  for (const [name, sinceMs] of silences) {
    const policy = state.policy(name);
    const standing = state.policies.get(name);
    const service = policy && state.services.get(policy.service);
    if (policy === undefined || standing === undefined || service === undefined || service.phase !== "calm") continue;
    if (standing.silent !== null) continue;
    const sinks = (policy.notify ?? []).filter(({ silence }) => silence).map(({ sink }) => sink);
    if (sinks.length === 0) continue;
    const notice = silentNotice(policy, sinceMs, state.nowMs);
    tellings.push(...sinks.map((sink) => ({ sink, notice })));
    state.policies.set(name, { ...standing, silent: { sinceMs, sinks } });
  }
  return tellings;
}

/** Tells of tokens that run out and cannot be renewed, once for each. */
export function tellTokens(state: PassState, expiries: ReadonlyMap<string, number>): Telling[] {
  const tellings: Telling[] = [];
  for (const [service, expiresAtMs] of expiries) {
    const standing = state.services.get(service);
    if (standing === undefined || standing.token === expiresAtMs) continue;
    const rules = state.set.policies.flatMap((policy) => (policy.service === service ? (policy.notify ?? []) : []));
    const sinks = new Set(rules.filter(({ tokenExpiring }) => tokenExpiring).map(({ sink }) => sink));
    const notice = tokenNotice(service, expiresAtMs, state.nowMs);
    for (const sink of sinks) tellings.push({ sink, notice });
    state.services.set(service, { ...standing, token: expiresAtMs });
  }
  return tellings;
}

/** Services of which anybody is told anything. */
export function toldServices({ policies }: PolicySet): string[] {
  return [...policiesByService(policies).keys()];
}

function policiesByService(policies: readonly Policy[]): Map<string, Policy[]> {
  const found = new Map<string, Policy[]>();
  for (const policy of policies) {
    if (policy.notify === undefined && policy.heartbeat === undefined) continue;
    const known = found.get(policy.service);
    if (known === undefined) found.set(policy.service, [policy]);
    else known.push(policy);
  }
  return found;
}
