import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { version } from "../../../src/core/version.ts";
import { countedEvents, createMeteredLog, createRequestCounter } from "../../../src/ops/metered-log.ts";
import {
  closedLabels,
  isNameLabel,
  isOpenLabel,
  type LabelName,
  namesMax,
  worstPoliciesMax,
} from "../../../src/ops/metric-labels.ts";
import { type MetricFacts, metricReference, metricTable } from "../../../src/ops/metric-table.ts";
import { type GaugeSource, Metrics } from "../../../src/ops/metrics.ts";
import { parseMetrics, type Sample, sumOf } from "../../support/metrics-text.ts";
import { TestLog } from "../../support/test-log.ts";

const root = join(import.meta.dirname, "../../..");
const read = (name: string) => readFileSync(join(root, name), "utf8");
const rows = Object.entries<MetricFacts>(metricTable);
const scrape = async (metrics: Metrics): Promise<Sample[]> => parseMetrics((await metrics.scrape()).text);

describe("the table of metrics", () => {
  it.each(rows)(
    "%s is named and described as Prometheus wants it, and bounded",
    (name, { type, help, labels, buckets }) => {
      expect(name).toMatch(/^syncline_[a-z_]+$/);
      expect(name.endsWith("_total")).toBe(type === "counter");
      if (type === "histogram") expect(name).toMatch(/_seconds$/);
      expect(buckets !== undefined).toBe(type === "histogram");
      expect(help).toMatch(/\.$/);
      // Names count as two of themselves: policies × services would be no bound at all.
      expect(labels.filter(isNameLabel).length).toBeLessThanOrEqual(1);
      const valuesOf = (label: LabelName) =>
        label === "worstPolicy"
          ? worstPoliciesMax
          : isNameLabel(label) || isOpenLabel(label)
            ? 1
            : closedLabels[label].length;
      const perName = labels.reduce((count, label) => count * valuesOf(label), 1);
      const names = labels.includes("policy") ? namesMax.policy : labels.includes("service") ? namesMax.service : 1;
      expect(names * perName * ((buckets?.length ?? 0) + 1)).toBeLessThanOrEqual(20_000);
    },
  );

  it("is what docs/reference/metrics.md says", () => {
    expect(
      read("docs/reference/metrics.md"),
      "run: npm run -s syncline schema -- --metrics > docs/reference/metrics.md",
    ).toBe(metricReference());
  });

  it("knows the version of package.json", () => {
    expect(version).toBe(JSON.parse(read("package.json")).version);
  });
});

