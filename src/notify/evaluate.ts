// One round of the notifier: from events and alert states, which it changes, to notices. No I/O:
// notifier.ts loads what it needs, saves what it changed and hands the notices over.
import type { Policy, PolicySet } from "../config/policy-set.ts";
import type { JudgedDeadlines } from "../model/deadline.ts";
import type { AddressedNotice } from "../model/notice.ts";
import { isNotified, type NotifyEvent } from "../model/notify-event.ts";
import { didWork, toAlertEvent, toMasksRead } from "./alert-event.ts";
import type { PolicyAlertState, ServiceAlertState } from "./alert-state.ts";
import {
  decideEvent,
  decideMasks,
  longRunNotices,
  type PolicyDecision,
  releaseOwnFailures,
  removeUnnamed,
} from "./decide.ts";
import { decideService, decideUnwatched, outageSinks, type ServiceMoment } from "./decide-service.ts";
import { lateEndedNotice, lateNotice, staleNotice, tokenNotice } from "./notices.ts";

/** A service's breaker; undefined while it is closed. */
export type Breaker = ServiceMoment["breaker"];

/**
 * What a round works on. `services`: those of policies with a sink or heartbeat; the evaluation
 * changes their states.
 */
interface World {
  readonly set: PolicySet;
  readonly nowMs: number;
  readonly services: Map<string, ServiceAlertState>;
  readonly breakers: ReadonlyMap<string, Breaker>;
  readonly policy: (name: string) => Policy | undefined;
}

/** A policy that is notified after all: no outage caused its failures since then. */
interface OwnFailures {
  readonly policy: string;
  readonly sinceMs: number;
}

/** The name of an event's policy. */
export function policyOf(event: NotifyEvent): string {
  return event.kind === "outcome" ? event.outcome.policy : event.policy;
}

/** One round. Alert states of the policies that it is asked about must be in `policies`. */
export class Evaluation {
  readonly policies = new Map<string, PolicyAlertState>();
  readonly notices: AddressedNotice[] = [];
  /** The policies whose heartbeat is due, and when their last success was recorded. */
  readonly heartbeats = new Map<string, string>();
  /** The new deadline states. */
  readonly deadlines = new Map<string, string | undefined>();
  readonly world: World;

  constructor(world: World) {
    this.world = world;
  }

