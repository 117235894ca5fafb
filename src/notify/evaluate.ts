// One tick of the notifier: from events and alert states to notices and new alert states. Pure,
// except for reading the configuration; called by notifier.ts, which hands the notices over and
// saves the rest.
import type { Policy, PolicySet } from "../config/policy-set.ts";
import type { NotifyEvent } from "../model/notify-event.ts";
import type { PolicyAlertState, ServiceAlertState } from "./alert-state.ts";
import { decideEvent, decideMasks, releasePolicy, removeUnnamed } from "./decide.ts";
import { decideService, outageSinks, type ServiceMoment } from "./decide-service.ts";
import { toAlertEvent, toMasksRead } from "./health.ts";
import { type AddressedNotice, staleNotice, tokenNotice } from "./notices.ts";

/** A service's breaker; undefined while it is closed. */
export type Breaker = ServiceMoment["breaker"];

/** What one tick works on. It changes the alert states in place: they are its own. */
export interface Evaluation {
  readonly set: PolicySet;
  readonly nowMs: number;
  readonly policies: Map<string, PolicyAlertState>;
  readonly services: Map<string, ServiceAlertState>;
  readonly breakers: ReadonlyMap<string, Breaker>;
  /** The policy of this name, as configured now; undefined when there is none. */
  readonly policy: (name: string) => Policy | undefined;
}

/** Evaluates events in order. Skips policies that are not configured any more. */
export function evaluateEvents(
  state: Evaluation,
  events: readonly NotifyEvent[],
): { notices: AddressedNotice[]; heartbeats: string[] } {
  const notices: AddressedNotice[] = [];
  const heartbeats: string[] = [];
  for (const event of events) {
    const policy = state.policy(event.kind === "outcome" ? event.outcome.policy : event.policy);
    const alertState = policy && state.policies.get(policy.name);
    const service = policy && state.services.get(policy.service);
    if (policy === undefined || alertState === undefined || service === undefined) continue;
    if (event.kind === "masks-read") {
      const decision = decideMasks(policy, alertState, toMasksRead(event));
      state.policies.set(policy.name, decision.policy);
      notices.push(...decision.notices);
      continue;
    }
    const notifyOn = policy.action.kind === "poll" ? policy.action.notifyOn : undefined;
    const ending = toAlertEvent(event, state.breakers.get(policy.service) !== undefined, notifyOn);
    const decision = decideEvent(policy, { policy: alertState, service }, ending);
    state.policies.set(policy.name, decision.policy);
    state.services.set(policy.service, decision.service);
    notices.push(...decision.notices);
    if (policy.heartbeat !== undefined && (ending.health === "good" || ending.health === "conflicts"))
      heartbeats.push(policy.name);
  }
  return { notices, heartbeats };
}

/**
 * Forgets targets that these policies no longer name, and notifies sinks that were told of them.
 * Their alert states must be loaded.
 */
export function tellRemoved(state: Evaluation, names: Iterable<string>): AddressedNotice[] {
  const at = new Date(state.nowMs).toISOString();
  return [...names].flatMap((name) => {
    const policy = state.policy(name);
    const alertState = state.policies.get(name);
    if (policy === undefined || alertState === undefined) return [];
    const { policy: kept, notices } = removeUnnamed(policy, alertState, { key: "removed", at });
    state.policies.set(name, kept);
    return notices;
  });
}

/**
 * Evaluates each service: has an outage begun or ended, or a window closed? Also returns the
 * policies to release.
 */
export function evaluateServices(state: Evaluation): {
  readonly notices: AddressedNotice[];
  readonly release: readonly { readonly policy: string; readonly sinceMs: number }[];
} {
  const notices: AddressedNotice[] = [];
  const release: { policy: string; sinceMs: number }[] = [];
  const bySinks = policiesByService(state.set.policies);
  for (const [service, alertState] of state.services) {
    const sinks = outageSinks(bySinks.get(service) ?? []);
    const { nowMs, set, breakers } = state;
    const moment = {
      service,
      nowMs,
      groupWaitMs: set.notifications.groupWaitMs,
      breaker: breakers.get(service),
      sinks,
    };
    const decision = decideService(alertState, moment);
    state.services.set(service, decision.service);
    notices.push(...decision.notices);
    for (const policy of decision.release) release.push({ policy, sinceMs: alertState.sinceMs });
  }
  return { notices, release };
}

/**
 * Notifies what waited for policies whose service was not down after all. Their alert states must
 * be loaded.
 */
export function evaluateReleased(
  state: Evaluation,
  release: readonly { readonly policy: string; readonly sinceMs: number }[],
): AddressedNotice[] {
  return release.flatMap(({ policy: name, sinceMs }) => {
    const policy = state.policy(name);
    const alertState = state.policies.get(name);
    if (policy === undefined || alertState === undefined) return [];
    const { policy: released, notices } = releasePolicy(policy, alertState, sinceMs);
    state.policies.set(name, released);
    return notices;
  });
}

/**
 * Notifies of stale policies, once for each silence, unless an outage of their service was
 * notified.
 */
export function evaluateStale(state: Evaluation, silences: ReadonlyMap<string, number>): AddressedNotice[] {
  const notices: AddressedNotice[] = [];
  for (const [name, sinceMs] of silences) {
    const policy = state.policy(name);
    const alertState = state.policies.get(name);
    const service = policy && state.services.get(policy.service);
    if (policy === undefined || alertState === undefined || service === undefined || service.phase !== "calm") continue;
    if (alertState.silent !== null) continue;
    const sinks = (policy.notify ?? []).filter(({ stale }) => stale).map(({ sink }) => sink);
    if (sinks.length === 0) continue;
    const notice = staleNotice(policy, sinceMs, state.nowMs);
    notices.push(...sinks.map((sink) => ({ sink, notice })));
    state.policies.set(name, { ...alertState, silent: { sinceMs, sinks } });
  }
  return notices;
}

/** Notifies of tokens that expire and cannot be renewed, once each. */
export function evaluateTokens(state: Evaluation, expiries: ReadonlyMap<string, number>): AddressedNotice[] {
  const notices: AddressedNotice[] = [];
  for (const [service, expiresAtMs] of expiries) {
    const alertState = state.services.get(service);
    if (alertState === undefined || alertState.token === expiresAtMs) continue;
    const rules = state.set.policies.flatMap((policy) => (policy.service === service ? (policy.notify ?? []) : []));
    const sinks = new Set(rules.filter(({ tokenExpiring }) => tokenExpiring).map(({ sink }) => sink));
    const notice = tokenNotice(service, expiresAtMs, state.nowMs);
    for (const sink of sinks) notices.push({ sink, notice });
    state.services.set(service, { ...alertState, token: expiresAtMs });
  }
  return notices;
}

/** The services that have at least one sink to notify. */
export function notifiedServices({ policies }: PolicySet): string[] {
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
