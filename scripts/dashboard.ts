// Makes the Grafana dashboard of the chart, helm/syncline/files/dashboard.json, from the panels
// named here. `npm run dashboard` writes it; a test holds the file against it and every expression
// against the table of metrics.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

type Unit = "short" | "s" | "dateTimeFromNow" | "reqps" | "bool" | "bytes";

interface Panel {
  readonly title: string;
  readonly unit: Unit;
  /** Legend → expression. */
  readonly lines: Readonly<Record<string, string>>;
  readonly type?: "timeseries" | "stat" | "table";
}

const file = join(import.meta.dirname, "../helm/syncline/files/dashboard.json");
const here = 'namespace="$namespace",job="$job"';
const columns = 3;
const [panelWidth, panelHeight] = [24 / columns, 8];

const rate = (name: string, by: string, more = "") =>
  `sum by (${by}) (rate(syncline_${name}{${here}${more}}[$__rate_interval]))`;
const rise = (name: string, by: string, more = "") => `sum by (${by}) (increase(syncline_${name}{${here}${more}}[1h]))`;
const quantile = (share: number, name: string, by = "le") =>
  `histogram_quantile(${share}, ${rate(`${name}_bucket`, by)})`;
const most = (name: string, by: string) => `max by (${by}) (syncline_${name}{${here}})`;
const instant = (name: string, by: string) => `1000 * ${most(name, by)}`;

