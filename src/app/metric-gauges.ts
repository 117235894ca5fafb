// Reads the gauges of /metrics at a scrape: this process's own state, and what all replicas share
// in Redis. Built by app.ts; ops/metrics.ts decides when it reads. Changes nothing in Redis.

import type { Policy } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { dayMs } from "../core/duration.ts";
import { errorText, stackOf } from "../core/errors.ts";
import { bugEveryMs, createRateLimitedLog, type EventLog } from "../core/event-log.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import type { Late } from "../model/deadline.ts";
import { labelsOf, selectorOf } from "../model/label.ts";
import { isInForce, type Pause, pausesByPolicy } from "../model/pause.ts";
import { closedLabels, otherValue, worstPoliciesMax } from "../ops/metric-labels.ts";
import type { GaugeSource, Metrics } from "../ops/metrics.ts";
import { readLate } from "../queries/deadlines.ts";
import type { NoticeQueues } from "../queue/notice-queues.ts";
import type { Producer } from "../queue/producer.ts";
import type { Store } from "../store/redis.ts";
import { readLimiterStatus } from "../store/service-limiter.ts";
import { readTroubles, type TroubleNote } from "../store/troubles.ts";
import type { CurrentSet } from "./current-set.ts";
import { PolicySlots, readSuccesses, type SuccessFacts } from "./policy-slots.ts";
import type { RedisGuard } from "./redis-guard.ts";
import type { RunningServices } from "./running-services.ts";

/** How long gauges show an unknown start or a missed slot: no later event undoes them. */
const eventShownMs = 3_600_000;
/** How long conflicts are shown that are not counted since, where no third slot comes. */
const conflictsShownMs = 31 * dayMs;

/** What the gauges are read from. */
export interface GaugeParts {
  readonly current: CurrentSet;
  readonly services: Pick<RunningServices, "client">;
  readonly guard: Pick<RedisGuard, "isUp" | "isSafe" | "facts" | "foreignOwners">;
  readonly store: Store;
  readonly producer: Pick<Producer, "backlog">;
  readonly sinks: { readonly queues: Pick<NoticeQueues, "backlog"> };
  readonly pauses: () => Promise<readonly Pause[]>;
  /** The roles at work, without `scheduler`: the scheduler reports each of its runs itself. */
  readonly atWork: () => readonly Parameters<Metrics["markAlive"]>[0][];
  readonly log: EventLog;
}

/** Makes the source of the gauges. */
export function createGaugeSource(metrics: Metrics, parts: GaugeParts): GaugeSource {
  const slots = new PolicySlots();
  const limitedLog = createRateLimitedLog(parts.log, systemClock, "");
  let bugAtMs = Number.NEGATIVE_INFINITY;
  // Without the shared gauges no alert about policies, breakers and sinks can fire.
  const noteBug = (error: unknown) => {
    const nowMs = systemClock.monotonicMs();
    if (isRedisOutage(error) || nowMs - bugAtMs < bugEveryMs) return;
    bugAtMs = nowMs;
    parts.log.error("bug.caught", { stack: stackOf(error) });
  };
  return {
    own: () => {
      setOwn(metrics, parts);
    },
    readShared: async () => {
      // Otherwise each scrape would wait for its whole limit, and Prometheus might give up on all
      // metrics.
      if (!parts.guard.isUp()) throw new Error("Redis does not answer");
      const [policies, services, sinks] = await Promise.all([
        readPolicies(metrics, parts, slots),
        readServices(metrics, parts),
        readSinks(metrics, parts),
      ]).catch((error: unknown) => {
        noteBug(error);
        throw error;
      });
      return () => {
        for (const set of [...policies, ...services, ...sinks]) set();
      };
    },
    tellGap: (error) => {
      // An outage of Redis is told as such.
      if (parts.guard.isUp()) limitedLog.warn("metrics.incomplete", { message: errorText(error) });
    },
  };
}

