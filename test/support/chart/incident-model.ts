// A model of one release that Prometheus scrapes once a minute: 200 policies over two services, and
// what goes wrong. It sets the product's own metrics (`Metrics`, `findTroubles`, `setTroubles`), so
// the series are those of /metrics; time begins at 0.
import { findTroubles, setTroubles } from "../../../src/app/metric-gauges.ts";
import { PolicySlots } from "../../../src/app/policy-slots.ts";
import type { Policy } from "../../../src/config/policy-set.ts";
import { Metrics } from "../../../src/ops/metrics.ts";
import type { NotedTrouble, TroubleNote } from "../../../src/store/troubles.ts";
import { parseMetrics } from "../metrics-text.ts";
import { testPolicy } from "../policies.ts";

type Role = "scheduler" | "worker";

/** How things stand at a minute. */
export interface Conditions {
  /** Of the same release: other pods are other processes, whose counters begin at 0. */
  readonly pods: readonly string[];
  readonly roles: readonly Role[];
  readonly redis: "well" | "gone";
  /** Redis answers, but no scrape within its time. */
  readonly isSlow: boolean;
  readonly main: "well" | "down" | "denied" | "throttles";
  readonly isRejected: boolean;
  readonly isSinkStuck: boolean;
  /** Policies whose runs fail, or leave conflicts, whatever their service does. */
  readonly failing: readonly string[];
  readonly conflicts: readonly string[];
  /** Policies that an operator runs by hand at this minute, with success. */
  readonly byHand: readonly string[];
}

/** All is well. */
export const well: Conditions = {
  pods: ["a"],
  roles: ["scheduler", "worker"],
  redis: "well",
  isSlow: false,
  main: "well",
  isRejected: false,
  isSinkStuck: false,
  failing: [],
  conflicts: [],
  byHand: [],
};

const minuteMs = 60_000;
const services = ["main", "other"];
const startedAt = "syncline_process_start_time_seconds";
interface Modelled {
  readonly policy: Policy;
  readonly everyMinutes: number;
  readonly atMinute: number;
  readonly isNever: boolean;
  isPlanned: boolean;
  dueMinute: number | undefined;
}

/**
 * 120 policies every five minutes and 30 hourly on `main`, 10 once a day on `main` at minute 60, 40
 * every five minutes on `other`.
 */
function modelled(): Modelled[] {
  const make = (name: string, service: string, everyMinutes: number, atMinute: number): Modelled => {
    const cron =
      everyMinutes === 1_440 ? "0 1 * * *" : everyMinutes === 60 ? `${atMinute} * * * *` : `${atMinute}-59/5 * * * *`;
    const dst = { gap: "next", overlap: "first" } as const;
    const schedule = { kind: "cron", expressions: [cron], timezone: "UTC", dst, spreadMs: 0 } as const;
    const policy = testPolicy({ name, service, schedule });
    return { policy, everyMinutes, atMinute, isNever: name.endsWith("0"), isPlanned: false, dueMinute: undefined };
  };
  const several = (count: number, one: (index: number) => Modelled) => Array.from({ length: count }, (_, i) => one(i));
  return [
    ...several(120, (index) => make(`often-${index}`, "main", 5, index % 5)),
    ...several(30, (index) => make(`hourly-${index}`, "main", 60, (index * 7) % 60)),
    ...several(10, (index) => make(`nightly-${index}`, "main", 1_440, 60)),
    ...several(40, (index) => make(`other-${index}`, "other", 5, index % 5)),
  ];
}

/**
 * Plays a course and answers each series of these names with its value at every minute; undefined
 * where it was not scraped.
 */
export async function playCourse(
  minutes: number,
  names: ReadonlySet<string>,
  at: (minute: number) => Conditions,
): Promise<Map<string, (number | undefined)[]>> {
  const release = new Release(names);
  const series = new Map<string, (number | undefined)[]>();
  for (let minute = 0; minute <= minutes; minute += 1) {
    for (const [name, value] of await release.scrape(minute, at(minute))) {
      const values = series.get(name) ?? [];
      values[minute] = value;
      series.set(name, values);
    }
  }
  return series;
}

