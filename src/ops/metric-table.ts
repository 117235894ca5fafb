// The table of Syncline's metrics: name, type, help, labels, buckets; and its reference page,
// docs/reference/metrics.md. metrics.ts registers exactly these, and tests compare the alerts and
// the dashboard with them.
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

/** The facts about one metric. */
export interface MetricFacts {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly LabelName[];
  /** Upper bounds, for histograms. */
  readonly buckets?: readonly number[];
  /** `shared`: every replica reports the same, from Redis. `process`: each reports its own. */
  readonly scope: "process" | "shared";
}

const delayBuckets = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 1_800, 3_600];
const requestBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const webBuckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const runBuckets = [1, 5, 15, 60, 300, 900, 1_800, 3_600, 7_200, 21_600];
const walkBuckets = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900];

type Labels = readonly LabelName[];

const counter = <const L extends Labels>(labels: L, help: string) =>
  ({ type: "counter", scope: "process", labels, help }) as const;
const ownGauge = <const L extends Labels>(labels: L, help: string) =>
  ({ type: "gauge", scope: "process", labels, help }) as const;
const sharedGauge = <const L extends Labels>(labels: L, help: string) =>
  ({ type: "gauge", scope: "shared", labels, help }) as const;
const histogram = <const L extends Labels>(labels: L, help: string, buckets: readonly number[]) =>
  ({ type: "histogram", scope: "process", labels, help, buckets }) as const;

