// What the gauges of /metrics are read from at a scrape: this process's own state, and what all replicas share in Redis. Built by
// app.ts; ops/metrics.ts says when it is asked and how long. Changes nothing in Redis.
import type { GaugeSource, Metrics } from "../ops/metrics.ts";
import type { NoticeQueues } from "../queue/notice-queues.ts";
import type { Producer } from "../queue/producer.ts";
import { readGateStatus } from "../store/gate-status.ts";
import { LastSuccesses } from "../store/last-successes.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { SlotLedger } from "../store/slot-ledger.ts";
import { isAbout, isInForce, type Pause } from "../tasks/pause.ts";
import type { CurrentSet } from "./current-set.ts";
import { PolicySlots } from "./policy-slots.ts";
import type { RedisGuard } from "./redis-guard.ts";
import type { RunningServices } from "./running-services.ts";

/** What is looked at. */
export interface GaugeParts {
  readonly current: CurrentSet;
  readonly services: Pick<RunningServices, "client">;
  readonly guard: Pick<RedisGuard, "isUp" | "isSafe" | "facts">;
  readonly store: Store;
  readonly producer: Pick<Producer, "backlog">;
  readonly sinks: { readonly queues: Pick<NoticeQueues, "backlog"> };
  readonly pauses: () => Promise<readonly Pause[]>;
  /** Whether this process works on tasks right now. */
  readonly isWorking: () => boolean;
}

/** Makes the source of the gauges. */
export function createGaugeSource(metrics: Metrics, parts: GaugeParts): GaugeSource {
  const slots = new PolicySlots();
  return {
    own: () => {
      setOwn(metrics, parts);
    },
    readShared: async () => {
      const [policies, services, sinks] = await Promise.all([
        readPolicies(metrics, parts, slots),
        readServices(metrics, parts),
        readSinks(metrics, parts),
      ]);
      return () => {
        for (const set of [...policies, ...services, ...sinks]) set();
      };
    },
  };
}

function setOwn(metrics: Metrics, { current, services, guard, isWorking }: GaugeParts): void {
  const isUp = guard.isUp();
  metrics.set("syncline_redis_up", {}, isUp ? 1 : 0);
  metrics.set("syncline_redis_safe", {}, guard.isSafe() ? 1 : 0);
  const { facts } = guard;
  if (facts !== undefined) {
    metrics.set("syncline_clock_skew_seconds", {}, facts.clockAheadMs / 1_000);
    if (facts.evictionPolicy !== undefined)
      metrics.set("syncline_redis_policy_ok", {}, facts.evictionPolicy === "noeviction" ? 1 : 0);
    if (facts.appendOnly !== undefined) metrics.set("syncline_redis_append_only", {}, facts.appendOnly ? 1 : 0);
  }
  if (isUp && isWorking()) metrics.beat("worker");
  metrics.set("syncline_config_policies", {}, current.set.policies.length);
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
      const [gate, actions, polls] = await Promise.all([
        readGateStatus(store, service),
        producer.backlog(service, "actions"),
        producer.backlog(service, "polls"),
      ]);
      return () => {
        metrics.set("syncline_breaker_open", { service }, gate.breaker === "open" ? 1 : 0);
        metrics.set("syncline_requests_in_flight", { service }, gate.inFlight);
        if (gate.throttledUntilMs !== undefined)
          metrics.set("syncline_throttled_until_timestamp_seconds", { service }, gate.throttledUntilMs / 1_000);
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
  const policies = current.set.policies.filter(({ name }) => metrics.knows("policy", name));
  const names = policies.map(({ name }) => name);
  const [nowMs, successes, keptSince, pauses] = await Promise.all([
    redisTimeMs(store),
    new LastSuccesses(store).of(names),
    new SlotLedger(store).keptSince(names),
    parts.pauses(),
  ]);
  return policies.map((policy) => () => {
    const { name } = policy;
    const set = (gauge: PolicyInstant, atMs: number | undefined) => {
      if (atMs !== undefined) metrics.set(gauge, { policy: name }, atMs / 1_000);
    };
    const own = pauses.filter((pause) => isAbout(pause, policy));
    const succeededAtMs = successes.get(name);
    set("syncline_policy_last_success_timestamp_seconds", succeededAtMs);
    set("syncline_policy_next_slot_timestamp_seconds", slots.nextMs(policy, nowMs));
    const sinceMs = succeededAtMs ?? keptSince.get(name);
    if (sinceMs !== undefined)
      set("syncline_policy_stale_from_timestamp_seconds", slots.staleFromMs(policy, afterPauses(sinceMs, own, nowMs)));
    for (const { cause = "pause" } of own.filter((pause) => isInForce(pause, nowMs)))
      metrics.set("syncline_policy_paused", { policy: name, cause }, 1);
  });
}

type PolicyInstant =
  | "syncline_policy_last_success_timestamp_seconds"
  | "syncline_policy_next_slot_timestamp_seconds"
  | "syncline_policy_stale_from_timestamp_seconds";

/** What a pause kept from running is not stale for it: time counts from the end of the last one. */
function afterPauses(sinceMs: number, pauses: readonly Pause[], nowMs: number): number {
  return Math.max(sinceMs, ...pauses.map(({ untilMs }) => (untilMs === null || untilMs > nowMs ? 0 : untilMs)));
}
