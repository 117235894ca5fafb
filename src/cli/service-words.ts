// What is said of a service's breaker and throttle, by `syncline status` and `syncline explain`. Pure.
import { formatDuration } from "../core/duration.ts";
import type { GateStatus } from "../store/gate-status.ts";
import { showInstant } from "./table.ts";

/** The breaker: closed, with the failures in a row if there are any, or since when it is open, why, and when the next probe goes out. */
export function tellBreaker(
  { breaker, openSinceMs, nextProbeMs, failures, lastFailure }: GateStatus,
  nowMs: number,
): string {
  if (breaker === "closed") return failures === 0 ? "closed" : `closed, ${failures} failed in a row (${lastFailure})`;
  const next = Math.max((nextProbeMs ?? nowMs) - nowMs, 0);
  return `open since ${showInstant(openSinceMs ?? nowMs)} (${lastFailure}), next probe in ${roughly(next)}`;
}

/** The throttle: `no`, or until when the service asked for patience. */
export function tellThrottle({ throttledUntilMs }: GateStatus, nowMs: number): string {
  return throttledUntilMs === undefined
    ? "no"
    : `until ${showInstant(throttledUntilMs)}, for ${roughly(throttledUntilMs - nowMs)}`;
}

/** Why tasks of a service are held back right now, or nothing when they are not. */
export function tellHeld(service: string, status: GateStatus, nowMs: number): string | undefined {
  if (status.breaker === "open") return `service ${service} counts as down: breaker ${tellBreaker(status, nowMs)}`;
  if (status.throttledUntilMs === undefined) return undefined;
  return `service ${service} asked for patience ${tellThrottle(status, nowMs)}`;
}

function roughly(durationMs: number): string {
  const unitMs = durationMs > 120_000 ? 60_000 : 1_000;
  return formatDuration(Math.ceil(durationMs / unitMs) * unitMs);
}
