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

Made by \`syncline schema --metrics\`. \`serve --health-port\` answers them under \`/metrics\`; alerts: [runbooks](../runbooks/README.md).

- Seconds and counts; instants are seconds since 1970. Counters begin at 0 with the process.
- Each replica reports its own: add up. What is **shared** comes from Redis, the same from every replica: take \`max by (…)\`. Without Redis these are absent and \`syncline_redis_up\` is 0; a gauge is also absent where there is nothing to tell (no schedule, no pause).
- The first ${namesMax.policy} policies, ${namesMax.service} services and ${namesMax.sink} sinks have series of their own until the process ends. The others share \`${otherValue}\` in counters and have no gauges; \`syncline_policies_in_trouble\` counts all policies.
- A replica asks Redis once in 5 s at most, and a scrape waits 2 s for it.
- prom-client adds Node's own, such as \`syncline_process_resident_memory_bytes\` and \`syncline_nodejs_eventloop_lag_p99_seconds\`.

| metric{labels} | type | what it says |
|---|---|---|
`;

/** The page as Markdown. */
export function metricReference(): string {
  const rows = Object.entries<MetricFacts>(metricTable).map(
    ([name, { type, labels, scope, help }]) =>
      `| \`${name}${labels.length > 0 ? `{${labels.map(shownLabel).join(", ")}}` : ""}\` | ${scope === "shared" ? `${type}, shared` : type} | ${help} |`,
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
  if (label === "breakerCause") return "none, or a failure as in `outcome` of calls";
  const values: readonly string[] = closedLabels[label];
  return values.join(", ");
}