function setOwn(metrics: Metrics, { current, services, guard, atWork }: GaugeParts): void {
  const isUp = guard.isUp();
  metrics.set("syncline_redis_up", {}, isUp ? 1 : 0);
  metrics.set("syncline_foreign_owners", {}, guard.foreignOwners);
  metrics.set("syncline_redis_safe", {}, isUp && guard.isSafe() ? 1 : 0);
  const { facts } = guard;
  if (facts !== undefined) {
    metrics.set("syncline_clock_skew_seconds", {}, facts.clockAheadMs / 1_000);
    if (facts.evictionPolicy !== undefined)
      metrics.set("syncline_redis_policy_ok", {}, facts.evictionPolicy === "noeviction" ? 1 : 0);
    if (facts.appendOnly !== undefined) metrics.set("syncline_redis_append_only", {}, facts.appendOnly ? 1 : 0);
  }
  for (const role of isUp ? atWork() : []) metrics.markAlive(role);
  const { policies } = current.set;
  metrics.set("syncline_config_policies", {}, policies.length);
  metrics.clear("syncline_policy_info");
  for (const policy of policies.filter(({ name }) => metrics.knows("policy", name))) {
    const { name, owner = "" } = policy;
    metrics.set("syncline_policy_info", { policy: name, owner, labels: selectorOf(labelsOf(policy)) }, 1);
  }
  const unnamed = policies.filter(({ name }) => !metrics.knows("policy", name));
  metrics.set("syncline_config_policies_unnamed", {}, unnamed.length);
  metrics.clear("syncline_token_expiry_timestamp_seconds");
  for (const service of known(metrics, current)) {
    const expiresAtMs = services.client(service)?.tokenExpiresAtMs;
    if (expiresAtMs !== undefined)
      metrics.set("syncline_token_expiry_timestamp_seconds", { service }, expiresAtMs / 1_000);
  }
}

/** The services that have series of their own. */
function known(metrics: Metrics, current: CurrentSet): string[] {
  return [...current.set.services.keys()].filter((service) => metrics.knows("service", service));
}

async function readServices(metrics: Metrics, { current, store, producer }: GaugeParts): Promise<(() => void)[]> {
  return Promise.all(
    known(metrics, current).map(async (service) => {
      const [limiter, actions, polls] = await Promise.all([
        readLimiterStatus(store, service),
        producer.backlog(service, "actions"),
        producer.backlog(service, "polls"),
      ]);
      return () => {
        const isOpen = limiter.breaker === "open";
        const breakerCause = isOpen ? (limiter.lastFailure ?? otherValue) : "none";
        metrics.set("syncline_breaker_open", { service, breakerCause }, isOpen ? 1 : 0);
        // Without the limit no request is counted.
        if (current.set.services.get(service)?.limits.concurrencyMax !== undefined)
          metrics.set("syncline_requests_in_flight", { service }, limiter.inFlight);
        if (limiter.throttledUntilMs !== undefined)
          metrics.set("syncline_throttled_until_timestamp_seconds", { service }, limiter.throttledUntilMs / 1_000);
        for (const [queue, backlog] of Object.entries({ actions, polls })) {
          for (const state of ["waiting", "active", "delayed"] as const)
            metrics.set("syncline_queue_tasks", { service, queue, state }, backlog[state]);
          if (backlog.oldestMs !== undefined)
            metrics.set("syncline_queue_oldest_timestamp_seconds", { service, queue }, backlog.oldestMs / 1_000);
        }
      };
    }),
  );
}

async function readSinks(metrics: Metrics, { current, sinks }: GaugeParts): Promise<(() => void)[]> {
  const names = [...current.set.sinks.keys()].filter((sink) => metrics.knows("sink", sink));
  return Promise.all(
    names.map(async (sink) => {
      const { waiting, failed, oldestMs } = await sinks.queues.backlog(sink);
      return () => {
        metrics.set("syncline_sink_queue", { sink }, waiting);
        metrics.set("syncline_sink_failed", { sink }, failed);
        if (oldestMs !== undefined) metrics.set("syncline_sink_oldest_timestamp_seconds", { sink }, oldestMs / 1_000);
      };
    }),
  );
}

async function readPolicies(metrics: Metrics, parts: GaugeParts, slots: PolicySlots): Promise<(() => void)[]> {
  const { current, store } = parts;
  const { policies } = current.set;
  const [known, notes, late] = await Promise.all([
    readSuccesses(policies, store, parts.pauses),
    readTroubles(store, policies),
    readLate(policies, store),
  ]);
  const facts = { ...known, notes, late };
  const ownPauses = pausesByPolicy(known.pauses);
  const named = policies.filter(({ name }) => metrics.knows("policy", name));
  return [
    () => setTroubles(metrics, current.set.services.keys(), findTroubles(policies, facts, slots)),
    ...named.map((policy) => () => setPolicy(metrics, policy, { ...facts, pauses: ownPauses(policy) }, slots)),
  ];
}

/** Sets the gauges of one policy; of all pauses `facts` has only those about it. */
function setPolicy(metrics: Metrics, policy: Policy, facts: SuccessFacts, slots: PolicySlots): void {
  const { name } = policy;
  const { nowMs, successes, pauses } = facts;
  const set = (gauge: PolicyInstant, atMs: number | undefined) => {
    if (atMs !== undefined) metrics.set(gauge, { policy: name }, atMs / 1_000);
  };
  set("syncline_policy_last_success_timestamp_seconds", successes.get(name));
  set("syncline_policy_next_slot_timestamp_seconds", slots.nextMs(policy, nowMs));
  set("syncline_policy_stale_from_timestamp_seconds", slots.staleFromMs(policy, facts));
  for (const { cause = "pause" } of pauses.filter((pause) => isInForce(pause, nowMs)))
    metrics.set("syncline_policy_paused", { policy: name, cause }, 1);
}

