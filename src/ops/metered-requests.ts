// Counts the calls of a service; never throws. Each client gets it as `onRequest`.
import type { ErrorKind } from "../core/error-kind.ts";
import type { RequestEvent } from "../service/service-options.ts";
import type { Metrics } from "./metrics.ts";

type StartOutcome = "accepted" | "refused" | "failed" | "unknown" | "not-sent";

/** What a failed start means, by its kind. */
const startOutcomes: Readonly<Record<ErrorKind, StartOutcome>> = {
  "bad-request": "refused",
  // service-interface §7 lists it for no start.
  "not-found": "unknown",
  unauthorized: "refused",
  forbidden: "refused",
  throttled: "refused",
  undocumented: "unknown",
  server: "failed",
  unreachable: "not-sent",
  cancelled: "not-sent",
  unknown: "unknown",
  contract: "unknown",
  paging: "unknown",
};

/** Makes the counter of one service's calls; undefined where nothing is counted. */
export function createRequestCounter(
  metrics: Metrics | undefined,
  service: string,
): ((event: RequestEvent) => void) | undefined {
  if (metrics === undefined) return undefined;
  return ({ operation, kind, durationMs, tries }) => {
    metrics.add("syncline_http_requests_total", { service, operation, requestOutcome: kind ?? "ok" });
    metrics.add("syncline_http_tries_total", { service }, tries);
    if (tries > 0) metrics.observe("syncline_http_request_duration_seconds", { service }, durationMs / 1_000);
    if (operation !== "RunSyncJob" && operation !== "EnableSyncJobById") return;
    // Without a try the request never left: the limiter denied it, or it was stopped before.
    const startOutcome = tries === 0 ? "not-sent" : kind === undefined ? "accepted" : startOutcomes[kind];
    metrics.add("syncline_starts_total", { service, startOutcome });
    if (startOutcome !== "not-sent")
      metrics.observe("syncline_start_duration_seconds", { service }, durationMs / 1_000);
  };
}