  /** Evaluates one event; they come in order. Skips a policy that was removed. */
  onEvent(event: NotifyEvent): void {
    this.#change(policyOf(event), (policy, before, service) => {
      if (event.kind === "run-long") return { policy: before, notices: longRunNotices(policy, event) };
      if (event.kind === "masks-read") return decideMasks(policy, before, toMasksRead(event));
      const notifyOn = policy.action.kind === "poll" ? policy.action.notifyOn : undefined;
      const ranOn = event.kind === "outcome" ? event.outcome.service : policy.service;
      const found = toAlertEvent(event, this.world.breakers.get(policy.service) !== undefined, notifyOn);
      // A task that ran before its policy moved says nothing of the new service.
      const alertEvent =
        ranOn === policy.service ? found : ({ ...found, servicesFault: "no", isSignOfLife: false } as const);
      const decision = decideEvent({ ...policy, service: ranOn }, { policy: before, service }, alertEvent);
      this.world.services.set(policy.service, decision.service);
      // A success of one target sends no heartbeat while another one of the policy fails.
      const isWell = Object.values(decision.policy.targets).every(({ health }) => didWork(health));
      if (policy.heartbeat !== undefined && didWork(alertEvent.health) && isWell)
        this.heartbeats.set(policy.name, event.id.split("-")[0] ?? "");
      return decision;
    });
  }

  /** Begins and ends outages. Returns the policies whose failures no outage explains any more. */
  onServices(): readonly OwnFailures[] {
    const { set, nowMs, services, breakers } = this.world;
    const byService = policiesByService(set.policies);
    const { groupWaitMs } = set.notifications;
    return [...services].flatMap(([service, before]) => {
      const sinks = outageSinks(byService.get(service) ?? []);
      const moment = { service, nowMs, groupWaitMs, breaker: breakers.get(service), sinks };
      const decision = decideService(before, moment);
      services.set(service, decision.service);
      this.notices.push(...decision.notices);
      return decision.ownFailures.map((policy) => ({ policy, sinceMs: before.sinceMs }));
    });
  }

  /** Ends the outage of a service that is not watched any more. Returns its new state. */
  onUnwatched(service: string, before: ServiceAlertState): ServiceAlertState {
    const decision = decideUnwatched(before, { service, nowMs: this.world.nowMs });
    this.notices.push(...decision.notices);
    return decision.service;
  }

  /** Notifies what waited since then, where it was no outage or is over. */
  onOwnFailures(found: readonly OwnFailures[]): void {
    for (const { policy: name, sinceMs } of found)
      this.#change(name, (policy, before) => releaseOwnFailures(policy, before, sinceMs));
  }

  /** Forgets targets that these policies no longer name. */
  onRemoved(names: readonly string[]): void {
    const at = new Date(this.world.nowMs).toISOString();
    for (const name of names)
      this.#change(name, (policy, before) => removeUnnamed(policy, before, { key: "removed", at }));
  }

  /** Notifies of each stale policy once; not while its service is or seems to be down. */
  onStale(stale: ReadonlyMap<string, number>): void {
    for (const [name, sinceMs] of stale)
      this.#change(name, (policy, before, { phase }) => {
        const sinks = (policy.notify ?? []).filter(({ stale }) => stale).map(({ sink }) => sink);
        const isDown = phase !== "calm" || this.world.breakers.get(policy.service) !== undefined;
        if (isDown || before.stale !== null || sinks.length === 0) return { policy: before, notices: [] };
        const notice = staleNotice(policy, sinceMs, this.world.nowMs);
        return {
          policy: { ...before, stale: { sinceMs, sinks } },
          notices: sinks.map((sink) => ({ sink, notice })),
        };
      });
  }

  /** Notifies of missed deadlines and of what was made up for, each once. */
  onDeadlines(judged: ReadonlyMap<string, JudgedDeadlines>): void {
    for (const [name, { state, findings }] of judged) {
      const policy = this.world.policy(name);
      if (policy === undefined) continue;
      let sinks = new Set(state.sinks);
      for (const found of findings) {
        const isEnd = found.finding === "ended";
        const notice = isEnd
          ? lateEndedNotice(policy, found.late, found.endedWellMs)
          : lateNotice(policy, found.late, this.world.nowMs);
        for (const { sink, late, recovery } of policy.notify ?? []) {
          if (isEnd ? !(recovery && sinks.has(sink)) : !late) continue;
          this.notices.push({ sink, notice });
          sinks.add(sink);
        }
        if (isEnd) sinks = new Set();
      }
      this.deadlines.set(name, JSON.stringify({ ...state, sinks: [...sinks] }));
    }
  }

  /** Notifies of tokens that expire and cannot be renewed, once each. */
  onTokens(expiries: ReadonlyMap<string, number>): void {
    const { set, nowMs, services } = this.world;
    for (const [service, expiresAtMs] of expiries) {
      const before = services.get(service);
      if (before === undefined || before.token === expiresAtMs) continue;
      const rules = set.policies.flatMap((policy) => (policy.service === service ? (policy.notify ?? []) : []));
      const sinks = new Set(rules.filter(({ tokenExpiring }) => tokenExpiring).map(({ sink }) => sink));
      // A rule that is added later is told, too.
      if (sinks.size === 0) continue;
      const notice = tokenNotice(service, expiresAtMs, nowMs);
      for (const sink of sinks) this.notices.push({ sink, notice });
      services.set(service, { ...before, token: expiresAtMs });
    }
  }

  /** Applies a decision to a policy that is configured. */
  #change(
    name: string,
    decide: (policy: Policy, before: PolicyAlertState, service: ServiceAlertState) => PolicyDecision,
  ): void {
    const policy = this.world.policy(name);
    const before = this.policies.get(name);
    const service = policy && this.world.services.get(policy.service);
    if (policy === undefined || before === undefined || service === undefined) return;
    const decision = decide(policy, before, service);
    this.policies.set(name, decision.policy);
    // One that no rule names any more may be configured no longer.
    const named = new Set(policy.notify?.map(({ sink }) => sink));
    this.notices.push(...decision.notices.filter(({ sink }) => named.has(sink) || this.world.set.sinks.has(sink)));
  }
}

/** The services that have at least one sink or heartbeat. */
export function notifiedServices({ policies }: PolicySet): string[] {
  return [...policiesByService(policies).keys()];
}

function policiesByService(policies: readonly Policy[]): Map<string, Policy[]> {
  return Map.groupBy(policies.filter(isNotified), ({ service }) => service);
}
