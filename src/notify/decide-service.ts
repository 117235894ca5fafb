// Decides whether a service is down, and when it is up again: an outage is one notice and its end
// another, however many policies it hits. Pure; called by decide.ts for each ending and by
// evaluate.ts in every status round.
//
//   calm ── a failure that may be the service's ──▶ window ── one policy's own ──▶ calm, notified
//     │                                               └── breaker open, or most fail ──▶ down ── well for a while ──▶ calm
//     └────────────── breaker open for a while ───────────────────────────────────────▶  │
import type { Policy } from "../config/policy-set.ts";
import type { AlertEvent } from "./alert-event.ts";
import { freshService, namedPoliciesMax, type ServiceAlertState } from "./alert-state.ts";
import { type AddressedNotice, serviceDownNotice, serviceUpNotice } from "./notices.ts";

/** What is known of a service in this round. */
export interface ServiceMoment {
  readonly service: string;
  readonly nowMs: number;
  readonly groupWaitMs: number;
  /** Since when it is open, and the last failure's kind; undefined while it is closed. */
  readonly breaker: { readonly sinceMs: number; readonly failure: string } | undefined;
  /** The sinks that are notified of outages (`outageSinks`). */
  readonly sinks: readonly string[];
}

/** `ownFailures`: the policies to notify by themselves, since it was no outage. */
export interface ServiceDecision {
  readonly service: ServiceAlertState;
  readonly notices: readonly AddressedNotice[];
  readonly ownFailures: readonly string[];
}

/** The sinks of outages: those that a policy notifies of failures, unknown ends or missed slots. */
export function outageSinks(policies: readonly Policy[]): string[] {
  const rules = policies.flatMap(({ notify = [] }) => notify);
  const wants = rules.filter(({ failuresInRow, unknown, missed }) => failuresInRow !== undefined || unknown || missed);
  return [...new Set(wants.map(({ sink }) => sink))];
}

interface Failure {
  readonly policy: string;
  readonly event: AlertEvent;
  /** The policy is not counted in the outage yet. */
  readonly isNew: boolean;
  /** Its sync job failed so at its last end, too: no sign that the service is worse than then. */
  readonly isRepeated: boolean;
}

/** Notes a failure that may be the service's. A repeated one weighs on both sides. */
export function withFailure(
  before: ServiceAlertState,
  { policy, event, isNew, isRepeated }: Failure,
): ServiceAlertState {
  const { atMs, health } = event;
  const { reason } = event.brief;
  const good = before.good + (isNew && isRepeated ? 1 : 0);
  if (before.phase === "calm")
    return { ...calm(before), phase: "window", sinceMs: atMs, policies: [policy], count: 1, good, reason };
  const isNamed = isNew && before.policies.length < namedPoliciesMax;
  return {
    ...before,
    policies: isNamed ? [...before.policies, policy] : before.policies,
    count: before.count + (isNew ? 1 : 0),
    good,
    reason: before.reason === "" ? reason : before.reason,
    // A missed slot only waited too long: it does not show that the service fails now.
    upMs: health === "missed" ? before.upMs : null,
  };
}

/** Notes an ending that shows the service alive. */
export function withSignOfLife(before: ServiceAlertState, atMs: number): ServiceAlertState {
  if (before.phase === "calm" || atMs < before.sinceMs) return before;
  return { ...before, good: before.good + 1, upMs: before.upMs ?? atMs };
}

/** Decides for a service: has an outage begun, ended, or was it none? */
export function decideService(before: ServiceAlertState, moment: ServiceMoment): ServiceDecision {
  return from[before.phase](before, moment);
}

const from: Record<ServiceAlertState["phase"], typeof decideService> = {
  calm: (before, moment) => {
    const { breaker, nowMs, groupWaitMs } = moment;
    // An outage also where no sink hears of it: no policy is stale by it.
    if (breaker === undefined || nowMs - breaker.sinceMs < groupWaitMs) return stay(before);
    // An outage begins after the last one's end: its start is part of the notice's id.
    const sinceMs = Math.max(breaker.sinceMs, (before.endedMs ?? 0) + 1);
    return goDown({ ...calm(before), sinceMs, reason: breaker.failure }, moment);
  },

  window: (before, moment) => {
    const { count, good, sinceMs, policies } = before;
    if (moment.nowMs - sinceMs < moment.groupWaitMs) return stay(before);
    const isCrowd = count > namedPoliciesMax || (count >= 2 && count > good);
    if (moment.breaker !== undefined || isCrowd) return goDown(before, moment);
    return { service: calm(before), notices: [], ownFailures: policies };
  },

  down: (before, moment) => {
    const { service, breaker, nowMs, groupWaitMs, sinks } = moment;
    // A reload may add the first sink.
    if (breaker !== undefined && before.sinks.length === 0 && sinks.length > 0)
      return goDown({ ...before, upMs: null }, moment);
    if (breaker !== undefined) return stay({ ...before, hadBreaker: true, upMs: null });
    // A breaker closes only when the service has answered.
    const upMs = before.upMs ?? (before.hadBreaker ? nowMs : null);
    if (upMs === null || nowMs - upMs < groupWaitMs) return stay({ ...before, upMs });
    const notice = serviceUpNotice(service, before, upMs);
    // A sink may have another name by now. Where none was notified, none hears the end.
    const told = before.sinks.length === 0 ? [] : new Set([...before.sinks, ...sinks]);
    const notices = [...told].map((sink) => ({ sink, notice }));
    return { service: { ...calm(before), endedMs: upMs }, notices, ownFailures: [] };
  },
};

function goDown(before: ServiceAlertState, { service, breaker, sinks }: ServiceMoment): ServiceDecision {
  const down: ServiceAlertState = { ...before, phase: "down", hadBreaker: breaker !== undefined, sinks: [...sinks] };
  const notice = serviceDownNotice(service, down);
  return { service: down, notices: sinks.map((sink) => ({ sink, notice })), ownFailures: [] };
}

function stay(service: ServiceAlertState): ServiceDecision {
  return { service, notices: [], ownFailures: [] };
}

function calm({ endedMs, token }: ServiceAlertState): ServiceAlertState {
  return { ...freshService, endedMs, token };
}
