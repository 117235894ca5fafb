// For each alert, one course of events that fires it and one like it that does not. Read by
// test/chart/alerts.test.ts, which gives them to promtool.

/**
 * Series with their values at each minute from 0 on, in promtool's notation, and the minute at
 * which to look.
 */
export interface Course {
  readonly series: Readonly<Record<string, string>>;
  readonly atMinute: number;
}

/** What fires an alert, with labels that it must carry, and what leaves it silent. */
export interface AlertCase {
  readonly fires: Course & { readonly labels?: string };
  readonly silent: Course;
}

const build = 'syncline_build_info{namespace="a",job="s",pod="p"}';
const heartbeat = (role: string) => `syncline_heartbeat_timestamp_seconds{namespace="a",job="s",role="${role}"}`;
const troubled = (trouble: string) =>
  `syncline_policies_in_trouble{namespace="a",job="s",service="main",trouble="${trouble}"}`;
const outage = (alert: string, more = "") =>
  `ALERTS{namespace="a",job="s",alertname="${alert}",alertstate="firing",severity="critical"${more}}`;
const delay = (le: string) => `syncline_slot_delay_seconds_bucket{namespace="a",job="s",le="${le}"}`;
const requests = (outcome: string) =>
  `syncline_http_requests_total{namespace="a",job="s",service="main",operation="GetApprovals",outcome="${outcome}"}`;
const renewals = 'syncline_token_renewals_total{namespace="a",job="s",service="main",outcome="failed"}';
const expiry = 'syncline_token_expiry_timestamp_seconds{namespace="a",job="s",service="main"}';
const oldest = 'syncline_queue_oldest_timestamp_seconds{namespace="a",job="s",service="main",queue="actions"}';
const breaker = (cause: string) => `syncline_breaker_open{namespace="a",job="s",service="main",cause="${cause}"}`;
const throttles = 'syncline_throttles_total{namespace="a",job="s",service="main"}';
const links = (outcome: string) => `syncline_links_total{namespace="a",job="s",service="main",outcome="${outcome}"}`;
const dropped = 'syncline_sink_dropped_total{namespace="a",job="s",sink="ops"}';
const oldestNotice = 'syncline_sink_oldest_timestamp_seconds{namespace="a",job="s",sink="ops"}';
const deliveries = (result: string) =>
  `syncline_sink_deliveries_total{namespace="a",job="s",sink="ops",result="${result}"}`;
