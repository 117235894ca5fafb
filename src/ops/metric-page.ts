// Renders the reference page of the metrics, docs/reference/metrics.md, from the table. Printed by
// `syncline schema --metrics`.
import {
  closedLabels,
  isNameLabel,
  isOpenLabel,
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
- Each replica reports its own: add up. What is (shared) comes from Redis, the same from every replica: take \`max by (…)\`. Without Redis these are absent and \`syncline_redis_up\` is 0; a gauge is also absent where there is nothing to tell (no schedule, no pause).
- The first ${namesMax.policy} policies, ${namesMax.service} services and ${namesMax.sink} sinks have series of their own until the process ends. The others share \`${otherValue}\` in counters and have no gauges; \`syncline_policies_in_trouble\` counts all policies.
- A replica asks Redis once in 5 s at most, and a scrape waits 2 s for it.
- \`_total\` is a counter, all else a gauge, unless it says (histogram). A label's values stand where it comes first; \`owner\` may be empty, \`labels\` are sorted: \`stage=prod,team=hr\`.
- prom-client adds Node's own, such as \`syncline_process_resident_memory_bytes\` and \`syncline_nodejs_eventloop_lag_p99_seconds\`.

| metric{labels} | what it says |
|---|---|
`;

/** The page as Markdown. */
export function metricReference(): string {
  const told = new Set<LabelName>();
  const rows = Object.entries<MetricFacts>(metricTable).map(([name, { type, labels, scope, help }]) => {
    const values = labels.filter((label) => !told.has(label)).map(valuesOf);
    for (const label of labels) told.add(label);
    const shown = labels.length > 0 ? `{${labels.map(shownLabel).join(", ")}}` : "";
    return `| \`${name}${shown}\` | ${type === "histogram" ? "(histogram) " : scope === "shared" ? "(shared) " : ""}${help}${values.join("")} |`;
  });
  return `${head}${rows.join("\n")}\n`;
}

/** What a label may hold, with a space in front; nothing for names, and for what the head tells. */
function valuesOf(label: LabelName): string {
  if (label === "worstPolicy") return ` ${worstPoliciesMax} for each service and trouble at most.`;
  if (label === "operation") return " `operation`: see the [interface](../service-interface.md#41-summary).";
  if (label === "webOperation") return " `operation`: method and route, such as `GET /api/v1/policies/:name`.";
  if (label === "breakerCause") return " `cause`: none, or an `outcome` of calls.";
  if (isNameLabel(label) || isOpenLabel(label) || label === "version" || label === "node") return "";
  return ` \`${shownLabel(label)}\`: ${closedLabels[label].join(", ")}.`;
}
