// Decides whether a service is down, and when it is up again. Pure; called by decide.ts for each
// ending and by evaluate.ts on every tick.
//
//   calm ── a failure that may be the service's ──▶ window ── one policy's own ──▶ calm, notified
//     │                                               └── breaker open, or most fail ──▶ down ── well for a while ──▶ calm
//     └────────────── breaker open for a while ───────────────────────────────────────▶  │
//
// So an outage is one notice and its end another, however many policies it hits.
import type { Policy } from "../config/policy-set.ts";
import { freshService, namedPoliciesMax, type ServiceAlertState } from "./alert-state.ts";
import type { AlertEvent } from "./health.ts";
import { type AddressedNotice, serviceDownNotice, serviceUpNotice } from "./notices.ts";

/** What is known of a service at this tick. */
export interface ServiceMoment {
  readonly service: string;
  readonly nowMs: number;
  readonly groupWaitMs: number;
  /**
   * Since when the breaker is open, and the kind of the last failure; undefined while it is closed.
   */
  readonly breaker: { readonly sinceMs: number; readonly failure: string } | undefined;
  /** The sinks that are told of outages (`outageSinks`). */
  readonly sinks: readonly string[];
}

/**
 * The new alert state, the notices, and the policies to notify by themselves since it was no
 * outage.
 */
export interface ServiceDecision {
  readonly service: ServiceAlertState;
  readonly notices: readonly AddressedNotice[];
  readonly release: readonly string[];
}

/**
 * The sinks that are told of a service's outages: those that any of its policies notifies of
 * failures, unknown ends or missed slots.
 */
export function outageSinks(policies: readonly Policy[]): string[] {
  const hear = policies.flatMap(({ notify = [] }) =>
    notify.filter(({ failuresInRow, unknown, missed }) => failuresInRow !== undefined || unknown || missed),
  );
  return [...new Set(hear.map(({ sink }) => sink))];
}

/**
 * Notes a failure that may be the service's. `isNew`: the policy is not counted in this outage yet.
 */
export function withFailure(
  alertState: ServiceAlertState,
  { policy, ending, isNew }: { readonly policy: string; readonly ending: AlertEvent; readonly isNew: boolean },
): ServiceAlertState {
  const { atMs, health, brief } = ending;
  if (alertState.phase === "calm") {
    const { endedMs, token } = alertState;
    const { reason } = brief;
    return { ...freshService, endedMs, token, phase: "window", sinceMs: atMs, policies: [policy], count: 1, reason };
  }
  const isNamed = isNew && alertState.policies.length < namedPoliciesMax;
  return {
    ...alertState,
    policies: isNamed ? [...alertState.policies, policy] : alertState.policies,
    count: alertState.count + (isNew ? 1 : 0),
    reason: alertState.reason === "" ? brief.reason : alertState.reason,
    // A missed slot only waited too long: it does not show that the service fails now.
    upMs: health === "missed" ? alertState.upMs : null,
  };
}

/** Notes an ending that shows the service alive. */
export function withSignOfLife(alertState: ServiceAlertState, atMs: number): ServiceAlertState {
  if (alertState.phase === "calm" || atMs < alertState.sinceMs) return alertState;
  return { ...alertState, good: alertState.good + 1, upMs: alertState.upMs ?? atMs };
}

/** Decides for a service: has an outage begun, ended, or was it none? */
export function decideService(alertState: ServiceAlertState, moment: ServiceMoment): ServiceDecision {
  if (alertState.phase === "calm") return fromCalm(alertState, moment);
  return alertState.phase === "window" ? fromWindow(alertState, moment) : fromDown(alertState, moment);
}

function fromCalm(alertState: ServiceAlertState, moment: ServiceMoment): ServiceDecision {
  const { breaker, nowMs, groupWaitMs, sinks } = moment;
  if (breaker === undefined || sinks.length === 0 || nowMs - breaker.sinceMs < groupWaitMs) return asBefore(alertState);
  const { endedMs, token } = alertState;
  // The breaker is no older than the outage it ended: two outages never begin in the same instant.
  const sinceMs = Math.max(breaker.sinceMs, (endedMs ?? 0) + 1);
  return goDown({ ...freshService, endedMs, token, sinceMs, reason: breaker.failure }, moment);
}

function fromWindow(alertState: ServiceAlertState, moment: ServiceMoment): ServiceDecision {
  const { count, good, sinceMs, policies } = alertState;
  if (moment.nowMs - sinceMs < moment.groupWaitMs) return asBefore(alertState);
  const isCrowd = count > namedPoliciesMax || (count >= 2 && count > good);
  if (moment.breaker !== undefined || isCrowd) return goDown(alertState, moment);
  const { endedMs, token } = alertState;
  return { service: { ...freshService, endedMs, token }, notices: [], release: policies };
}

function goDown(alertState: ServiceAlertState, { service, breaker, sinks }: ServiceMoment): ServiceDecision {
  const down: ServiceAlertState = {
    ...alertState,
    phase: "down",
    hadBreaker: breaker !== undefined,
    sinks: [...sinks],
  };
  const notice = serviceDownNotice(service, down, new Date(alertState.sinceMs).toISOString());
  return { service: down, notices: sinks.map((sink) => ({ sink, notice })), release: [] };
}

function fromDown(
  alertState: ServiceAlertState,
  { service, breaker, nowMs, groupWaitMs }: ServiceMoment,
): ServiceDecision {
  if (breaker !== undefined) return asBefore({ ...alertState, hadBreaker: true, upMs: null });
  // A breaker closes only when the service has answered.
  const upMs = alertState.upMs ?? (alertState.hadBreaker ? nowMs : null);
  if (upMs === null || nowMs - upMs < groupWaitMs) return asBefore({ ...alertState, upMs });
  const notice = serviceUpNotice(service, alertState, upMs);
  const { token, sinks } = alertState;
  return {
    service: { ...freshService, endedMs: upMs, token },
    notices: sinks.map((sink) => ({ sink, notice })),
    release: [],
  };
}

function asBefore(service: ServiceAlertState): ServiceDecision {
  return { service, notices: [], release: [] };
}