/** Sets a number for every service, 0 included. Services without own series share one. */
export function setTroubles(metrics: Metrics, services: Iterable<string>, troubles: readonly PolicyTrouble[]): void {
  const shown = troubles.map((one) => ({ ...one, service: shownService(metrics, one.service) }));
  const groups = countTroubles(shown);
  for (const service of new Set([...services].map((name) => shownService(metrics, name)))) {
    for (const trouble of closedLabels.trouble) {
      const group = groups.get(`${service}/${trouble}`) ?? [];
      metrics.set("syncline_policies_in_trouble", { service, trouble }, group.length);
      for (const { policy, atMs } of worstOf(group))
        metrics.set(
          "syncline_policy_trouble_timestamp_seconds",
          { worstPolicy: policy, service, trouble },
          atMs / 1_000,
        );
    }
  }
}

function shownService(metrics: Metrics, service: string): string {
  return metrics.knows("service", service) ? service : otherValue;
}

type PolicyInstant =
  | "syncline_policy_last_success_timestamp_seconds"
  | "syncline_policy_next_slot_timestamp_seconds"
  | "syncline_policy_stale_from_timestamp_seconds";

/** What can be wrong with a policy. Of late, stale and failing only the first that holds counts. */
type Trouble = "stale" | "late" | "quarantined" | TroubleNote["trouble"];

/** A trouble of a policy: since when it is stale, late or paused, or when it last happened. */
interface PolicyTrouble {
  readonly policy: string;
  readonly service: string;
  readonly trouble: Trouble;
  readonly atMs: number;
}

/** What is known of all policies. */
export interface PolicyFacts extends SuccessFacts {
  readonly notes: readonly TroubleNote[];
  readonly late: ReadonlyMap<string, Pick<Late, "sinceMs">>;
}

/** Finds the troubles of these policies. */
export function findTroubles(policies: readonly Policy[], facts: PolicyFacts, slots: PolicySlots): PolicyTrouble[] {
  const ownPauses = pausesByPolicy(facts.pauses);
  const newest = new Map<string, number>();
  // Notes come oldest first, so the newest wins.
  for (const { trouble, policy, atMs } of facts.notes) newest.set(`${trouble}/${policy}`, atMs);
  return policies.flatMap((policy) => {
    const { name, service } = policy;
    const found: PolicyTrouble[] = [];
    const add = (trouble: Trouble, atMs: number) => found.push({ policy: name, service, trouble, atMs });
    for (const trouble of ["unknown", "missed"] as const) {
      const atMs = newest.get(`${trouble}/${name}`);
      if (atMs !== undefined && facts.nowMs - atMs < eventShownMs) add(trouble, atMs);
    }
    const late = facts.late.get(name);
    if (late !== undefined) add("late", late.sinceMs);
    const own = ownPauses(policy);
    const inForce = own.filter((pause) => isInForce(pause, facts.nowMs));
    const quarantine = inForce.find(({ cause }) => cause === "quarantine");
    if (quarantine !== undefined) add("quarantined", quarantine.sinceMs);
    if (inForce.length > 0) return found;
    const staleFromMs = slots.staleFromMs(policy, { ...facts, pauses: own });
    const isStale = staleFromMs !== undefined && staleFromMs <= facts.nowMs;
    if (isStale && late === undefined) add("stale", staleFromMs);
    for (const trouble of ["failing", "conflicts"] as const) {
      const atMs = newest.get(`${trouble}/${name}`);
      if (atMs === undefined || (trouble === "failing" && (isStale || late !== undefined))) continue;
      // After three slots the state is not known: the sync job was removed or is skipped, or its
      // conflicts were not counted since.
      const latestMs = trouble === "conflicts" ? atMs + conflictsShownMs : Number.POSITIVE_INFINITY;
      if ((slots.thirdSlotMs(policy, trouble, atMs) ?? latestMs) > facts.nowMs) add(trouble, atMs);
    }
    return found;
  });
}

/** Groups troubles by service, the oldest first. */
export function countTroubles(troubles: readonly PolicyTrouble[]): Map<string, PolicyTrouble[]> {
  const groups = Map.groupBy(troubles, ({ service, trouble }) => `${service}/${trouble}`);
  for (const group of groups.values()) group.sort((a, b) => a.atMs - b.atMs);
  return groups;
}

/** The members of a group that the metrics name. */
export function worstOf(group: readonly PolicyTrouble[]): readonly PolicyTrouble[] {
  return group.slice(0, worstPoliciesMax);
}
