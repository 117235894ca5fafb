// The table of Syncline's metrics: name, type, help, labels, buckets. metrics.ts registers exactly
// these, metric-page.ts documents them, and tests compare the alerts and the dashboard with them.
import type { LabelName } from "./metric-labels.ts";

/** The facts about one metric. */
export interface MetricFacts {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly LabelName[];
  /** Upper bounds, for histograms. */
  readonly buckets?: readonly number[];
  /**
   * `shared`: every replica reports the same value, from Redis: take the maximum. `process`: each
   * reports its own: add up, or look at each.
   */
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

/** All metrics by name. Node's own metrics come on top (metric-page.ts). */
export const metricTable = {
  syncline_slots_total: { ...counter, help: "Slots by outcome.", labels: ["policy", "slotOutcome"] },
  syncline_slot_delay_seconds: {
    ...histogram,
    help: "Time from a slot's due time until its tasks were queued; without slots that waited for another policy.",
    labels: [],
    buckets: delayBuckets,
  },
  syncline_slots_repaired_total: {
    ...counter,
    help: "Slots whose tasks the sweep put into the queue, because their scheduler died in between.",
    labels: [],
  },
  syncline_heartbeat_timestamp_seconds: {
    ...ownGauge,
    help: "When the role last did its work: a scheduler ended a tick, a worker ran with a Redis that answers. Absent without the role.",
    labels: ["role"],
  },
  syncline_tasks_total: { ...counter, help: "Ended tasks by their outcome.", labels: ["policy", "status"] },
  syncline_unknown_starts_total: {
    ...counter,
    help: "Ended tasks, except polls, whose effect is not known.",
    labels: ["policy"],
  },
  syncline_settle_duration_seconds: {
    ...histogram,
    help: "Time from the permission to send to the outcome.",
    labels: ["kind"],
    buckets: runBuckets,
  },
  syncline_new_conflicts_total: { ...counter, help: "New conflicts of followed runs.", labels: ["policy"] },
  syncline_tasks_retried_total: { ...counter, help: "Failed attempts that are repeated.", labels: [] },
  syncline_tasks_stalled_total: { ...counter, help: "Tasks taken over from a worker that died or hung.", labels: [] },
  syncline_tasks_abandoned_total: {
    ...counter,
    help: "Tasks that the queue gave up and that could not be ended.",
    labels: [],
  },
  syncline_bugs_total: { ...counter, help: "Bugs of Syncline; the log has the stack.", labels: [] },
  syncline_starts_total: {
    ...counter,
    help: "Requests that start or activate a sync job, by how the service answered; unknown: no answer, verified afterwards.",
    labels: ["service", "startOutcome"],
  },
  syncline_start_duration_seconds: {
    ...histogram,
    help: "Time from sending a start to its answer.",
    labels: ["service"],
    buckets: requestBuckets,
  },
  syncline_starts_repeated_total: {
    ...counter,
    help: "Starts that were sent again: by onUnknown: retry, or after the activities showed none.",
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
    help: "When two whole intervals have passed since the last success: the third slot after it.",
    labels: ["policy"],
  },
  syncline_policy_paused: {
    ...sharedGauge,
    help: "1 while the policy's slots are skipped by a pause or a quarantine; absent otherwise.",
    labels: ["policy", "cause"],
  },
  syncline_policies_in_trouble: {
    ...sharedGauge,
    help: "Policies by what is wrong: stale since two intervals, failing though not stale yet, with conflicts, in quarantine, or with an unknown start or a missed slot in the last hour. All policies count; one that is paused is neither stale nor failing, and shows no conflicts.",
    labels: ["service", "trouble"],
  },
  syncline_policy_trouble_timestamp_seconds: {
    ...sharedGauge,
    help: "The policies that have a trouble for longest: from when they are stale, or when it last happened.",
    labels: ["worstPolicy", "service", "trouble"],
  },
  syncline_feed_walks_total: {
    ...counter,
    help: "Walks of followed lists: of the whole list, of its growing end only, or failed.",
    labels: ["service", "list", "walkOutcome"],
  },
  syncline_feed_whole_walks_total: {
    ...counter,
    help: "Walks of a whole list by why it was read so. first, resumed, short, audit, wanted and polled are normal; every other reason makes the list cost more than it needs.",
    labels: ["service", "list", "wholeReason"],
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
    help: "How old news can be when a walk brings it: since the walk before, or since the first run began to wait.",
    labels: ["list"],
    buckets: walkBuckets,
  },
  syncline_queue_tasks: {
    ...sharedGauge,
    help: "Jobs in a queue: waiting for a worker, running, or delayed.",
    labels: ["service", "queue", "state"],
  },
  syncline_queue_oldest_timestamp_seconds: {
    ...sharedGauge,
    help: "Since when the oldest job waits for a worker. Absent when none waits.",
    labels: ["service", "queue"],
  },
  syncline_http_requests_total: {
    ...counter,
    help: "Calls of the service by operation and kind of failure; repeated tries count once.",
    labels: ["service", "operation", "requestOutcome"],
  },
  syncline_http_tries_total: { ...counter, help: "HTTP exchanges with the service, each try.", labels: ["service"] },
  syncline_http_exchanges_stuck_total: {
    ...counter,
    help: "HTTP exchanges that the watchdog ended, 4 s after their time-outs had not.",
    labels: ["service"],
  },
  syncline_http_request_duration_seconds: {
    ...histogram,
    help: "How long a call took, including its tries and waits.",
    labels: ["service"],
    buckets: requestBuckets,
  },
  syncline_requests_in_flight: {
    ...sharedGauge,
    help: "Requests in flight; only where limits.concurrency is set.",
    labels: ["service"],
  },
  syncline_breaker_open: {
    ...sharedGauge,
    help: "1 while the breaker is open, 0 otherwise; cause: the kind of the last failure.",
    labels: ["service", "breakerCause"],
  },
  syncline_breaker_openings_total: { ...counter, help: "How often the breaker opened.", labels: ["service"] },
  syncline_throttled_until_timestamp_seconds: {
    ...sharedGauge,
    help: "Until when the service asked clients to wait. Absent when it did not.",
    labels: ["service"],
  },
  syncline_throttles_total: {
    ...counter,
    help: "How often the service throttled requests (429, or 503 with Retry-After).",
    labels: ["service"],
  },
  syncline_token_expiry_timestamp_seconds: {
    ...ownGauge,
    help: "When the token in use expires; only for OAuth 2 tokens.",
    labels: ["service"],
  },
  syncline_token_renewals_total: {
    ...counter,
    help: "Token renewals after a 401; and failed early renewals and re-reads of a token file.",
    labels: ["service", "renewal"],
  },
  syncline_links_total: {
    ...counter,
    help: "Next links to another origin: rebased to the configured one, or refused. Counted up to a minute late.",
    labels: ["service", "link"],
  },
  syncline_sink_deliveries_total: {
    ...counter,
    help: "Tries to deliver a notice by how they ended: delivered, refused, to be retried, or given up.",
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
    help: "Since when the oldest notice waits for a sink. Absent when none waits.",
    labels: ["sink"],
  },
  syncline_notices_total: {
    ...counter,
    help: "Notices handed over to sinks, one for each sink; muted notices count when they are sent.",
    labels: ["noticeKind"],
  },
  syncline_notifications_dropped_total: {
    ...counter,
    help: "Outcomes without a notice: the notifier was away too long, or could not read them.",
    labels: [],
  },
  syncline_policy_heartbeats_failed_total: {
    ...counter,
    help: "Heartbeats of policies that failed three times.",
    labels: ["policy"],
  },
  syncline_redis_up: { ...ownGauge, help: "1 while Redis answers this process.", labels: [] },
  syncline_redis_safe: { ...ownGauge, help: "1 while Redis may be trusted; with 0 nothing starts.", labels: [] },
  syncline_foreign_owners: {
    ...ownGauge,
    help: "How many other owners have processes under this prefix; more than 0 is a mistake.",
    labels: [],
  },
  syncline_redis_policy_ok: { ...ownGauge, help: "1 while maxmemory-policy is noeviction.", labels: [] },
  syncline_redis_append_only: { ...ownGauge, help: "1 while Redis appends every write to its file.", labels: [] },
  syncline_redis_changes_total: { ...counter, help: "How often another Redis process answered.", labels: [] },
  syncline_redis_losses_total: { ...counter, help: "How often Redis had lost written data.", labels: [] },
  syncline_redis_unreplicated_total: { ...counter, help: "Journal entries that no replica had in time.", labels: [] },
  syncline_clock_skew_seconds: {
    ...ownGauge,
    help: "How far this machine's clock is ahead of Redis's; negative: behind. Checked once a minute.",
    labels: [],
  },
  syncline_config_last_reload_successful: {
    ...ownGauge,
    help: "0 while the policy files are wrong and the last good ones stay in force.",
    labels: [],
  },
  syncline_config_last_reload_success_timestamp_seconds: {
    ...ownGauge,
    help: "When policies were last adopted.",
    labels: [],
  },
  syncline_config_policies: { ...ownGauge, help: "Policies in force.", labels: [] },
  syncline_config_policies_unnamed: {
    ...ownGauge,
    help: "Policies in force that have no series of their own; what goes wrong with them is in syncline_policies_in_trouble.",
    labels: [],
  },
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