/** All metrics by name. Node's own metrics come on top. */
export const metricTable = {
  syncline_slots_total: counter(
    ["policy", "slotOutcome"],
    "Slots by outcome; started: without those that the sweep queued.",
  ),
  syncline_slot_delay_seconds: histogram(
    [],
    "Time from a slot's due time until its tasks were queued, without followers.",
    delayBuckets,
  ),
  syncline_slots_repaired_total: counter(
    [],
    "Slots whose tasks the sweep queued: their scheduler died or Redis failed.",
  ),
  syncline_heartbeat_timestamp_seconds: ownGauge(
    ["role"],
    "When a scheduler last ended a tick, a worker or web server ran with Redis answering.",
  ),
  syncline_tasks_total: counter(["policy", "status"], "Ended tasks by their outcome."),
  syncline_unknown_starts_total: counter(
    ["policy"],
    "Starts that ended as unknown, except by no-evidence or cancelled.",
  ),
  syncline_settle_duration_seconds: histogram(["kind"], "Time from the permission to send to the outcome.", runBuckets),
  syncline_new_conflicts_total: counter(["policy"], "New conflicts of followed runs."),
  syncline_unusual_runs_total: counter(
    ["policy"],
    "Runs unlike the newest 20 of their sync job: in duration, activities or conflicts.",
  ),
  syncline_tasks_retried_total: counter([], "Failed attempts that are repeated."),
  syncline_tasks_stalled_total: counter([], "Tasks taken over from a worker that died or hung."),
  syncline_tasks_abandoned_total: counter([], "Tasks that the queue gave up and that could not be ended."),
  syncline_bugs_total: counter([], "Bugs of Syncline; the log has the stack."),
  syncline_starts_total: counter(
    ["service", "startOutcome"],
    "Runs, activations and deletions requested; unknown and failed (5xx but 502, 504) may have started something.",
  ),
  syncline_start_duration_seconds: histogram(["service"], "Time from sending a start to its answer.", requestBuckets),
  syncline_starts_repeated_total: counter([], "Starts sent again, by onUnknown: retry or follow.appearsWithin."),
  syncline_starts_unwritten_total: counter([], "Facts about starts that Redis did not take in time."),
  syncline_policy_last_success_timestamp_seconds: sharedGauge(
    ["policy"],
    "When a task of the policy last ended well, over all replicas and restarts.",
  ),
  syncline_policy_next_slot_timestamp_seconds: sharedGauge(
    ["policy"],
    "The next slot of the policy, or of its chain's first policy.",
  ),
  syncline_policy_stale_from_timestamp_seconds: sharedGauge(
    ["policy"],
    "The third slot after the last success, or its schedule's beginning if later; none in a blackout or on a holiday.",
  ),
  syncline_policy_paused: sharedGauge(["policy", "cause"], "1 while a pause or a quarantine skips the policy's slots."),
  syncline_policies_in_trouble: sharedGauge(
    ["service", "trouble"],
    "Policies by what is wrong; stale: not late; failing: neither; unknown (its start or its end), missed: in the last hour. A paused one is neither stale nor failing, and shows no conflicts.",
  ),
  syncline_policy_trouble_timestamp_seconds: sharedGauge(
    ["worstPolicy", "service", "trouble"],
    "The policies with the oldest troubles: since when (stale, late, quarantined), or when it last happened.",
  ),
  syncline_feed_walks_total: counter(
    ["service", "list", "walkOutcome"],
    "Walks of followed lists: whole, of the growing end only, or failed.",
  ),
  syncline_feed_whole_walks_total: counter(
    ["service", "list", "wholeReason"],
    "Whole walks by why; first, resumed, short, audit, wanted and polled are normal, others cost more than needed.",
  ),
  syncline_feed_pages_total: counter(["service", "list"], "Pages read of followed lists."),
  syncline_feed_items_total: counter(
    ["service", "list", "novelty"],
    "Items read of followed lists, by whether seen before.",
  ),
  syncline_feed_mapping_failures_total: counter(
    ["service", "list"],
    "Expressions of a mapping that failed on an item: that fact is unknown.",
  ),
  syncline_lists_read_again_total: counter(
    ["service", "reader", "againResult"],
    "Second readings of lists, to be sure.",
  ),
  syncline_feed_walk_duration_seconds: histogram(["list"], "How long a walk took, from its first page.", walkBuckets),
  syncline_feed_lag_seconds: histogram(["list"], "How old news can be when a walk brings it.", walkBuckets),
  syncline_queue_tasks: sharedGauge(
    ["service", "queue", "state"],
    "Jobs in a queue: waiting for a worker, running, or delayed.",
  ),
  syncline_queue_oldest_timestamp_seconds: sharedGauge(
    ["service", "queue"],
    "Since when the oldest new job waits, of the first 1,000 in line.",
  ),
  syncline_http_requests_total: counter(
    ["service", "operation", "requestOutcome"],
    "Calls by kind of failure; throttled: also those held back by limits, breaker, token or Redis. Repeated tries count once.",
  ),
  syncline_http_tries_total: counter(["service"], "HTTP exchanges with the service, each try."),
  syncline_http_exchanges_stuck_total: counter(["service"], "HTTP exchanges that the watchdog ended."),
  syncline_http_request_duration_seconds: histogram(
    ["service"],
    "How long a call took, with its tries and waits.",
    requestBuckets,
  ),
  syncline_requests_in_flight: sharedGauge(["service"], "Requests in flight; only where limits.concurrency is set."),
  syncline_breaker_open: sharedGauge(
    ["service", "breakerCause"],
    "1 while the breaker is open, else 0; cause: the kind of the last failure.",
  ),
  syncline_breaker_openings_total: counter(["service"], "How often the breaker opened."),
  syncline_throttled_until_timestamp_seconds: sharedGauge(["service"], "Until when the service asked clients to wait."),
  syncline_throttles_total: counter(["service"], "How often the service throttled (429, or 503 with Retry-After)."),
  syncline_token_expiry_timestamp_seconds: ownGauge(["service"], "When the OAuth 2 token in use expires."),
  syncline_token_renewals_total: counter(
    ["service", "renewal"],
    "Token renewals after a 401; failed early renewals and readings of a token file.",
  ),
  syncline_links_total: counter(
    ["service", "link"],
    "Next links to another origin, or without the base path: rebased to the configured ones, or refused.",
  ),
  syncline_sink_deliveries_total: counter(["sink", "deliveryResult"], "Tries to deliver a notice by how they ended."),
  syncline_sink_dropped_total: counter(["sink"], "Notices for which a sink's queue had no room."),
  syncline_sink_queue: sharedGauge(["sink"], "Notices that wait for a sink."),
  syncline_sink_failed: sharedGauge(["sink"], "Notices in the failed list of a sink."),
  syncline_sink_oldest_timestamp_seconds: sharedGauge(["sink"], "Since when the oldest notice waits for a sink."),
  syncline_notices_total: counter(
    ["noticeKind"],
    "Notices handed over, one for each sink; muted ones count when they are sent.",
  ),
  syncline_notifications_dropped_total: counter(
    [],
    "Outcomes and notices never told: too many waited, or a newer version wrote them.",
  ),
  syncline_policy_heartbeats_failed_total: counter(["policy"], "Heartbeats of policies that failed three times."),
  syncline_web_requests_total: counter(["webOperation", "statusClass"], "Requests to the role web, by route."),
  syncline_web_request_duration_seconds: histogram([], "Time to an answer of the role web.", webBuckets),
  syncline_web_streams: ownGauge([], "Pages that are live."),
  syncline_web_refused_total: counter(["webRefusal"], "Requests that the role web refused."),
  syncline_web_sign_ins_failed_total: counter([], "Attempts to sign in that failed."),
  syncline_web_reads_total: counter([], "Readings of Redis for pages and lists; many callers share one."),
  syncline_redis_up: ownGauge([], "1 while Redis answers this process."),
  syncline_redis_safe: ownGauge([], "1 while Redis may be trusted; with 0 this process plans and starts nothing."),
  syncline_foreign_owners: ownGauge([], "How many other owners have processes under this prefix."),
  syncline_redis_policy_ok: ownGauge([], "1 while maxmemory-policy is noeviction."),
  syncline_redis_append_only: ownGauge([], "1 while Redis appends every write to its file."),
  syncline_shared_metrics_up: ownGauge([], "1 while a scrape shows what is (shared)."),
  syncline_redis_changes_total: counter([], "How often another Redis process answered."),
  syncline_redis_losses_total: counter([], "How often Redis had lost written data."),
  syncline_redis_unreplicated_total: counter([], "How often too few replicas had a start's journal entry in time."),
  syncline_clock_skew_seconds: ownGauge([], "How far this machine's clock is ahead of Redis's; checked once a minute."),
  syncline_config_last_reload_successful: ownGauge(
    [],
    "0 while the policy files are wrong; the last good ones stay in force.",
  ),
  syncline_config_last_reload_success_timestamp_seconds: ownGauge([], "When policies were last adopted."),
  syncline_policy_info: ownGauge(
    ["policy", "owner", "labels"],
    "Always 1; who owns the policy, and its labels. To join by `policy`.",
  ),
  syncline_config_policies: ownGauge([], "Policies in force."),
  syncline_config_policies_unnamed: ownGauge([], "Policies in force without series of their own."),
  syncline_build_info: ownGauge(["version", "node"], "Always 1; what runs here."),
} satisfies Record<string, MetricFacts>;