class Release {
  readonly #names: ReadonlySet<string>;
  readonly #policies = modelled();
  readonly #slots = new PolicySlots();
  readonly #successes = new Map<string, number>();
  readonly #notes = new Map<string, TroubleNote>();
  readonly #pods = new Map<string, { readonly metrics: Metrics; readonly startedMinute: number }>();
  #wasRedisGone = false;
  #stuckSince: number | undefined;

  constructor(names: ReadonlySet<string>) {
    this.#names = names;
  }

  /** What all pods show at a minute, after what came due until then. */
  async scrape(minute: number, now: Conditions): Promise<[string, number][]> {
    this.#pass(minute, now);
    for (const name of this.#pods.keys()) if (!now.pods.includes(name)) this.#pods.delete(name);
    const isBack = this.#wasRedisGone && now.redis === "well";
    this.#wasRedisGone = now.redis === "gone";
    const lines: [string, number][] = [];
    for (const name of now.pods) {
      const metrics = this.#pods.get(name)?.metrics ?? this.#startPod(name, minute);
      if (isBack) metrics.add("syncline_redis_changes_total", {});
      this.#set(metrics, minute, now, name === now.pods[0]);
      lines.push(...(await this.#lines(metrics, name)));
    }
    return lines;
  }

  #startPod(name: string, minute: number): Metrics {
    const metrics = new Metrics();
    metrics.takeIn("service", services);
    metrics.takeIn("sink", ["ops"]);
    this.#pods.set(name, { metrics, startedMinute: minute });
    return metrics;
  }

  /**
   * Plans and works; as pessimistic as can be, every task of a service that is down ends badly at
   * once.
   */
  #pass(minute: number, { pods, roles, redis, main, failing, conflicts, byHand }: Conditions): void {
    for (const name of byHand) this.#notes.delete(`failing/${name}`);
    const isUp = pods.length > 0 && redis === "well";
    for (const one of this.#policies) {
      const { name, service } = one.policy;
      if (minute % one.everyMinutes === one.atMinute) Object.assign(one, { dueMinute: minute, isPlanned: false });
      if (one.dueMinute === undefined) continue;
      const lateMinutes = minute - one.dueMinute;
      if (isUp && roles.includes("scheduler") && !one.isPlanned) {
        one.isPlanned = true;
        // A tenth of the policies has `catchUp: none`.
        if (one.isNever && lateMinutes > 0) this.#end(one, "missed", minute);
      }
      const state = service === "main" ? main : "well";
      if (one.dueMinute === undefined || !one.isPlanned || !isUp || !roles.includes("worker")) continue;
      if (lateMinutes > 60) this.#end(one, "missed", minute);
      else if (state === "throttles") continue;
      else if (state !== "well" || failing.includes(name)) {
        this.#end(one, "failing", minute);
        if (state === "down" && one.isNever) this.#note(name, "unknown", minute);
      } else {
        this.#end(one, conflicts.includes(name) ? "conflicts" : undefined, minute);
        this.#successes.set(name, minute * minuteMs);
        this.#notes.delete(`failing/${name}`);
        if (!conflicts.includes(name)) this.#notes.delete(`conflicts/${name}`);
      }
    }
  }

  #end(one: Modelled, trouble: NotedTrouble | undefined, minute: number): void {
    one.dueMinute = undefined;
    if (trouble !== undefined) this.#note(one.policy.name, trouble, minute);
  }