describe("the metrics", () => {
  it("let no label value through that is not in the lists", async () => {
    const metrics = new Metrics();
    metrics.takeIn("policy", ["nightly"]);
    metrics.add("syncline_tasks_total", { policy: "nightly", status: "failed" });
    metrics.add("syncline_tasks_total", { policy: 'x"} 1\nevil', status: "https://a/?token=b" });
    const samples = (await scrape(metrics)).filter(({ name, value }) => name === "syncline_tasks_total" && value > 0);
    expect(samples.map(({ labels }) => labels)).toEqual([
      { policy: "nightly", status: "failed" },
      { policy: "other", status: "other" },
    ]);
  });

  it("give the first 1,000 policies series of their own and count the others as other", async () => {
    const metrics = new Metrics();
    metrics.takeIn(
      "policy",
      Array.from({ length: 1_200 }, (_, index) => `p${index}`),
    );
    for (const policy of ["p0", "p999", "p1000", "p1199"])
      metrics.add("syncline_slots_total", { policy, slotOutcome: "missed" });
    const samples = (await scrape(metrics)).filter(({ name, value }) => name === "syncline_slots_total" && value > 0);
    expect(samples.map(({ labels, value }) => [labels["policy"], value])).toEqual([
      ["p0", 1],
      ["p999", 1],
      ["other", 2],
    ]);
  });

  it("begin at 0 for those without series of their own, too", async () => {
    const metrics = new Metrics();
    metrics.takeIn("sink", ["a"]);
    expect(sumOf(await scrape(metrics), "syncline_sink_dropped_total", { sink: "other" })).toBeUndefined();
    metrics.takeIn(
      "sink",
      Array.from({ length: 51 }, (_, index) => `s${index}`),
    );
    expect(sumOf(await scrape(metrics), "syncline_sink_dropped_total", { sink: "other" })).toBe(0);
  });

  it("begin at 0 for a new policy, and show no gauge of which nothing is known", async () => {
    const metrics = new Metrics();
    metrics.takeIn("policy", ["nightly"]);
    const samples = await scrape(metrics);
    expect(sumOf(samples, "syncline_slots_total", { policy: "nightly", outcome: "missed" })).toBe(0);
    expect(sumOf(samples, "syncline_bugs_total")).toBe(0);
    expect(sumOf(samples, "syncline_redis_up")).toBeUndefined();
    expect(sumOf(samples, "syncline_build_info", { version })).toBe(1);
    expect(sumOf(samples, "syncline_nodejs_eventloop_lag_p99_seconds")).toBeDefined();
  });

  it("ask Redis once for scrapes that come close together", async () => {
    let readings = 0;
    const metrics = new Metrics({ readEveryMs: 60_000 });
    metrics.readFrom({
      own: () => {},
      tellGap: () => {},
      readShared: async () => {
        readings += 1;
        return () => {};
      },
    });
    await Promise.all([metrics.scrape(), metrics.scrape()]);
    await metrics.scrape();
    expect(readings).toBe(1);
  });

  it("omit shared values when Redis does not answer, and show them when it does", async () => {
    const metrics = new Metrics({ readEveryMs: 0, readWithinMs: 50, shownForMs: 0 });
    metrics.takeIn("service", ["main"]);
    const apply = () => metrics.set("syncline_breaker_open", { service: "main", breakerCause: "server" }, 1);
    const answers: GaugeSource["readShared"][] = [
      async () => apply,
      async () => Promise.reject(new Error("Connection is closed.")),
      async () => apply,
      () => new Promise(() => {}),
    ];
    const gaps: unknown[] = [];
    metrics.readFrom({
      own: () => metrics.set("syncline_redis_up", {}, 1),
      readShared: () => answers.shift()?.() ?? Promise.reject(new Error("no more")),
      tellGap: (error) => gaps.push(error),
    });
    const seen = [];
    for (let round = 0; round < 4; round += 1) {
      const samples = await scrape(metrics);
      seen.push([sumOf(samples, "syncline_breaker_open"), sumOf(samples, "syncline_shared_metrics_up")]);
    }
    expect(seen).toEqual([
      [1, 1],
      [undefined, 0],
      [1, 1],
      [undefined, 0],
    ]);
    expect(gaps.map(String)).toEqual(["Error: Connection is closed.", "Error: no answer within 50 ms"]);
    expect(sumOf(await scrape(metrics), "syncline_redis_up")).toBe(1);
  });

  it("show an answer that came late, also while Redis is slow again", async () => {
    const metrics = new Metrics({ readEveryMs: 0, readWithinMs: 50 });
    metrics.takeIn("service", ["main"]);
    const late = Promise.withResolvers<() => void>();
    const answers = [late.promise];
    const never = new Promise<() => void>(() => {});
    metrics.readFrom({ own: () => {}, readShared: () => answers.shift() ?? never, tellGap: () => {} });
    const shown = async () => sumOf(await scrape(metrics), "syncline_breaker_open");
    expect(await shown()).toBeUndefined();
    late.resolve(() => metrics.set("syncline_breaker_open", { service: "main", breakerCause: "server" }, 1));
    expect([await shown(), await shown()]).toEqual([1, 1]);
  });
});