const own = (name: string) => `syncline_${name}{namespace="a",job="s",pod="p"}`;

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
    silent: { series: { [oldestNotice]: "0x30", [dropped]: "0x10 1x20" }, atMinute: 20 },
  },
  SynclineSlotMissed: {
    fires: one(troubled("missed"), "0x10 3x30", 20),
    silent: {
      series: { [troubled("missed")]: "0x10 3x30", [outage("SynclineNoScheduler")]: "1x10 _x30" },
      atMinute: 20,
    },
  },
  SynclineSlotsLate: {
    fires: { series: { [delay("30")]: "0+1x30", [delay("60")]: "0+10x30", [delay("+Inf")]: "0+10x30" }, atMinute: 20 },
    silent: {
      series: { [delay("30")]: "0+10x30", [delay("60")]: "0+10x30", [delay("+Inf")]: "0+10x30" },
      atMinute: 20,
    },
  },
  SynclineStartUnknown: {
    fires: { ...one(troubled("unknown"), "0x10 1x30", 20), labels: 'service="main"' },
    silent: {
      series: {
        [troubled("unknown")]: "0x10 1x30",
        [outage("SynclineBreakerOpen", ',service="main"')]: "1x12 _x30",
      },
      atMinute: 20,
    },
  },
  SynclinePolicyStale: {
    fires: { ...one(troubled("stale"), "0x10 9x30", 25), labels: 'service="main"' },
    silent: one(troubled("failing"), "0x5 9x10 0x5 9x10", 25),
  },
  SynclinePolicyFailing: {
    fires: { ...one(troubled("failing"), "0x10 1x30", 28), labels: 'service="main"' },
    silent: one(troubled("failing"), "0x10 1x10 0x2 1x10", 28),
  },
  SynclinePolicyLate: {
    fires: { ...one(troubled("late"), "0x5 2x30"), labels: 'service="main"' },
    silent: {
      series: { [troubled("late")]: "0x5 2x30", [outage("SynclineBreakerOpen", ',service="main"')]: "1x30" },
      atMinute: 14,
    },
  },
  SynclinePolicyQuarantined: {
    fires: { ...one(troubled("quarantined"), "0x5 2x30"), labels: 'service="main"' },
    // An outage that explains it is told within six minutes.
    silent: { series: { [troubled("quarantined")]: "0x5 2x30", [troubled("stale")]: "2x30" }, atMinute: 10 },
  },
  SynclineNoScheduler: {
    fires: {
      series: { [build]: "1x30", [heartbeat("scheduler")]: "0+60x5 300x20", [heartbeat("worker")]: "0+60x30" },
      atMinute: 12,
    },
    silent: {
      series: { [build]: "1x30", [heartbeat("scheduler")]: "0+60x5 300x20", [own("redis_up")]: "0x30" },
      atMinute: 12,
    },
  },
  SynclineNoWorker: {
    fires: { series: { [build]: "1x30", [heartbeat("scheduler")]: "0+60x30" }, atMinute: 12 },
    silent: { series: { [build]: "1x30", [heartbeat("worker")]: "0+60x30" }, atMinute: 12 },
  },
  SynclineWebDown: {
    fires: { series: { [build]: "1x30", [heartbeat("web")]: "0+60x10 _x20" }, atMinute: 25 },
    silent: { series: { [build]: "1x30", [heartbeat("worker")]: "0+60x10 _x20" }, atMinute: 25 },
  },
  SynclineSignInsFailing: {
    fires: one(own("web_sign_ins_failed_total"), "0+5x20"),
    silent: one(own("web_sign_ins_failed_total"), "0+1x20"),
  },
  SynclineBacklogOld: {
    fires: { ...one(oldest, "0x30", 15), labels: 'service="main"' },
    silent: one(oldest, "0+60x30", 15),
  },
  SynclineRedisDown: {
    fires: one(own("redis_up"), "1x5 0x20"),
    silent: {
      series: { [own("redis_up")]: "0x30", 'syncline_redis_up{namespace="a",job="s",pod="q"}': "1x30" },
      atMinute: 14,
    },
  },
  SynclineRedisUnsafe: {
    fires: one(own("redis_safe"), "1x5 0x20"),
    silent: { series: { [own("redis_safe")]: "1x5 0x20", [own("redis_up")]: "1x5 0x20" }, atMinute: 14 },
  },
  SynclineSharedMetricsDown: {
    fires: { series: { [own("shared_metrics_up")]: "1x5 0x20", [own("redis_up")]: "1x30" }, atMinute: 14 },
    silent: { series: { [own("shared_metrics_up")]: "1x5 0x20", [own("redis_up")]: "1x5 0x20" }, atMinute: 14 },
  },
  SynclineForeignOwner: {
    fires: one(own("foreign_owners"), "0x8 1 0x30"),
    silent: { series: { [own("foreign_owners")]: "0x8 1x30", [own("redis_safe")]: "1x8 0x30" }, atMinute: 14 },
  },
  SynclineConfigRejected: {
    fires: one(own("config_last_reload_successful"), "1x5 0x20"),
    silent: one(own("config_last_reload_successful"), "1x5 0x3 1x20"),
  },
  SynclineAuthFailing: {
    fires: { ...one(requests("unauthorized"), "0+1x30"), labels: 'service="main"' },
    // A breaker that was open for two scrapes: its old series counts on for two minutes.
    silent: {
      series: {
        [requests("unauthorized")]: rises,
        [requests("server")]: "0+1x30",
        [breaker("unauthorized")]: "_x9 1x1 stale _x20",
        [breaker("none")]: "0x8 stale _x1 0x20",
      },
      atMinute: 11,
    },
  },
  SynclineTokenExpiring: {
    fires: { series: { [expiry]: "1200x30", [renewals]: "0+1x30" }, atMinute: 14, labels: 'service="main"' },
    // A token that is not used any more, and one whose renewal failed once and then worked.
    silent: {
      series: {
        [expiry]: "0x30",
        [expiry.replace("}", ',instance="b"}')]: "1200x6 1300x24",
        [renewals.replace("}", ',instance="b"}')]: "0x6 1x24",
      },
      atMinute: 14,
    },
  },
  SynclineBreakerOpen: {
    fires: { ...one(breaker("server"), "1x30"), labels: 'service="main"' },
    // A closed breaker has another cause, and the series of the old one ends.
    silent: {
      series: {
        [breaker("server")]: "_x8 1x4 stale _x20",
        [breaker("none")]: "0x7 stale _x4 0x20",
        [breaker("unauthorized")]: "1x30",
      },
      atMinute: 13,
    },
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
    fires: one(own("clock_skew_seconds"), "-2.5x30"),
    silent: one(own("clock_skew_seconds"), "-0.4x30"),
  },
  SynclineEventLoopLag: {
    fires: one(own("nodejs_eventloop_lag_p99_seconds"), "1.4x30"),
    silent: one(own("nodejs_eventloop_lag_p99_seconds"), "0.2x10 3x2 0.2x20"),
  },
  SynclineBug: {
    // A young process, of which the 0 was never seen.
    fires: {
      series: { [own("bugs_total")]: "_x10 9x20", [own("process_start_time_seconds")]: "_x10 590x20" },
      atMinute: 14,
    },
    silent: { series: { [own("bugs_total")]: stays, [own("process_start_time_seconds")]: "-9000x30" }, atMinute: 14 },
  },
  SynclineConflicts: {
    fires: { ...one(troubled("conflicts"), "0x5 2x30"), labels: 'service="main"' },
    silent: { series: { [troubled("conflicts")]: "0x30", [troubled("failing")]: "2x30" }, atMinute: 14 },
  },
  SynclineDown: {
    fires: {
      series: { 'syncline_build_info{namespace="a",job="other"}': "1x30", [build]: "1x5 stale _x30" },
      atMinute: 12,
    },
    silent: { series: { [build]: "1x30" }, atMinute: 12 },
  },
  SynclineServiceThrottled: {
    fires: { ...one(throttles, "0+1x30", 20), labels: 'service="main"' },
    silent: one(throttles, "0x5 1x30", 20),
  },
  SynclineRedisChanged: {
    fires: one(own("redis_losses_total"), rises),
    silent: {
      series: {
        [own("redis_losses_total")]: stays,
        [own("redis_changes_total")]: rises,
        [outage("SynclineRedisDown")]: "1x9 _x20",
      },
      atMinute: 14,
    },
  },
};
