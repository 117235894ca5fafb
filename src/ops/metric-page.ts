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

Made by \`syncline schema --metrics\`. \`syncline serve --health-port\` shows them under \`/metrics\`, for Prometheus. What the alerts make of them: [runbooks](../runbooks/README.md).

- Base units: seconds, counts. Instants are seconds since 1970. Counters begin at 0 with the process.
- Each replica reports its own: add up, or look at each. What is **shared** comes from Redis, and every replica reports the same: take \`max by (…)\`.
- The first ${namesMax.policy} policies, ${namesMax.service} services and ${namesMax.sink} sinks have series of their own. The others share \`${otherValue}\` in counters and have no gauges; \`syncline_policies_in_trouble\` counts all policies. A removed name keeps its place until the process ends.
- A replica asks Redis once in 5 s at most, and a scrape waits 2 s for it at most. Without Redis the shared gauges are absent and \`syncline_redis_up\` is 0. A gauge without a value is absent: no schedule, no pause, nothing that waits.
- prom-client adds Node's own, such as \`syncline_process_resident_memory_bytes\` and \`syncline_nodejs_eventloop_lag_p99_seconds\`.
- No metric holds an id, a message, a URL or a secret.

| metric | type | labels | what it says |
|---|---|---|---|
`;

/** The page as Markdown. */
export function metricReference(): string {
  const rows = Object.entries<MetricFacts>(metricTable).map(
    ([name, { type, labels, scope, help }]) =>
      `| \`${name}\` | ${scope === "shared" ? `${type}, shared` : type} | ${labels.map((label) => `\`${shownLabel(label)}\``).join(", ")} | ${help} |`,
  );
  return `${head}${rows.join("\n")}\n${labelsOf()}`;
}

function labelsOf(): string {
  const all = [...new Set(Object.values<MetricFacts>(metricTable).flatMap(({ labels }) => labels))];
  const used = all.filter((label) => !isNameLabel(label)).filter((label) => label !== "version" && label !== "node");
  const rows = used.map((label) => {
    const isPlain = all.filter((other) => shownLabel(other) === shownLabel(label)).length === 1;
    const metrics = Object.entries<MetricFacts>(metricTable).filter(([, { labels }]) => labels.includes(label));
    const of = isPlain ? "" : metrics.map(([name]) => `\`${name}\``).join(", ");
    return `| \`${shownLabel(label)}\` | ${of} | ${valuesOf(label)} |`;
  });
  return `\n## Labels\n\n| label | of | values |\n|---|---|---|\n${rows.join("\n")}\n`;
}

function valuesOf(label: Exclude<LabelName, keyof typeof namesMax>): string {
  if (label === "worstPolicy") return `${worstPoliciesMax} names at most for each service and trouble`;
  if (label === "owner") return "`owner` of the policy; empty: none";
  if (label === "labels") return "its labels, sorted: `stage=prod,team=hr`";
  if (label === "operation") return "the operations of the [interface](../service-interface.md#41-summary)";
  const values: readonly string[] = closedLabels[label];
  return values.join(", ");
}