const rows: Readonly<Record<string, readonly Panel[]>> = {
  "At a glance": [
    {
      title: "Heartbeats",
      unit: "dateTimeFromNow",
      type: "stat",
      lines: { "{{role}}": instant("heartbeat_timestamp_seconds", "role") },
    },
    {
      title: "Redis",
      unit: "bool",
      type: "stat",
      lines: { answers: `min(syncline_redis_up{${here}})`, "is safe": `min(syncline_redis_safe{${here}})` },
    },
    {
      title: "Configuration",
      unit: "short",
      type: "stat",
      lines: {
        "policies in force": `max(syncline_config_policies{${here}})`,
        "files are right": `min(syncline_config_last_reload_successful{${here}})`,
      },
    },
  ],
  "Slots and policies": [
    { title: "Slots an hour, by outcome", unit: "short", lines: { "{{outcome}}": rise("slots_total", "outcome") } },
    {
      title: "From due to queued",
      unit: "s",
      lines: { median: quantile(0.5, "slot_delay_seconds"), "99 %": quantile(0.99, "slot_delay_seconds") },
    },
    {
      title: "Missed slots an hour",
      unit: "short",
      lines: { "{{policy}}": `${rise("slots_total", "policy", ',outcome="missed"')} > 0` },
    },
    {
      title: "Policies in trouble",
      unit: "short",
      lines: { "{{service}} {{trouble}}": most("policies_in_trouble", "service, trouble") },
    },
    {
      title: "Oldest troubles",
      unit: "dateTimeFromNow",
      type: "table",
      lines: {
        "{{policy}} {{trouble}}": instant("policy_trouble_timestamp_seconds", "policy, trouble"),
      },
    },
    {
      title: "Last success",
      unit: "dateTimeFromNow",
      type: "table",
      lines: { "{{policy}}": instant("policy_last_success_timestamp_seconds", "policy") },
    },
    {
      title: "Next slot",
      unit: "dateTimeFromNow",
      type: "table",
      lines: { "{{policy}}": instant("policy_next_slot_timestamp_seconds", "policy") },
    },
    {
      title: "Paused or in quarantine",
      unit: "short",
      lines: { "{{policy}} {{cause}}": most("policy_paused", "policy, cause") },
    },
  ],
  "Tasks and starts": [
    { title: "Outcomes an hour", unit: "short", lines: { "{{status}}": rise("tasks_total", "status") } },
    {
      title: "Starts an hour, by answer",
      unit: "short",
      lines: { "{{service}} {{outcome}}": rise("starts_total", "service, outcome") },
    },
    {
      title: "How long a start takes (99 %)",
      unit: "s",
      lines: { "{{service}}": quantile(0.99, "start_duration_seconds", "service, le") },
    },
    {
      title: "How long until the outcome is known (90 %)",
      unit: "s",
      lines: { "{{kind}}": quantile(0.9, "settle_duration_seconds", "kind, le") },
    },
    {
      title: "New conflicts an hour",
      unit: "short",
      lines: { "{{policy}}": `${rise("new_conflicts_total", "policy")} > 0` },
    },
    {
      title: "Unusual runs an hour",
      unit: "short",
      lines: { "{{policy}}": `${rise("unusual_runs_total", "policy")} > 0` },
    },
    {
      title: "Retried, stalled, bugs an hour",
      unit: "short",
      lines: {
        retried: rise("tasks_retried_total", "namespace"),
        stalled: rise("tasks_stalled_total", "namespace"),
        abandoned: rise("tasks_abandoned_total", "namespace"),
        bugs: rise("bugs_total", "namespace"),
      },
    },
  ],
  Web: [
    {
      title: "Requests a second",
      unit: "reqps",
      lines: { "{{operation}} {{status}}": rate("web_requests_total", "operation, status") },
    },
    {
      title: "How long an answer takes",
      unit: "s",
      lines: {
        median: quantile(0.5, "web_request_duration_seconds"),
        "99 %": quantile(0.99, "web_request_duration_seconds"),
      },
    },
    {
      title: "Live pages, and what was refused an hour",
      unit: "short",
      lines: {
        "live pages": `sum(syncline_web_streams{${here}})`,
        "{{reason}}": rise("web_refused_total", "reason"),
        "failed sign-ins": rise("web_sign_ins_failed_total", "namespace"),
      },
    },
  ],
  Sinks: [
    {
      title: "Deliveries an hour, by result",
      unit: "short",
      lines: { "{{sink}} {{result}}": rise("sink_deliveries_total", "sink, result") },
    },
    {
      title: "Waiting, failed, dropped",
      unit: "short",
      lines: {
        "{{sink}} waiting": most("sink_queue", "sink"),
        "{{sink}} failed": most("sink_failed", "sink"),
        "{{sink}} dropped an hour": rise("sink_dropped_total", "sink"),
      },
    },
    {
      title: "The first notice that waits",
      unit: "s",
      lines: { "{{sink}}": `time() - min by (sink) (syncline_sink_oldest_timestamp_seconds{${here}})` },
    },
  ],
  "Queues and feeds": [
    {
      title: "In the queues",
      unit: "short",
      lines: { "{{service}} {{queue}} {{state}}": most("queue_tasks", "service, queue, state") },
    },
    {
      title: "The oldest that waits",
      unit: "s",
      lines: {
        "{{service}} {{queue}}": `time() - min by (service, queue) (syncline_queue_oldest_timestamp_seconds{${here}})`,
      },
    },
    {
      title: "Walks of lists",
      unit: "reqps",
      lines: { "{{list}} {{outcome}}": rate("feed_walks_total", "list, outcome") },
    },
    {
      title: "Pages read",
      unit: "reqps",
      lines: { "{{service}} {{list}}": rate("feed_pages_total", "service, list") },
    },
    {
      title: "Items read",
      unit: "reqps",
      lines: { "{{list}} {{novelty}}": rate("feed_items_total", "list, novelty") },
    },
    {
      title: "How old news is (99 %)",
      unit: "s",
      lines: { "{{list}}": quantile(0.99, "feed_lag_seconds", "list, le") },
    },
  ],
  Services: [
    {
      title: "Calls",
      unit: "reqps",
      lines: { "{{service}} {{operation}}": rate("http_requests_total", "service, operation") },
    },
    {
      title: "Failed calls",
      unit: "reqps",
      lines: { "{{service}} {{outcome}}": rate("http_requests_total", "service, outcome", ',outcome!="ok"') },
    },
    {
      title: "How long a call takes (99 %)",
      unit: "s",
      lines: { "{{service}}": quantile(0.99, "http_request_duration_seconds", "service, le") },
    },
    {
      title: "Breaker open, requests under way",
      unit: "short",
      lines: {
        "{{service}} breaker": most("breaker_open", "service"),
        "{{service}} under way": most("requests_in_flight", "service"),
      },
    },
    {
      title: "Asked for patience until",
      unit: "dateTimeFromNow",
      type: "table",
      lines: { "{{service}}": instant("throttled_until_timestamp_seconds", "service") },
    },
    {
      title: "Tokens run out",
      unit: "dateTimeFromNow",
      type: "table",
      lines: { "{{service}}": `1000 * min by (service) (syncline_token_expiry_timestamp_seconds{${here}})` },
    },
  ],
  "Redis and processes": [
    {
      title: "Redis changed, lost, not replicated, not written, an hour",
      unit: "short",
      lines: {
        changed: rise("redis_changes_total", "namespace"),
        lost: rise("redis_losses_total", "namespace"),
        "not replicated": rise("redis_unreplicated_total", "namespace"),
        "answers not written": rise("starts_unwritten_total", "namespace"),
      },
    },
    { title: "Clock ahead of Redis", unit: "s", lines: { "{{pod}}": most("clock_skew_seconds", "pod") } },
    {
      title: "Event-loop lag (99 %)",
      unit: "s",
      lines: { "{{pod}}": most("nodejs_eventloop_lag_p99_seconds", "pod") },
    },
    { title: "Memory", unit: "bytes", lines: { "{{pod}}": most("process_resident_memory_bytes", "pod") } },
    { title: "CPU", unit: "s", lines: { "{{pod}}": rate("process_cpu_seconds_total", "pod") } },
    {
      title: "Versions",
      unit: "short",
      type: "table",
      lines: { "{{version}}": `count by (version, node) (syncline_build_info{${here}})` },
    },
  ],
};

