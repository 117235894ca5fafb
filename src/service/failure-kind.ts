// Maps an HTTP status to a kind of failure, and a Retry-After header to a wait. Pure; called by
// call.ts.
import type { ErrorKind } from "../core/error-kind.ts";

const retryAfterMsMax = 15 * 60_000;

/**
 * The kind of a status outside 2xx. A 408 counts as a lost answer: a proxy gave up, while the
 * service may go on. Source: docs/outcomes.md.
 */
export function statusKind(status: number, retryAfterMs: number | undefined): ErrorKind {
  if (status === 401) return "unauthorized";
  if (status === 403) return "forbidden";
  if (status === 404) return "not-found";
  if (status === 429) return "throttled";
  if (status === 503 && retryAfterMs !== undefined) return "throttled";
  if (status === 408 || status === 502 || status === 504) return "unknown";
  if (status >= 500) return "server";
  if (status === 400) return "bad-request";
  if (status >= 400) return "undocumented";
  return "contract";
}

/**
 * Parses a Retry-After header: seconds or an HTTP date, clamped to 0..15 min; undefined for
 * anything else. A date counts from the answer's own `date` where our clock is ahead of it, so the
 * wait is never too short.
 */
export function parseRetryAfter(
  { retryAfter, date }: { readonly retryAfter: string | undefined; readonly date: string | undefined },
  nowMs: number,
): number | undefined {
  if (retryAfter === undefined) return undefined;
  const text = retryAfter.trim();
  if (/^\d+$/.test(text)) return clamp(Number(text) * 1_000);
  const untilMs = parseHttpDate(text);
  return untilMs === undefined ? undefined : clamp(untilMs - Math.min(nowMs, parseHttpDate(date) ?? nowMs));
}

/** Date.parse accepts far more than HTTP dates ("1", "-1", "May"), so the form is checked first. */
function parseHttpDate(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[A-Z][a-z]{2,8}, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) return undefined;
  const dateMs = Date.parse(text);
  return Number.isNaN(dateMs) ? undefined : dateMs;
}

function clamp(waitMs: number): number {
  return Math.min(Math.max(waitMs, 0), retryAfterMsMax);
}
