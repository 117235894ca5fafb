// For each alert, one course of events that fires it and one like it that does not. Read by test/cli/alerts.test.ts, which gives them to promtool.

/** Series with their values at each minute from 0 on, in promtool's notation, and the minute at which to look. */
export interface Course {
  readonly series: Readonly<Record<string, string>>;
  readonly atMinute: number;
}

/** What fires an alert, with labels that it must carry, and what leaves it silent. */
export interface AlertCase {
  readonly fires: Course & { readonly labels?: string };
  readonly silent: Course;
}

const build = 'syncline_build_info{namespace="a",pod="p"}';
const heartbeat = (role: string) => `syncline_heartbeat_timestamp_seconds{namespace="a",role="${role}"}`;
const stale = 'syncline_policy_stale_from_timestamp_seconds{namespace="a",policy="nightly"}';
const slots = (outcome: string) => `syncline_slots_total{namespace="a",policy="nightly",outcome="${outcome}"}`;
const unknownStarts = 'syncline_unknown_starts_total{namespace="a",policy="nightly"}';
const tasks = (status: string) => `syncline_tasks_total{namespace="a",policy="nightly",status="${status}"}`;
const delay = (le: string) => `syncline_slot_delay_seconds_bucket{namespace="a",le="${le}"}`;
const requests = (outcome: string) =>
  `syncline_http_requests_total{namespace="a",service="main",operation="GetApprovals",outcome="${outcome}"}`;
const renewals = 'syncline_token_renewals_total{namespace="a",service="main",outcome="failed"}';
const expiry = 'syncline_token_expiry_timestamp_seconds{namespace="a",service="main"}';
const oldest = 'syncline_queue_oldest_timestamp_seconds{namespace="a",service="main",queue="actions"}';
const breaker = 'syncline_breaker_open{namespace="a",service="main"}';
const links = (outcome: string) => `syncline_links_total{namespace="a",service="main",outcome="${outcome}"}`;
const dropped = 'syncline_sink_dropped_total{namespace="a",sink="ops"}';
const oldestNotice = 'syncline_sink_oldest_timestamp_seconds{namespace="a",sink="ops"}';
const deliveries = (result: string) => `syncline_sink_deliveries_total{namespace="a",sink="ops",result="${result}"}`;
const own = (name: string) => `syncline_${name}{namespace="a",pod="p"}`;

const rises = "0x10 1x20";
const stays = "5x30";

/** A course of one series. */
const one = (series: string, values: string, atMinute = 14): Course => ({ series: { [series]: values }, atMinute });

