// Counts events of the log, whatever its level, and calls of the services. So tasks/, schedule/ and
// service/ know nothing of metrics.
import { systemClock } from "../core/clock.ts";
import type { ErrorKind } from "../core/errors.ts";
import type { EventFields, EventLog } from "../core/event-log.ts";
import type { RequestEvent } from "../service/service-options.ts";
import type { Metrics } from "./metrics.ts";

type Count = (metrics: Metrics, field: (name: string) => string, number: (name: string) => number) => void;

const reloaded: Count = (metrics) => {
  metrics.set("syncline_config_last_reload_successful", {}, 1);
  metrics.set("syncline_config_last_reload_success_timestamp_seconds", {}, systemClock.nowMs() / 1_000);
};

const slot =
  (slotOutcome: string): Count =>
  (metrics, field) =>
    metrics.add("syncline_slots_total", { policy: field("policy"), slotOutcome });

// The events of these are logged at most once a minute; each line says how many were left out
// before it.
const link =
  (how: string): Count =>
  (metrics, field, number) =>
    metrics.add("syncline_links_total", { service: field("service"), link: how }, 1 + number("leftOut"));

const renewal =
  (how: string): Count =>
  (metrics, field, number) =>
    metrics.add("syncline_token_renewals_total", { service: field("service"), renewal: how }, 1 + number("leftOut"));

const startKinds: ReadonlySet<string> = new Set(["run", "activate", "delete"]);

/** What each event counts as. A test compares the names with docs/log-events.md. */
export const countedEvents: Readonly<Record<string, Count>> = {
  "slot.queued": (metrics, field, number) => {
    slot("started")(metrics, field, number);
    // A slot that waited for another policy is not late.
    if (field("after") === "") metrics.observe("syncline_slot_delay_seconds", {}, number("delayMs") / 1_000);
  },
  "slot.coalesced": slot("coalesced"),
  "slot.missed": slot("missed"),
  "slot.skipped": slot("skipped"),
  "slot.repaired": (metrics) => metrics.add("syncline_slots_repaired_total", {}),
  "task.finished": (metrics, field, number) => {
    const policy = field("policy");
    metrics.add("syncline_tasks_total", { policy, status: field("status") });
    const isCounted = field("reason") !== "no-evidence" && field("reason") !== "cancelled";
    if (field("status") === "unknown" && startKinds.has(field("kind")) && isCounted)
      metrics.add("syncline_unknown_starts_total", { policy });
    // One that was told while it went on is counted already.
    if (field("unusual") !== "" && field("toldLong") === "") metrics.add("syncline_unusual_runs_total", { policy });
    metrics.add("syncline_new_conflicts_total", { policy }, number("newConflicts"));
    if (field("startedAt") !== "")
      metrics.observe("syncline_settle_duration_seconds", { kind: field("kind") }, number("durationMs") / 1_000);
  },
  "run.long": (metrics, field) => metrics.add("syncline_unusual_runs_total", { policy: field("policy") }),
  "task.sent-again": (metrics) => metrics.add("syncline_starts_repeated_total", {}),
  "start.unwritten": (metrics) => metrics.add("syncline_starts_unwritten_total", {}),
  "task.retried": (metrics) => metrics.add("syncline_tasks_retried_total", {}),
  "task.stalled": (metrics) => metrics.add("syncline_tasks_stalled_total", {}),
  "task.abandoned": (metrics) => metrics.add("syncline_tasks_abandoned_total", {}),
  "bug.caught": (metrics) => metrics.add("syncline_bugs_total", {}),
  "feed.mapping-failing": (metrics, field, number) =>
    metrics.add(
      "syncline_feed_mapping_failures_total",
      { service: field("service"), list: field("list") },
      number("failures"),
    ),
  "list.read-again": (metrics, field) => {
    const [service, reader, againResult] = [field("service"), field("reader"), field("result")];
    metrics.add("syncline_lists_read_again_total", { service, reader, againResult });
  },
  "service.throttled": (metrics, field) => metrics.add("syncline_throttles_total", { service: field("service") }),
  "breaker.opened": (metrics, field) => metrics.add("syncline_breaker_openings_total", { service: field("service") }),
  "request.stuck": (metrics, field) =>
    metrics.add("syncline_http_exchanges_stuck_total", { service: field("service") }),
  "token.renewed": renewal("renewed"),
  "token.renewal-failed": renewal("failed"),
  "notice.queued": (metrics, field) => metrics.add("syncline_notices_total", { noticeKind: field("kind") }),
  "notifier.dropped": (metrics, _, number) => metrics.add("syncline_notifications_dropped_total", {}, number("count")),
  "heartbeat.failed": (metrics, field) =>
    metrics.add("syncline_policy_heartbeats_failed_total", { policy: field("policy") }),
  "link.rebased": link("rebased"),
  "link.refused": link("refused"),
  "redis.changed": (metrics) => metrics.add("syncline_redis_changes_total", {}),
  "redis.loss-detected": (metrics) => metrics.add("syncline_redis_losses_total", {}),
  "redis.not-replicated": (metrics, _, number) =>
    metrics.add("syncline_redis_unreplicated_total", {}, 1 + number("leftOut")),
  "serve.ready": reloaded,
  "config.reloaded": reloaded,
  "config.recovered": reloaded,
  "config.rejected": (metrics) => metrics.set("syncline_config_last_reload_successful", {}, 0),
};

