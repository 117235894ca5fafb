// Describes breakers, throttles, lists and processes for `syncline status`, `explain` and others.
// Pure.
import { formatRoughly } from "../core/duration.ts";
import { showInstant } from "../core/instant.ts";
import type { Feed } from "../model/feed.ts";
import type { Presence } from "../store/redis.ts";
import type { LimiterStatus } from "../store/service-limiter.ts";

/** Where a person finds the cure of a service that fails. */
export const doctorSaysMore = "`syncline doctor` says more";

/** The breaker: closed, or since when it is open, why, and when the next probe goes out. */
export function describeBreaker(status: LimiterStatus, nowMs: number): string {
  const { breaker, openSinceMs, nextProbeMs, failures, lastFailure } = status;
  if (breaker === "closed") return failures === 0 ? "closed" : `closed, ${failures} failed in a row (${lastFailure})`;
  const next = Math.max((nextProbeMs ?? nowMs) - nowMs, 0);
  const probe = next === 0 ? "the next read is a probe" : `next probe in ${formatRoughly(next)}`;
  return `open since ${showInstant(openSinceMs ?? nowMs)} (${lastFailure}), ${probe}`;
}

/** The throttle: `no`, or until when the service asked clients to wait. */
export function describeThrottle(status: LimiterStatus, nowMs: number): string {
  const { throttledUntilMs, throttledSinceMs = nowMs } = status;
  if (throttledUntilMs === undefined) return "no";
  const until = `until ${showInstant(throttledUntilMs)}`;
  if (nowMs - throttledSinceMs < againFromMs) return `${until}, for ${formatRoughly(throttledUntilMs - nowMs)}`;
  return `again and again since ${showInstant(throttledSinceMs)}, now ${until}`;
}

/**
 * How many requests are under way; undefined: they are not counted, since nothing limits them
 * (`limits.concurrency`).
 */
export function knownInFlight(
  { service, inFlight }: LimiterStatus & { readonly service: string },
  counted: ReadonlySet<string>,
): number | undefined {
  return inFlight > 0 || counted.has(service) ? inFlight : undefined;
}

const againFromMs = 60_000;

/** Whether a service asks for so long that a person should look. */
export function isThrottledLong({ throttledSinceMs }: LimiterStatus, nowMs: number): boolean {
  return throttledSinceMs !== undefined && nowMs - throttledSinceMs >= longThrottleMs;
}

const longThrottleMs = 600_000;

/** Why the limiter denies every request to a service now; undefined when it does not. */
export function describeDeniedBy(
  service: string,
  status: LimiterStatus,
  nowMs: number,
  baseUrl?: string,
): string | undefined {
  const where = baseUrl === undefined ? "" : ` at ${new URL(baseUrl).host}`;
  if (status.breaker === "open")
    return `service ${service}${where} counts as down: breaker ${describeBreaker(status, nowMs)}; ${doctorSaysMore}`;
  if (status.throttledUntilMs === undefined) return undefined;
  return `service ${service} throttles ${describeThrottle(status, nowMs)}`;
}

/** What does not happen without a process for a role; empty when both are alive. */
export function describeMissingRoles({ schedulers, workers }: Presence): readonly string[] {
  return [
    ...(schedulers === 0 ? ["no scheduler is alive: no slot is planned until one starts"] : []),
    ...(workers === 0 ? ["no worker is alive: nothing that is queued or in flight goes on until one starts"] : []),
  ];
}

/** How many processes with each role are alive. */
export function showPresence({ schedulers, workers }: Presence): string {
  return `${schedulers} with the role scheduler, ${workers} with the role worker`;
}

/** Names a list. */
export function showFeed({ list, service, repository }: Feed): string {
  return `${list} of ${service}${repository === null ? "" : `, repository ${repository}`}`;
}