/** The dashboard as the text of its file. */
export function dashboardText(): string {
  const panels: object[] = [];
  let top = 0;
  for (const [title, few] of Object.entries(rows)) {
    panels.push({
      id: panels.length + 1,
      type: "row",
      title,
      collapsed: false,
      gridPos: { x: 0, y: top, w: 24, h: 1 },
      panels: [],
    });
    top += 1;
    for (const [index, panel] of few.entries()) {
      const place = { x: (index % columns) * panelWidth, y: top + Math.floor(index / columns) * panelHeight };
      panels.push(toPanel(panel, panels.length + 1, { ...place, w: panelWidth, h: panelHeight }));
    }
    top += Math.ceil(few.length / columns) * panelHeight;
  }
  const dashboard = {
    uid: "syncline",
    title: "Syncline",
    tags: ["syncline"],
    schemaVersion: 39,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    templating: { list: variables() },
    panels,
  };
  return `${JSON.stringify(dashboard, undefined, 2)}\n`;
}

const source = { type: "prometheus", uid: "$datasource" };

function toPanel({ title, unit, lines, type = "timeseries" }: Panel, id: number, gridPos: object): object {
  const isNow = type !== "timeseries";
  const targets = Object.entries(lines).map(([legendFormat, expr], index) => ({
    refId: String.fromCharCode("A".charCodeAt(0) + index),
    datasource: source,
    expr,
    legendFormat,
    instant: isNow,
    range: !isNow,
    ...(type === "table" ? { format: "table" } : {}),
  }));
  return { id, type, title, datasource: source, gridPos, fieldConfig: { defaults: { unit }, overrides: [] }, targets };
}

/** One release is shown at a time: numbers of several would be mixed. */
function variables(): object[] {
  const choice = (name: string, label: string, query: string) => ({
    name,
    type: "query",
    label,
    datasource: source,
    query: { query, refId: name },
    refresh: 2,
  });
  return [
    { name: "datasource", type: "datasource", query: "prometheus", label: "Data source" },
    choice("namespace", "Namespace", "label_values(syncline_build_info, namespace)"),
    choice("job", "Job", 'label_values(syncline_build_info{namespace="$namespace"}, job)'),
  ];
}

if (import.meta.main) writeFileSync(file, dashboardText());
