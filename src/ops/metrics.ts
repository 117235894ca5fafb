// The metrics of one process, the single door to prom-client. It registers metric-table.ts and
// nothing else. `add`, `observe` and `set` replace label values outside the lists, and never throw
// at their callers.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { systemClock, withTimeLimit } from "../core/clock.ts";
import {
  closedLabels,
  isNameLabel,
  isOpenLabel,
  type LabelName,
  namesMax,
  otherValue,
  shownLabel,
} from "./metric-labels.ts";
import { type LabelsOf, type MetricFacts, type MetricName, metricTable, type NameOf } from "./metric-table.ts";

/** Where the gauges are read from at a scrape. */
export interface GaugeSource {
  /** Sets what this process knows by itself. */
  own(): void;
  /** Reads from Redis, changes nothing, and returns a function that sets the gauges all at once. */
  readShared(): Promise<() => void>;
  /** Hears why a scrape goes without the shared gauges. */
  tellGap(error: unknown): void;
}

/** The names in a policy set that get series of their own. */
interface NamedSet {
  readonly services: ReadonlyMap<string, unknown>;
  readonly sinks: ReadonlyMap<string, unknown>;
  readonly policies: readonly { readonly name: string }[];
}

/** How long a scrape waits. */
export interface ScrapePatience {
  /** The shortest time between two reads of Redis. */
  readonly readEveryMs: number;
  /** A scrape waits this long for Redis, then shows the last answer. */
  readonly readWithinMs: number;
  /** While Redis is slow, its last answer is shown for so long. */
  readonly shownForMs: number;
}

const defaultPatience: ScrapePatience = { readEveryMs: 5_000, readWithinMs: 2_000, shownForMs: 60_000 };

/** Counters with few series start at 0: an alert on their first rise needs the 0. */
const bornSeriesMax = 10;

/** An idle event loop shows so much lag. The library's 10 ms take half a percent of a core. */
const lagMeasuredEveryMs = 50;

/** Gauges that the library names like counters; others report the same by kind. */
const misnamed = ["handles", "requests", "resources"].map((kind) => `syncline_nodejs_active_${kind}_total`);

