// Decides whether a service is down, and when it is up again. Pure; called by decide.ts for each ending and by pass.ts on every beat.
//
//   calm ── a failure that may be the service's ──▶ window ── it was one policy's own ──▶ calm, and that is told
//     │                                               └── breaker open, or most fail ──▶ down ── well for a while ──▶ calm
//     └────────────── breaker open for a while ───────────────────────────────────────▶  │
//
// So an outage is one message, and its end another, whatever number of policies it hits.
import type { Policy } from "../config/policy-set.ts";
import type { Ending } from "./fate.ts";
import { serviceDownNotice, serviceUpNotice, type Telling } from "./notices.ts";
import { freshService, namedPoliciesMax, type ServiceStanding } from "./standing.ts";

/** What is known of a service when the teller looks. */
export interface ServiceMoment {
  readonly service: string;
  readonly nowMs: number;
  readonly groupForMs: number;
  /** Since when the breaker is open, and the kind of the last failure; undefined while it is closed. */
  readonly breaker: { readonly sinceMs: number; readonly failure: string } | undefined;
  /** Who is told of outages (`outageSinks`). */
  readonly sinks: readonly string[];
}

/** How the service fares now, who is told, and which policies are told by themselves since it was no outage. */
export interface ServiceDecision {
  readonly service: ServiceStanding;
  readonly tellings: readonly Telling[];
  readonly release: readonly string[];
}

/** The sinks that hear of the outages of a service: those that any of its policies tells of failures, unknown or missed ends. */
export function outageSinks(policies: readonly Policy[]): string[] {
  const hear = policies.flatMap(({ notify = [] }) =>
    notify.filter(({ failuresInRow, unknown, missed }) => failuresInRow !== undefined || unknown || missed),
  );
  return [...new Set(hear.map(({ sink }) => sink))];
}

/** Notes a failure that may be the service's. `isNew`: the policy is not part of this outage yet. */
export function withFailure(
  standing: ServiceStanding,
  { policy, ending, isNew }: { readonly policy: string; readonly ending: Ending; readonly isNew: boolean },
): ServiceStanding {
  const { atMs, fate, brief } = ending;
  if (standing.phase === "calm") {
    const { endedMs, token } = standing;
    const { reason } = brief;
    return { ...freshService, endedMs, token, phase: "window", sinceMs: atMs, policies: [policy], count: 1, reason };
  }
  const isNamed = isNew && standing.policies.length < namedPoliciesMax;
  return {
    ...standing,
    policies: isNamed ? [...standing.policies, policy] : standing.policies,
    count: standing.count + (isNew ? 1 : 0),
    reason: standing.reason === "" ? brief.reason : standing.reason,
    // What has only waited too long says nothing about now.
    upMs: fate === "missed" ? standing.upMs : null,
  };
}

/** Notes an ending that shows the service alive. */
export function withSignOfLife(standing: ServiceStanding, atMs: number): ServiceStanding {
  if (standing.phase === "calm" || atMs < standing.sinceMs) return standing;
  return { ...standing, good: standing.good + 1, upMs: standing.upMs ?? atMs };
}

/** Looks at a service: has an outage begun or ended, or was it none? */
export function decideService(standing: ServiceStanding, moment: ServiceMoment): ServiceDecision {
  if (standing.phase === "calm") return fromCalm(standing, moment);
  return standing.phase === "window" ? fromWindow(standing, moment) : fromDown(standing, moment);
}

function fromCalm(standing: ServiceStanding, moment: ServiceMoment): ServiceDecision {
  const { breaker, nowMs, groupForMs, sinks } = moment;
  if (breaker === undefined || sinks.length === 0 || nowMs - breaker.sinceMs < groupForMs) return asBefore(standing);
  const { endedMs, token } = standing;
  // The breaker is no older than what it ended: two outages never begin in the same instant.
  const sinceMs = Math.max(breaker.sinceMs, (endedMs ?? 0) + 1);
  return goDown({ ...freshService, endedMs, token, sinceMs, reason: breaker.failure }, moment);
}

function fromWindow(standing: ServiceStanding, moment: ServiceMoment): ServiceDecision {
  const { count, good, sinceMs, policies } = standing;
  if (moment.nowMs - sinceMs < moment.groupForMs) return asBefore(standing);
  const isCrowd = count > namedPoliciesMax || (count >= 2 && count > good);
  if (moment.breaker !== undefined || isCrowd) return goDown(standing, moment);
  const { endedMs, token } = standing;
  return { service: { ...freshService, endedMs, token }, tellings: [], release: policies };
}

function goDown(standing: ServiceStanding, { service, breaker, sinks }: ServiceMoment): ServiceDecision {
  const down: ServiceStanding = {
    ...standing,
    phase: "down",
    hadBreaker: breaker !== undefined,
    sinks: [...sinks],
  };
  const notice = serviceDownNotice(service, down, new Date(standing.sinceMs).toISOString());
  return { service: down, tellings: sinks.map((sink) => ({ sink, notice })), release: [] };
}

function fromDown(standing: ServiceStanding, { service, breaker, nowMs, groupForMs }: ServiceMoment): ServiceDecision {
  if (breaker !== undefined) return asBefore({ ...standing, hadBreaker: true, upMs: null });
  // A breaker closes only when the service has answered.
  const upMs = standing.upMs ?? (standing.hadBreaker ? nowMs : null);
  if (upMs === null || nowMs - upMs < groupForMs) return asBefore({ ...standing, upMs });
  const notice = serviceUpNotice(service, standing, upMs);
  const { token, sinks } = standing;
  return {
    service: { ...freshService, endedMs: upMs, token },
    tellings: sinks.map((sink) => ({ sink, notice })),
    release: [],
  };
}

function asBefore(service: ServiceStanding): ServiceDecision {
  return { service, tellings: [], release: [] };
}
