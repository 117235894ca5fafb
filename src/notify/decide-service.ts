// Decides whether a service is down, and when it is up again: an outage is one notice and its end
// another, however many policies it hits. Pure; called by decide.ts for each ending and by
// evaluate.ts in every status round.
//
//   calm ── a failure that may be the service's ──▶ window ── one policy's own ──▶ calm, notified
//     │                                               └── breaker open, or most fail ──▶ down ── well for a while ──▶ calm
//     └────────────── breaker open for a while ───────────────────────────────────────▶  │
import type { Policy } from "../config/policy-set.ts";
import type { AddressedNotice } from "../model/notice.ts";
import type { AlertEvent } from "./alert-event.ts";
import { freshService, namedPoliciesMax, type ServiceAlertState } from "./alert-state.ts";
import { serviceDownNotice, serviceRemovedNotice, serviceUpNotice } from "./notices.ts";

/** Endings that must go well for each that fails, to end an outage; one keeps it from beginning. */
const wellPerFailed = 3;

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

/** `ownFailures`: the policies to notify by themselves, since it was no outage or is over. */
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
  /** Its sync job did not end well at its last end either. */
  readonly isStill: boolean;
}

/** Notes a failure that may be the service's. In a window a repeated one weighs on both sides. */
export function withFailure(
  before: ServiceAlertState,
  { policy, event, isNew, isRepeated, isStill }: Failure,
): ServiceAlertState {
  const { atMs, health } = event;
  const { reason } = event.brief;
  const good = before.good + (isNew && isRepeated ? 1 : 0);
  if (before.phase === "calm")
    return { ...calm(before), phase: "window", sinceMs: atMs, policies: [policy], count: 1, good, reason };
  const isNamed = isNew && before.policies.length < namedPoliciesMax;
  const after: ServiceAlertState = {
    ...before,
    policies: isNamed ? [...before.policies, policy] : before.policies,
    count: before.count + (isNew ? 1 : 0),
    reason: before.reason === "" ? reason : before.reason,
  };
  // A missed slot only waited too long: it does not show that the service fails now.
  if (before.phase === "window") return { ...after, good, upMs: health === "missed" ? before.upMs : null };
  if (before.upMs === null || health === "missed") return after;
  const { failed: known } = before;
  // Of an older version: what went well since `upMs` is not known.
  if (known === undefined) return { ...after, upMs: null };
  // One that was well weighs twice: a service that is half up must not seem up by chance.
  const more = isStill ? [policy].filter((name) => !known.includes(name)) : [policy, policy];
  const failed = [...known, ...more];
  return isCrowd(failed.length, before.good / wellPerFailed) ? { ...after, upMs: null } : { ...after, failed };
}

/** Notes an ending that shows the service alive. */
export function withSignOfLife(before: ServiceAlertState, atMs: number): ServiceAlertState {
  if (before.phase === "calm" || atMs < before.sinceMs) return before;
  if (before.phase === "down" && before.upMs === null) return { ...before, ...seemsUp(atMs), good: 1 };
  return { ...before, good: before.good + 1, upMs: before.upMs ?? atMs };
}

/** Decides for a service: has an outage begun, ended, or was it none? */
export function decideService(before: ServiceAlertState, moment: ServiceMoment): ServiceDecision {
  return decideFrom[before.phase](before, moment);
}

const decideFrom: Record<ServiceAlertState["phase"], typeof decideService> = {
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
    if (moment.breaker !== undefined || isCrowd(count, good)) return goDown(before, moment);
    return { service: calm(before), notices: [], ownFailures: policies };
  },

  down: (before, moment) => {
    const { service, breaker, nowMs, groupWaitMs, sinks } = moment;
    // A reload may add the first sink.
    if (breaker !== undefined && before.sinks.length === 0 && sinks.length > 0)
      return goDown({ ...before, upMs: null }, moment);
    if (breaker !== undefined) return stay({ ...before, hadBreaker: true, upMs: null });
    const { upMs } = before;
    // A breaker closes only when the service has answered.
    if (upMs === null) return stay(before.hadBreaker ? { ...before, ...seemsUp(nowMs) } : before);
    if (nowMs - upMs < groupWaitMs) return stay(before);
    const notice = serviceUpNotice(service, before, upMs);
    // A sink may have another name by now. Where none was notified, none hears the end.
    const told = before.sinks.length === 0 ? [] : new Set([...before.sinks, ...sinks]);
    const notices = [...told].map((sink) => ({ sink, notice }));
    return { service: { ...calm(before), endedMs: upMs }, notices, ownFailures: [...new Set(before.failed)] };
  },
};

/** Ends the outage of a service that no policy with a sink or heartbeat names any more. */
export function decideUnwatched(
  before: ServiceAlertState,
  { service, nowMs }: Pick<ServiceMoment, "service" | "nowMs">,
): ServiceDecision {
  const notice = serviceRemovedNotice(service, before, nowMs);
  const notices = before.sinks.map((sink) => ({ sink, notice }));
  return notices.length === 0 ? stay(before) : { ...stay({ ...calm(before), endedMs: nowMs }), notices };
}

/** Whether failures show an outage: two or more, and more than go well or are known by name. */
function isCrowd(failed: number, good: number): boolean {
  return failed > namedPoliciesMax || (failed >= 2 && failed > good);
}

/** Nothing has ended since then. */
function seemsUp(upMs: number) {
  return { upMs, good: 0, failed: [] };
}

function goDown(before: ServiceAlertState, { service, breaker, sinks }: ServiceMoment): ServiceDecision {
  const down: ServiceAlertState = {
    ...before,
    phase: "down",
    good: before.upMs === null ? 0 : 1,
    failed: [],
    hadBreaker: breaker !== undefined,
    sinks: [...sinks],
  };
  const notice = serviceDownNotice(service, down);
  return { service: down, notices: sinks.map((sink) => ({ sink, notice })), ownFailures: [] };
}

function stay(service: ServiceAlertState): ServiceDecision {
  return { service, notices: [], ownFailures: [] };
}

function calm({ endedMs, token }: ServiceAlertState): ServiceAlertState {
  return { ...freshService, endedMs, token };
}