/** The metrics of one process. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #counters = new Map<string, Counter>();
  readonly #gauges = new Map<string, Gauge>();
  readonly #histograms = new Map<string, Histogram>();
  readonly #names = { policy: new Set<string>(), service: new Set<string>(), sink: new Set<string>() };
  readonly #patience: ScrapePatience;
  #source: GaugeSource | undefined;
  #reading: Promise<void> | undefined;
  #readAtMs = Number.NEGATIVE_INFINITY;

  constructor(patience: Partial<ScrapePatience> = {}) {
    this.#patience = { ...defaultPatience, ...patience };
    for (const [name, facts] of tableRows) this.#register(name, facts);
    const unnamed = tableRows.filter(([, { labels }]) => !labels.some(isNameLabel));
    this.#bear(unnamed, {});
    const eventLoopMonitoringPrecision = lagMeasuredEveryMs;
    collectDefaultMetrics({ register: this.#registry, prefix: "syncline_", eventLoopMonitoringPrecision });
    for (const name of misnamed) this.#registry.removeSingleMetric(name);
    this.set("syncline_build_info", { version: closedLabels.version[0], node: closedLabels.node[0] }, 1);
  }

  /** The text and content type of a scrape. Never fails or waits longer than `readWithinMs`. */
  async scrape(): Promise<{ readonly text: string; readonly contentType: string }> {
    try {
      this.#source?.own();
      await this.#readShared();
    } catch (error) {
      // A failing source leaves a gap; it does not fail the scrape.
      this.#forgetShared();
      this.#source?.tellGap(error);
    }
    const isShown = Number.isFinite(this.#readAtMs);
    if (this.#source !== undefined) this.set("syncline_shared_metrics_up", {}, isShown ? 1 : 0);
    return { text: await this.#registry.metrics(), contentType: this.#registry.contentType };
  }

  /** Sets the source of the gauges. */
  readFrom(source: GaugeSource): void {
    this.#source = source;
  }

  /** Gives all names of a set series of their own. */
  takeInSet({ services, sinks, policies }: NamedSet): void {
    this.takeIn("service", services.keys());
    this.takeIn("sink", sinks.keys());
    const names = policies.map(({ name }) => name);
    this.takeIn("policy", names);
  }

  /** Gives names series of their own, first come first served, as far as there is room. */
  takeIn(label: keyof typeof namesMax, names: Iterable<string>): void {
    const rows = tableRows.filter(([, { labels }]) => labels.includes(label));
    const known = this.#names[label];
    for (const name of new Set(names).difference(known)) {
      // All names without room share one series.
      const isFull = known.size >= namesMax[label];
      this.#bear(rows, { [label]: isFull ? otherValue : name });
      if (isFull) return;
      known.add(name);
    }
  }

  /** Whether a name has series of its own. */
  knows(label: keyof typeof namesMax, name: string): boolean {
    return this.#names[label].has(name);
  }

  /** Raises a counter. */
  add<Name extends NameOf<"counter">>(name: Name, labels: LabelsOf<Name>, by = 1): void {
    if (by > 0) this.#counters.get(name)?.inc(this.#safe(labels), by);
  }

  /** Adds a duration to a histogram, in seconds. */
  observe<Name extends NameOf<"histogram">>(name: Name, labels: LabelsOf<Name>, seconds: number): void {
    if (Number.isFinite(seconds)) this.#histograms.get(name)?.observe(this.#safe(labels), Math.max(0, seconds));
  }

  /** Sets a gauge. */
  set<Name extends NameOf<"gauge">>(name: Name, labels: LabelsOf<Name>, value: number): void {
    if (Number.isFinite(value)) this.#gauges.get(name)?.set(this.#safe(labels), value);
  }

  /** Notes that a role does its work right now. */
  markAlive(role: (typeof closedLabels.role)[number]): void {
    this.set("syncline_heartbeat_timestamp_seconds", { role }, systemClock.nowMs() / 1_000);
  }

  /** Removes a gauge's series: the value is not known any more. */
  clear(name: NameOf<"gauge">): void {
    const gauge = this.#gauges.get(name);
    gauge?.reset();
    // The library reports 0 for a gauge without labels that was never set.
    if (metricTable[name].labels.length === 0) gauge?.remove();
  }

  #register(name: string, { type, help, labels, buckets }: MetricFacts): void {
    const config = { name, help, labelNames: labels.map(shownLabel), registers: [this.#registry] };
    if (type === "counter") this.#counters.set(name, new Counter(config));
    else if (type === "histogram")
      this.#histograms.set(name, new Histogram({ ...config, buckets: [...(buckets ?? [])] }));
    else {
      const gauge = new Gauge(config);
      this.#gauges.set(name, gauge);
      if (labels.length === 0) gauge.remove();
    }
  }

  /** Starts counters at 0 under these names. */
  #bear(rows: readonly (readonly [string, MetricFacts])[], names: Readonly<Record<string, string>>): void {
    for (const [name, { labels }] of rows) {
      const combinations = combine(labels.filter((label) => !isNameLabel(label)));
      if (combinations.length > bornSeriesMax) continue;
      for (const combination of combinations) this.#counters.get(name)?.inc({ ...names, ...combination }, 0);
    }
  }

  async #readShared(): Promise<void> {
    const { readEveryMs, readWithinMs, shownForMs } = this.#patience;
    const isYoung = (ageMs: number) => systemClock.monotonicMs() - this.#readAtMs < ageMs;
    if (this.#source === undefined || isYoung(readEveryMs)) return;
    this.#reading ??= this.#takeShared(this.#source).finally(() => {
      this.#reading = undefined;
    });
    const slow = new Error(`no answer within ${readWithinMs} ms`);
    await withTimeLimit(this.#reading, readWithinMs, () => slow).catch((error: unknown) => {
      // What comes late serves the next scrape.
      if (error !== slow || !isYoung(shownForMs)) throw error;
    });
  }

  async #takeShared(source: GaugeSource): Promise<void> {
    const apply = await source.readShared();
    this.#forgetShared();
    apply();
    this.#readAtMs = systemClock.monotonicMs();
  }

  #forgetShared(): void {
    this.#readAtMs = Number.NEGATIVE_INFINITY;
    for (const name of sharedGauges) this.clear(name);
  }

  #safe(labels: Readonly<Record<string, string>>): Record<string, string> {
    const safe: Record<string, string> = {};
    for (const [label, value] of Object.entries(labels)) {
      if (isLabel(label)) safe[shownLabel(label)] = this.#isKnown(label, value) ? value : otherValue;
    }
    return safe;
  }

  #isKnown(label: LabelName, value: string): boolean {
    if (isNameLabel(label)) return this.#names[label].has(value);
    if (isOpenLabel(label)) return value !== "" || label !== "worstPolicy";
    const values: readonly string[] = closedLabels[label];
    return values.includes(value);
  }
}

const tableRows = Object.entries<MetricFacts>(metricTable) as [MetricName, MetricFacts][];

const sharedGauges = tableRows.flatMap(([name, { type, scope }]) =>
  type === "gauge" && scope === "shared" ? [name as NameOf<"gauge">] : [],
);

function isLabel(label: string): label is LabelName {
  return label in closedLabels || label in namesMax || isOpenLabel(label);
}

/** Every combination of the values of these labels. */
function combine(labels: readonly LabelName[]): Record<string, string>[] {
  let combinations: Record<string, string>[] = [{}];
  for (const label of labels) {
    const values: readonly string[] = isNameLabel(label) || isOpenLabel(label) ? [] : closedLabels[label];
    combinations = combinations.flatMap((before) => values.map((value) => ({ ...before, [shownLabel(label)]: value })));
  }
  return combinations;
}