/** By the alert's name. */
export const alertCases: Readonly<Record<string, AlertCase>> = {
  SynclineSinkDropping: {
    fires: { ...one(dropped, rises), labels: 'sink="ops"' },
    silent: { series: { [dropped]: stays, [deliveries("retried")]: "0+1x30" }, atMinute: 14 },
  },
  SynclineSinkStuck: {
    fires: { ...one(oldestNotice, "0x30", 20), labels: 'sink="ops"' },
    silent: { series: { [oldestNotice]: "600x30", [deliveries("delivered")]: "0+1x30" }, atMinute: 20 },
  },
  SynclineSlotMissed: {
    fires: { ...one(slots("missed"), rises), labels: 'policy="nightly"' },
    silent: { series: { [slots("missed")]: stays, [slots("started")]: "0+1x30" }, atMinute: 14 },
  },
  SynclineSlotsLate: {
    fires: { series: { [delay("30")]: "0+1x30", [delay("60")]: "0+10x30", [delay("+Inf")]: "0+10x30" }, atMinute: 20 },
    silent: {
      series: { [delay("30")]: "0+10x30", [delay("60")]: "0+10x30", [delay("+Inf")]: "0+10x30" },
      atMinute: 20,
    },
  },
  SynclineStartUnknown: {
    fires: { ...one(unknownStarts, rises), labels: 'policy="nightly"' },
    silent: { series: { [unknownStarts]: stays, [tasks("unknown")]: rises }, atMinute: 14 },
  },
  SynclinePolicyStale: {
    fires: { ...one(stale, "300x30", 12), labels: 'policy="nightly"' },
    silent: {
      series: { [stale]: "300x30", 'syncline_policy_paused{namespace="a",policy="nightly",cause="pause"}': "1x30" },
      atMinute: 12,
    },
  },
  SynclinePolicyQuarantined: {
    fires: one('syncline_policy_paused{namespace="a",policy="nightly",cause="quarantine"}', "1x30"),
    silent: one('syncline_policy_paused{namespace="a",policy="nightly",cause="pause"}', "1x30"),
  },
  SynclineNoScheduler: {
    fires: {
      series: { [build]: "1x30", [heartbeat("scheduler")]: "0+60x5 300x20", [heartbeat("worker")]: "0+60x30" },
      atMinute: 12,
      labels: 'namespace="a"',
    },
    silent: { series: { [build]: "1x30", [heartbeat("scheduler")]: "0+60x30" }, atMinute: 12 },
  },
  SynclineNoWorker: {
    fires: { series: { [build]: "1x30", [heartbeat("scheduler")]: "0+60x30" }, atMinute: 12, labels: 'namespace="a"' },
    silent: { series: { [build]: "1x30", [heartbeat("worker")]: "0+60x30" }, atMinute: 12 },
  },
  SynclineBacklogOld: {
    fires: { ...one(oldest, "0x30", 15), labels: 'queue="actions"' },
    silent: one(oldest, "0+60x30", 15),
  },
  SynclineRedisDown: {
    fires: one(own("redis_up"), "1x5 0x20"),
    silent: { series: { [own("redis_up")]: "0x30", 'syncline_redis_up{namespace="a",pod="q"}': "1x30" }, atMinute: 14 },
  },
  SynclineRedisUnsafe: { fires: one(own("redis_safe"), "1x5 0x20"), silent: one(own("redis_safe"), "1x30") },
  SynclineRedisChanged: {
    fires: one(own("redis_losses_total"), rises),
    silent: { series: { [own("redis_losses_total")]: stays, [own("redis_changes_total")]: stays }, atMinute: 14 },
  },
  SynclineConfigRejected: {
    fires: one(own("config_last_reload_successful"), "1x5 0x20"),
    silent: one(own("config_last_reload_successful"), "1x5 0x3 1x20"),
  },
  SynclineAuthFailing: {
    fires: { ...one(requests("unauthorized"), "0+1x30"), labels: 'service="main"' },
    silent: { series: { [requests("unauthorized")]: rises, [requests("server")]: "0+1x30" }, atMinute: 14 },
  },
  SynclineTokenExpiring: {
    fires: { series: { [expiry]: "1200x30", [renewals]: "0+1x30" }, atMinute: 14, labels: 'service="main"' },
    silent: { series: { [expiry]: "1200x30", [renewals]: stays }, atMinute: 14 },
  },
  SynclineBreakerOpen: {
    fires: { ...one(breaker, "1x30"), labels: 'service="main"' },
    silent: one(breaker, "0x8 1x3 0x20"),
  },
  SynclineLinkRefused: {
    fires: { ...one(links("refused"), rises), labels: 'service="main"' },
    silent: { series: { [links("refused")]: stays, [links("rebased")]: "0+1x30" }, atMinute: 14 },
  },
  SynclineTasksStalled: {
    fires: one(own("tasks_stalled_total"), rises),
    silent: { series: { [own("tasks_stalled_total")]: stays, [own("tasks_retried_total")]: "0+1x30" }, atMinute: 14 },
  },
  SynclineClockSkew: {
    fires: { ...one(own("clock_skew_seconds"), "-2.5x30"), labels: 'pod="p"' },
    silent: one(own("clock_skew_seconds"), "-0.4x30"),
  },
  SynclineEventLoopLag: {
    fires: { ...one(own("nodejs_eventloop_lag_p99_seconds"), "1.4x30"), labels: 'pod="p"' },
    silent: one(own("nodejs_eventloop_lag_p99_seconds"), "0.2x10 3x2 0.2x20"),
  },
  SynclineBug: { fires: one(own("bugs_total"), rises), silent: one(own("bugs_total"), stays) },
};