describe("the metered log", () => {
  const counted = async (event: string, fields: Parameters<TestLog["info"]>[1]) => {
    const metrics = new Metrics();
    metrics.takeIn("policy", ["nightly"]);
    metrics.takeIn("service", ["main"]);
    const log = new TestLog();
    createMeteredLog(log, metrics).warn(event, fields);
    expect(log.events).toEqual([{ ...fields, event, level: "warn" }]);
    return scrape(metrics);
  };

  it("counts what it passes on", async () => {
    const slot = await counted("slot.queued", { policy: "nightly", delayMs: 400, covers: 0 });
    expect(sumOf(slot, "syncline_slots_total", { policy: "nightly", outcome: "started" })).toBe(1);
    expect(sumOf(slot, "syncline_slot_delay_seconds_sum")).toBe(0.4);
    const follower = await counted("slot.queued", { policy: "nightly", delayMs: 900_000, after: "first" });
    expect(sumOf(follower, "syncline_slot_delay_seconds_count")).toBe(0);
    const task = await counted("task.finished", {
      policy: "nightly",
      kind: "run",
      status: "conflicts",
      newConflicts: 3,
      startedAt: "2026-11-21T07:00:00.000Z",
      durationMs: 61_000,
    });
    expect(sumOf(task, "syncline_tasks_total", { policy: "nightly", status: "conflicts" })).toBe(1);
    expect(sumOf(task, "syncline_new_conflicts_total", { policy: "nightly" })).toBe(3);
    expect(sumOf(task, "syncline_settle_duration_seconds_bucket", { kind: "run", le: "60" })).toBe(0);
    expect(sumOf(task, "syncline_settle_duration_seconds_bucket", { kind: "run", le: "300" })).toBe(1);
    const unusual = { policy: "nightly", kind: "run", status: "succeeded", unusual: ["duration"] };
    const ended = async (more = {}) =>
      sumOf(await counted("task.finished", { ...unusual, ...more }), "syncline_unusual_runs_total");
    expect([await ended(), await ended({ toldLong: true }), await ended({ unusual: undefined })]).toEqual([1, 0, 0]);
    expect(sumOf(await counted("run.long", { policy: "nightly" }), "syncline_unusual_runs_total")).toBe(1);
    const link = await counted("link.refused", { service: "main", operation: "GetApprovals", leftOut: 4 });
    expect(sumOf(link, "syncline_links_total", { service: "main", outcome: "refused" })).toBe(5);
    const again = await counted("list.read-again", { service: "main", reader: "walk", result: "other" });
    const labels = { service: "main", reader: "walk", result: "other" };
    expect(sumOf(again, "syncline_lists_read_again_total", labels)).toBe(1);
    const lagging = await counted("redis.not-replicated", { leftOut: 4 });
    expect(sumOf(lagging, "syncline_redis_unreplicated_total")).toBe(5);
    const renewal = await counted("token.renewal-failed", { service: "main", leftOut: 4 });
    expect(sumOf(renewal, "syncline_token_renewals_total", { service: "main", outcome: "failed" })).toBe(5);
    const rejected = await counted("config.rejected", { problems: 1 });
    expect(sumOf(rejected, "syncline_config_last_reload_successful")).toBe(0);
  });

  it.each(["coalesced", "missed", "skipped"])("counts a slot that is %s as that and nothing else", async (outcome) => {
    const samples = await counted(`slot.${outcome}`, { policy: "nightly", reason: "paused" });
    expect(sumOf(samples, "syncline_slots_total", { policy: "nightly", outcome })).toBe(1);
    expect(sumOf(samples, "syncline_slots_total")).toBe(1);
  });

  it.each([
    ["run", "answer-lost", 1],
    ["run", "no-evidence", 0],
    ["run", "cancelled", 0],
    ["delete", "server-error", 1],
    ["apply", "answer-lost", 0],
    ["poll", "expectation-unreadable", 0],
  ])("counts as unknown starts those whose effect is not known: %s, %s", async (kind, reason, count) => {
    const samples = await counted("task.finished", { policy: "nightly", kind, status: "unknown", reason });
    expect(sumOf(samples, "syncline_unknown_starts_total", { policy: "nightly" })).toBe(count);
  });

  it("counts only events that there are", () => {
    const known = [...read("docs/log-events.md").matchAll(/`([a-z]+\.[a-z-]+)`/g)].map(([, event]) => event);
    expect(Object.keys(countedEvents).filter((event) => !known.includes(event))).toEqual([]);
  });
});

describe("the counter of calls", () => {
  it.each([
    ["RunSyncJob", { kind: undefined, sent: undefined, status: 200, tries: 1 }, "accepted"],
    ["RunSyncJob", { kind: "unauthorized", sent: "maybe", status: 401, tries: 2 }, "refused"],
    ["EnableSyncJobById", { kind: "server", sent: "maybe", status: 500, tries: 1 }, "failed"],
    ["RunSyncJob", { kind: "answer-lost", sent: "maybe", status: undefined, tries: 1 }, "unknown"],
    ["RunSyncJob", { kind: "throttled", sent: "no", status: undefined, tries: 0 }, "not-sent"],
    ["RunSyncJob", { kind: "cancelled", sent: "no", status: undefined, tries: 1 }, "not-sent"],
    ["RunSyncJob", { kind: "cancelled", sent: "maybe", status: undefined, tries: 1 }, "unknown"],
    ["DeleteSyncJobById", { kind: undefined, sent: undefined, status: 200, tries: 1 }, "accepted"],
    ["DeleteSyncJobById", { kind: "not-found", sent: "maybe", status: 404, tries: 1 }, "refused"],
    ["DeleteSyncJobById", { kind: "throttled", sent: "maybe", status: 503, tries: 1 }, "failed"],
  ] as const)("calls a start, %s with %j, %s", async (operation, event, outcome) => {
    const metrics = new Metrics();
    metrics.takeIn("service", ["main"]);
    createRequestCounter(metrics, "main")?.({ operation, method: "POST", durationMs: 120, ...event });
    const samples = await scrape(metrics);
    expect(sumOf(samples, "syncline_starts_total", { service: "main", outcome })).toBe(1);
    expect(sumOf(samples, "syncline_starts_total")).toBe(1);
    expect(sumOf(samples, "syncline_http_requests_total", { outcome: event.kind ?? "ok" })).toBe(1);
    expect(sumOf(samples, "syncline_start_duration_seconds_count") ?? 0).toBe(outcome === "not-sent" ? 0 : 1);
  });
});
