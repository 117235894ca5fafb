// Renders the reference page of the metrics, docs/reference/metrics.md, from the table. Printed by
// `syncline schema --metrics`.
import {
  closedLabels,
  isNameLabel,
  type LabelName,
  namesMax,
  otherValue,
  shownLabel,
  worstPoliciesMax,
} from "./metric-labels.ts";
import { type MetricFacts, metricTable } from "./metric-table.ts";

const head = `# Metrics

Made from the table in the code by \`syncline schema --metrics\`; a test keeps this page from going stale. \`syncline serve --health-port\` shows all of it under \`/metrics\`, in the text format of Prometheus.

- Base units (seconds, counts); instants are seconds since 1970, to be taken from \`time()\`. Counters end in \`_total\` and begin at 0 with the process.
- **process**: each replica tells its own; add up, or look at each. **shared**: every replica tells the same, read from Redis; take \`max by (…)\`.
- Labels have closed lists of values, shown below; the first ${namesMax.policy} policies, ${namesMax.service} services and ${namesMax.sink} sinks have series of their own, the others share the value \`${otherValue}\` in counters and have no gauges. What goes wrong with any policy is told whatever their number: \`syncline_policies_in_trouble\` counts all of them. A name that is gone keeps its place until the process ends.
- Redis is asked once in 5 s at most, and a scrape waits 2 s for it at most: without Redis the shared gauges are absent and \`syncline_redis_up\` is 0.
- Besides these there is what Node tells of its process, as prom-client names it, after \`syncline_\`: \`syncline_process_cpu_seconds_total\`, \`syncline_process_resident_memory_bytes\`, \`syncline_nodejs_eventloop_lag_p99_seconds\`, \`syncline_nodejs_heap_size_used_bytes\` and the like.
- No metric holds an id, a message, a URL or a secret.

What the alerts make of them: [runbooks](../runbooks/README.md).

| metric | type | labels | of | what it says |
|---|---|---|---|---|
`;

/** The page as Markdown. */
export function metricReference(): string {
  const rows = Object.entries<MetricFacts>(metricTable).map(
    ([name, { type, labels, scope, help }]) =>
      `| \`${name}\` | ${type} | ${labels.map((label) => `\`${shownLabel(label)}\``).join(", ")} | ${scope} | ${help} |`,
  );
  return `${head}${rows.join("\n")}\n${bucketsOf()}${labelsOf()}`;
}

function bucketsOf(): string {
  const rows = Object.entries<MetricFacts>(metricTable).flatMap(([name, { buckets }]) =>
    buckets === undefined ? [] : [`| \`${name}\` | ${buckets.join(", ")} |`],
  );
  return `\n## Buckets\n\n| histogram | upper bounds, in seconds |\n|---|---|\n${rows.join("\n")}\n`;
}

function labelsOf(): string {
  const used = new Set(Object.values<MetricFacts>(metricTable).flatMap(({ labels }) => labels));
  const rows = [...used].map((label) => {
    const metrics = Object.entries<MetricFacts>(metricTable).filter(([, { labels }]) => labels.includes(label));
    const of = isNameLabel(label) ? "" : metrics.map(([name]) => `\`${name}\``).join(", ");
    return `| \`${shownLabel(label)}\` | ${of} | ${valuesOf(label)} |`;
  });
  return `\n## Labels\n\n| label | of | values |\n|---|---|---|\n${rows.join("\n")}\n`;
}

function valuesOf(label: LabelName): string {
  if (isNameLabel(label)) return `names of the policy files, ${namesMax[label]} at most, and \`${otherValue}\``;
  if (label === "worstPolicy")
    return `names of the policy files, ${worstPoliciesMax} at most for each service and trouble`;
  if (label === "version" || label === "node") return "one: that of the build";
  const values: readonly string[] = closedLabels[label];
  return values.map((value) => `\`${value}\``).join(", ");
}