  #note(policy: string, trouble: NotedTrouble, minute: number): void {
    this.#notes.set(`${trouble}/${policy}`, { trouble, policy, atMs: minute * minuteMs });
  }

  #set(metrics: Metrics, minute: number, now: Conditions, isFirst: boolean): void {
    const isRedisWell = now.redis === "well";
    const seconds = minute * 60;
    for (const name of ["syncline_redis_up", "syncline_redis_safe"] as const)
      metrics.set(name, {}, isRedisWell ? 1 : 0);
    metrics.set("syncline_config_last_reload_successful", {}, now.isRejected ? 0 : 1);
    for (const role of ["scheduler", "worker"] as const)
      if (isRedisWell && now.roles.includes(role))
        metrics.set("syncline_heartbeat_timestamp_seconds", { role }, seconds);
    this.#clearShared(metrics);
    if (isRedisWell && !now.isSlow) this.#setShared(metrics, minute, now);
    if (!isFirst || !isRedisWell) return;
    if (now.main === "throttles" && minute % 2 === 0) metrics.add("syncline_throttles_total", { service: "main" });
    if (now.main === "denied") {
      const labels = { service: "main", operation: "RunSyncJob", requestOutcome: "unauthorized" };
      metrics.add("syncline_http_requests_total", labels, 2);
    }
  }

  #clearShared(metrics: Metrics): void {
    for (const name of [
      "syncline_policies_in_trouble",
      "syncline_policy_trouble_timestamp_seconds",
      "syncline_breaker_open",
      "syncline_throttled_until_timestamp_seconds",
      "syncline_queue_oldest_timestamp_seconds",
      "syncline_queue_tasks",
      "syncline_sink_oldest_timestamp_seconds",
      "syncline_sink_queue",
    ] as const)
      metrics.clear(name);
  }

  #setShared(metrics: Metrics, minute: number, { main, roles, isSinkStuck }: Conditions): void {
    const nowMs = minute * minuteMs;
    const policies = this.#policies.map(({ policy }) => policy);
    const notes = [...this.#notes.values()].sort((a, b) => a.atMs - b.atMs);
    const keptSince = new Map(policies.map(({ name }) => [name, 0]));
    const instants = { successes: this.#successes, keptSince, begun: new Map() };
    const facts = { nowMs, ...instants, pauses: [], notes, late: new Map() };
    setTroubles(metrics, services, findTroubles(policies, facts, this.#slots));
    const cause = main === "down" ? "server" : main === "denied" ? "unauthorized" : "none";
    metrics.set("syncline_breaker_open", { service: "main", breakerCause: cause }, cause === "none" ? 0 : 1);
    metrics.set("syncline_breaker_open", { service: "other", breakerCause: "none" }, 0);
    if (main === "throttles")
      metrics.set("syncline_throttled_until_timestamp_seconds", { service: "main" }, minute * 60 + 30);
    const waiting = this.#policies.flatMap(({ dueMinute }) => dueMinute ?? []);
    const queue = { service: "main", queue: "actions" } as const;
    const count = roles.includes("worker") ? 0 : waiting.length;
    metrics.set("syncline_queue_tasks", { ...queue, state: "waiting" }, count);
    if (count > 0) metrics.set("syncline_queue_oldest_timestamp_seconds", queue, Math.min(...waiting) * 60);
    metrics.set("syncline_sink_queue", { sink: "ops" }, isSinkStuck ? 1 : 0);
    if (isSinkStuck) {
      this.#stuckSince ??= minute;
      metrics.set("syncline_sink_oldest_timestamp_seconds", { sink: "ops" }, this.#stuckSince * 60);
    }
  }

  async #lines(metrics: Metrics, name: string): Promise<[string, number][]> {
    const { startedMinute } = this.#pods.get(name) ?? { startedMinute: 0 };
    const labels = { pod: name, instance: `${name}:9464` };
    const { text } = await metrics.scrape();
    const nameOf = (line: string) => /^(?:# \w+ )?(\w+)/.exec(line)?.[1] ?? "";
    const asked = text.split("\n").filter((line) => this.#names.has(nameOf(line).replace(/_(bucket|sum|count)$/, "")));
    // The process of this test is older than the pod.
    const told = parseMetrics(`${asked.join("\n")}\n`).filter((sample) => sample.name !== startedAt);
    const start = { name: startedAt, labels: {}, value: startedMinute * 60 };
    return [...told, start].map((sample) => [toSeries(sample.name, { ...sample.labels, ...labels }), sample.value]);
  }
}

function toSeries(name: string, labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  return `${name}{${pairs.join(",")}}`;
}