/** A metric's name. */
export type MetricName = keyof typeof metricTable;

/** The names of all metrics of one type. */
export type NameOf<Type extends MetricFacts["type"]> = {
  [Name in MetricName]: (typeof metricTable)[Name]["type"] extends Type ? Name : never;
}[MetricName];

/** The labels of a metric with their values. */
export type LabelsOf<Name extends MetricName> = Readonly<Record<(typeof metricTable)[Name]["labels"][number], string>>;

const pageHead = `# Metrics

Made by \`syncline schema --metrics\`. \`serve --health-port\` answers them under \`/metrics\`; alerts: [runbooks](../runbooks/README.md).

- Seconds and counts; instants are seconds since 1970. Counters begin at 0 with the process.
- Each replica reports its own: add up. What is (shared) comes from Redis, the same from every replica: take \`max by (…)\`. Without Redis these are absent; so is a gauge where there is nothing to tell (no schedule, no pause).
- The first ${namesMax.policy} policies, ${namesMax.service} services and ${namesMax.sink} sinks have series of their own until the process ends. The others share \`${otherValue}\` in counters and have no gauges; \`syncline_policies_in_trouble\` counts all policies.
- A replica asks Redis once in 5 s at most. A scrape waits 2 s, then shows the last answer for a minute.
- \`_total\` is a counter, all else a gauge, unless it says (histogram). A label's values stand where it comes first; \`labels\` are sorted: \`stage=prod,team=hr\`.
- Node's own (\`syncline_nodejs_…\`, \`syncline_process_…\`) come on top.

| metric{labels} | what it says |
|---|---|
`;

/** The reference page, as Markdown. */
export function metricReference(): string {
  const told = new Set<LabelName>();
  const rows = Object.entries<MetricFacts>(metricTable).map(([name, { type, labels, scope, help }]) => {
    const values = labels.filter((label) => !told.has(label)).map(valuesOf);
    for (const label of labels) told.add(label);
    const shown = labels.length > 0 ? `{${labels.map(shownLabel).join(", ")}}` : "";
    return `| \`${name}${shown}\` | ${type === "histogram" ? "(histogram) " : scope === "shared" ? "(shared) " : ""}${help}${values.join("")} |`;
  });
  return `${pageHead}${rows.join("\n")}\n`;
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