/** Wraps a log: counts, and passes everything on. */
export function createMeteredLog(log: EventLog, metrics: Metrics): EventLog {
  const count = (event: string, fields: EventFields = {}) => {
    const counted = Object.hasOwn(countedEvents, event) ? countedEvents[event] : undefined;
    counted?.(
      metrics,
      (name) => String(fields[name] ?? ""),
      (name) => (typeof fields[name] === "number" ? Number(fields[name]) : 0),
    );
  };
  const write = (level: keyof EventLog) => (event: string, fields?: EventFields) => {
    count(event, fields);
    log[level](event, fields);
  };
  return { info: write("info"), warn: write("warn"), error: write("error") };
}

type StartOutcome = "accepted" | "refused" | "failed" | "unknown" | "not-sent";

/** What a failed start means as a rule, by its kind. */
const startOutcomes: Readonly<Record<ErrorKind, StartOutcome>> = {
  "bad-request": "refused",
  // service-interface §7 lists it for deletions alone.
  "not-found": "unknown",
  unauthorized: "refused",
  forbidden: "refused",
  throttled: "refused",
  undocumented: "unknown",
  server: "failed",
  unreachable: "not-sent",
  cancelled: "not-sent",
  "answer-lost": "unknown",
  contract: "unknown",
  paging: "unknown",
};

const startOperations: ReadonlySet<string> = new Set(["RunSyncJob", "EnableSyncJobById", "DeleteSyncJobById"]);

function startOutcomeOf({ operation, kind, sent, status, tries }: RequestEvent): StartOutcome {
  // Without a try the request never left: the limiter denied it, or it was stopped before.
  if (tries === 0) return "not-sent";
  if (kind === undefined) return "accepted";
  if (kind === "cancelled" && sent === "maybe") return "unknown";
  if (operation === "DeleteSyncJobById") {
    if (kind === "not-found") return "refused";
    // A gateway may say so of a deletion that happened.
    if (kind === "throttled" && status === 503) return "failed";
  }
  return startOutcomes[kind];
}

/** Makes the counter of one service's calls; undefined where nothing is counted. */
export function createRequestCounter(
  metrics: Metrics | undefined,
  service: string,
): ((event: RequestEvent) => void) | undefined {
  if (metrics === undefined) return undefined;
  return (event) => {
    const { operation, kind, durationMs, tries } = event;
    metrics.add("syncline_http_requests_total", { service, operation, requestOutcome: kind ?? "ok" });
    metrics.add("syncline_http_tries_total", { service }, tries);
    if (tries > 0) metrics.observe("syncline_http_request_duration_seconds", { service }, durationMs / 1_000);
    if (!startOperations.has(operation)) return;
    const startOutcome = startOutcomeOf(event);
    metrics.add("syncline_starts_total", { service, startOutcome });
    if (startOutcome !== "not-sent")
      metrics.observe("syncline_start_duration_seconds", { service }, durationMs / 1_000);
  };
}
