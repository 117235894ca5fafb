// The one table of Syncline's metrics: name, type, help, labels, buckets. metrics.ts registers exactly these, metric-page.ts writes
// docs/reference/metrics.md from them, and tests hold the alerts and the dashboard against them. Holds facts only.
import type { LabelName } from "./metric-labels.ts";

/** The facts about one metric. */
export interface MetricFacts {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly LabelName[];
  /** Upper bounds, for histograms. */
  readonly buckets?: readonly number[];
  /** `shared`: every replica says the same, from Redis; take the maximum. `process`: each says its own; add up, or look at each. */
  readonly scope: "process" | "shared";
}

const counter = { type: "counter", scope: "process" } as const;
const ownGauge = { type: "gauge", scope: "process" } as const;
const sharedGauge = { type: "gauge", scope: "shared" } as const;
const histogram = { type: "histogram", scope: "process" } as const;

const delayBuckets = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 1_800, 3_600];
const requestBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const runBuckets = [1, 5, 15, 60, 300, 900, 1_800, 3_600, 7_200, 21_600];
const walkBuckets = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900];

/** All metrics by name. What Node tells of its own process comes on top (metric-page.ts). */
export const metricTable = {
  syncline_slots_total: { ...counter, help: "Slots by what became of them.", labels: ["policy", "slotOutcome"] },
  syncline_slot_delay_seconds: {
    ...histogram,
    help: "From when a slot was due until its tasks were in the queue; without those that waited for another policy.",
    labels: [],
    buckets: delayBuckets,
  },
  syncline_slots_repaired_total: {
    ...counter,
    help: "Slots whose tasks the sweep put into the queue, since their scheduler had died in between.",
    labels: [],
  },
  syncline_heartbeat_timestamp_seconds: {
    ...ownGauge,
    help: "When the role last did its work: a scheduler ended a look, a worker ran with a Redis that answers. Absent without the role.",
    labels: ["role"],
  },
  syncline_tasks_total: { ...counter, help: "Ended tasks by their outcome.", labels: ["policy", "status"] },
  syncline_unknown_starts_total: {
    ...counter,
    help: "Ended tasks, polls aside, of which nobody knows what they did.",
    labels: ["policy"],
  },
  syncline_settle_duration_seconds: {
    ...histogram,
    help: "From the permission to send until the outcome was known.",
    labels: ["kind"],
    buckets: runBuckets,
  },
  syncline_new_conflicts_total: { ...counter, help: "Conflicts that followed runs brought.", labels: ["policy"] },
  syncline_tasks_retried_total: { ...counter, help: "Attempts that failed and are made again.", labels: [] },
  syncline_tasks_stalled_total: { ...counter, help: "Tasks taken over from a worker that died or hung.", labels: [] },
  syncline_tasks_abandoned_total: { ...counter, help: "Tasks the queue gave up that could not be ended.", labels: [] },
  syncline_bugs_total: { ...counter, help: "Mistakes of Syncline itself; the log has the stack.", labels: [] },
  syncline_starts_total: {
    ...counter,
    help: "Requests that start or activate a sync job, by how the service answered; unknown: no answer, verified afterwards.",
    labels: ["service", "startOutcome"],
  },
  syncline_start_duration_seconds: {
    ...histogram,
    help: "From sending a start until its answer.",
    labels: ["service"],
    buckets: requestBuckets,
  },
  syncline_starts_repeated_total: {
    ...counter,
    help: "Starts sent once more, by onUnknown: retry or since they are shown to be absent.",
    labels: [],
  },
  syncline_policy_last_success_timestamp_seconds: {
    ...sharedGauge,
    help: "When a task of the policy last ended well, over all replicas and restarts. Absent before the first time.",
    labels: ["policy"],
  },
  syncline_policy_next_slot_timestamp_seconds: {
    ...sharedGauge,
    help: "The policy's next slot, or that of the policy at which its chain begins. Absent without a schedule.",
    labels: ["policy"],
  },
  syncline_policy_stale_from_timestamp_seconds: {
    ...sharedGauge,
    help: "From when on two whole intervals have passed since the last success: its third slot after it.",
    labels: ["policy"],
  },
  syncline_policy_paused: {
    ...sharedGauge,
    help: "1 while the policy's slots are skipped by a pause or a quarantine; absent otherwise.",
    labels: ["policy", "cause"],
  },
  syncline_feed_walks_total: {
    ...counter,
    help: "Walks of followed lists: of the whole list, of its growing end only, or failed.",
    labels: ["service", "list", "walkOutcome"],
  },
  syncline_feed_pages_total: { ...counter, help: "Pages read of followed lists.", labels: ["service", "list"] },
  syncline_feed_items_total: {
    ...counter,
    help: "Items read of followed lists, by whether they had been seen before.",
    labels: ["service", "list", "novelty"],
  },
  syncline_feed_mapping_failures_total: {
    ...counter,
    help: "Expressions of a mapping that failed on an item; that fact of it counts as unknown. As often as feed.mapping-failing tells it.",
    labels: ["service", "list"],
  },
  syncline_feed_walk_duration_seconds: {
    ...histogram,
    help: "How long a walk took, from its first page.",
    labels: ["list"],
    buckets: walkBuckets,
  },
  syncline_feed_lag_seconds: {
    ...histogram,
    help: "How old news can be when a walk brings it: from the walk before, or from when somebody began to wait.",
    labels: ["list"],
    buckets: walkBuckets,
  },
  syncline_queue_tasks: {
    ...sharedGauge,
    help: "What stands in a queue: waiting for a worker, in work, or asleep until later.",
    labels: ["service", "queue", "state"],
  },
  syncline_queue_oldest_timestamp_seconds: {
    ...sharedGauge,
    help: "Since when the oldest waits that no worker has taken yet. Absent when none waits.",
    labels: ["service", "queue"],
  },
  syncline_http_requests_total: {
    ...counter,
    help: "Calls of the service by operation and kind of failure; repeated tries count once.",
    labels: ["service", "operation", "requestOutcome"],
  },
  syncline_http_tries_total: { ...counter, help: "HTTP exchanges with the service, each try.", labels: ["service"] },
  syncline_http_request_duration_seconds: {
    ...histogram,
    help: "How long a call took, with its tries and waits.",
    labels: ["service"],
    buckets: requestBuckets,
  },
  syncline_requests_in_flight: {
    ...sharedGauge,
    help: "Requests under way; only where limits.concurrency is set.",
    labels: ["service"],
  },
  syncline_breaker_open: { ...sharedGauge, help: "1 while the breaker is open, 0 otherwise.", labels: ["service"] },
  syncline_breaker_openings_total: { ...counter, help: "How often the breaker opened.", labels: ["service"] },
  syncline_throttled_until_timestamp_seconds: {
    ...sharedGauge,
    help: "Until when the service wants to be left alone. Absent when it does not.",
    labels: ["service"],
  },
  syncline_throttles_total: { ...counter, help: "How often the service asked for patience.", labels: ["service"] },
  syncline_token_expiry_timestamp_seconds: {
    ...ownGauge,
    help: "When the token in use runs out; only of OAuth 2 tokens, the others do not say.",
    labels: ["service"],
  },
  syncline_token_renewals_total: {
    ...counter,
    help: "Tokens read anew after a 401; and failed: early renewals, and looks into a token file that was read before.",
    labels: ["service", "renewal"],
  },
  syncline_links_total: {
    ...counter,
    help: "Next links that named another place: asked at the configured origin, or refused. Counted up to a minute late.",
    labels: ["service", "link"],
  },
  syncline_sink_deliveries_total: {
    ...counter,
    help: "Tries to deliver a notice by how they ended: delivered, refused for good, to be tried again, or given up.",
    labels: ["sink", "deliveryResult"],
  },
  syncline_sink_dropped_total: {
    ...counter,
    help: "Notices for which a sink's queue had no room.",
    labels: ["sink"],
  },
  syncline_sink_queue: { ...sharedGauge, help: "Notices that wait for a sink.", labels: ["sink"] },
  syncline_sink_failed: { ...sharedGauge, help: "Notices in the failed list of a sink.", labels: ["sink"] },
  syncline_sink_oldest_timestamp_seconds: {
    ...sharedGauge,
    help: "Since when the first notice waits for a sink. Absent when none waits.",
    labels: ["sink"],
  },
  syncline_notices_total: {
    ...counter,
    help: "Notices handed over to sinks, one for each sink; what waits for the end of quiet hours counts when it goes out.",
    labels: ["noticeKind"],
  },
  syncline_telling_dropped_total: {
    ...counter,
    help: "Outcomes of which nobody was told, since the teller was away too long, or could not read them.",
    labels: [],
  },
  syncline_policy_heartbeats_failed_total: {
    ...counter,
    help: "Heartbeats of policies that were given up after three tries.",
    labels: ["policy"],
  },
  syncline_redis_up: { ...ownGauge, help: "1 while Redis answers this process.", labels: [] },
  syncline_redis_safe: { ...ownGauge, help: "1 while Redis may be trusted; with 0 nothing starts.", labels: [] },
  syncline_redis_policy_ok: { ...ownGauge, help: "1 while maxmemory-policy is noeviction.", labels: [] },
  syncline_redis_append_only: { ...ownGauge, help: "1 while every write goes to Redis's file.", labels: [] },
  syncline_redis_changes_total: { ...counter, help: "How often Redis was another process.", labels: [] },
  syncline_redis_losses_total: { ...counter, help: "How often Redis forgot what was written.", labels: [] },
  syncline_redis_unreplicated_total: { ...counter, help: "Intents that no replica had in time.", labels: [] },
  syncline_clock_skew_seconds: {
    ...ownGauge,
    help: "How far this machine's clock is ahead of Redis's; negative: behind. Looked at once a minute.",
    labels: [],
  },
  syncline_config_last_reload_successful: {
    ...ownGauge,
    help: "0 while the policy files are wrong and the last good ones stay in force.",
    labels: [],
  },
  syncline_config_last_reload_success_timestamp_seconds: {
    ...ownGauge,
    help: "When policies were last taken over.",
    labels: [],
  },
  syncline_config_policies: { ...ownGauge, help: "Policies in force.", labels: [] },
  syncline_build_info: { ...ownGauge, help: "Always 1; what runs here.", labels: ["version", "node"] },
} as const satisfies Record<string, MetricFacts>;

/** A metric's name. */
export type MetricName = keyof typeof metricTable;

/** The names of all metrics of one type. */
export type NameOf<Type extends MetricFacts["type"]> = {
  [Name in MetricName]: (typeof metricTable)[Name]["type"] extends Type ? Name : never;
}[MetricName];

/** The labels of a metric with their values. */
export type LabelsOf<Name extends MetricName> = Readonly<Record<(typeof metricTable)[Name]["labels"][number], string>>;
