// Turns the result of an exchange into an answer or a ServiceError, by the table of
// docs/outcomes.md: kinds of statuses, waits, words. Pure.
import { formatDuration } from "../core/duration.ts";
import type { ErrorKind } from "../core/errors.ts";
import type { Denial, DeniedBy } from "../core/limiter.ts";
import { errorExcerpt, isPage, safeHeader } from "./error-body.ts";
import { documentedStatus, factsOf, type Operation } from "./operations.ts";
import { ServiceError, type ServiceErrorFields } from "./service-error.ts";
import { tlsHint } from "./tls-files.ts";
import type { TokenError } from "./token.ts";
import type { AnswerHeaders, ExchangeResult } from "./transport.ts";

/** What identifies a call in an error. The path has no query. */
export interface CallFacts {
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
}

const retryAfterMsMax = 15 * 60_000;
/** Two clocks that differ by more are not the same one. */
const clocksApartMs = 60_000;

const whyDenied: Readonly<Record<DeniedBy, string>> = {
  throttle: "the service throttles",
  breaker: "circuit breaker open: this service or resource keeps failing",
  concurrency: "limits.concurrency is reached",
  rate: "limits.requestsPerSecond is reached",
  redis: "Redis, which holds the limits, does not answer",
  token: "there is no token, and the next try to get one comes after that",
};

/** Why a request was not sent, and for how long. */
export function describeDenial({ deniedBy, waitMs }: Denial): string {
  const roundedMs = waitMs < 1_000 ? waitMs : Math.ceil(waitMs / 1_000) * 1_000;
  return `held back for ${formatDuration(roundedMs)}: ${whyDenied[deniedBy]}`;
}

function noAnswerOf(status: number): string {
  if (status < 200) return " (informational, so it ends no request: a proxy or another protocol answered)";
  return status >= 300 && status < 400 ? " (a redirect, which is never followed)" : "";
}

interface AnswerHead {
  readonly status: number;
  readonly headers: AnswerHeaders;
}

/**
 * Whether a 404, or a 400 for a read or an update, may be a proxy's, which has no way to the
 * service: it says nothing of what was asked for. `text`: undefined when the body was cut.
 */
function isProxyAnswer(method: string, { status, headers, text }: AnswerHead & { readonly text?: string }): boolean {
  const mayBePage = text === undefined ? /html/i.test(headers.contentType ?? "") : isPage(headers.contentType, text);
  if (status === 404) return headers.routerError !== undefined || mayBePage;
  return status === 400 && (method === "GET" || method === "PUT") && mayBePage;
}

const proxyProblem = "a web page, or the answer of a router, is not the service's word: check baseUrl";

type FailedExchange = Extract<ExchangeResult, { type: "failure" }>;

/** Makes the errors of one call. */
export class CallFailure {
  readonly #call: CallFacts;
  readonly #token: string;
  readonly #nowMs: number;

  /** `token`: the live one, to mask it in the service's words. */
  constructor(call: CallFacts, context: { readonly token: string; readonly nowMs: number }) {
    this.#call = call;
    this.#token = context.token;
    this.#nowMs = context.nowMs;
  }

  /** Returns the answer when its status is 2xx. @throws ServiceError for everything else. */
  toAnswer(result: ExchangeResult): AnswerHead & { readonly text: string } {
    const is2xx = result.status !== undefined && result.status >= 200 && result.status < 300;
    if (result.type === "answer") {
      if (is2xx) return result;
      throw this.#status(result, errorExcerpt(result.text, this.#token), isProxyAnswer(this.#call.method, result));
    }
    const { status, headers } = result;
    // A cut or too long body does not make such a success unknown, unless it may be a page.
    const mayBeCut = factsOf(this.#call.operation).answer === "nothing" && !/html/i.test(headers.contentType ?? "");
    if (status !== undefined && is2xx && mayBeCut) return { status, headers, text: "" };
    if (result.failure === "aborted") throw this.cancelled(result.sent);
    if (status !== undefined && !is2xx)
      throw this.#status({ status, headers }, undefined, isProxyAnswer(this.#call.method, { status, headers }));
    throw this.#lost(result);
  }

  /** The status is 2xx, but the answer breaks the interface. */
  contract(problem: string, head: AnswerHead): ServiceError {
    return this.#error({ kind: "contract", sent: "maybe", problem: `status ${head.status}, but ${problem}` }, head);
  }

  /** This process stopped the call. */
  cancelled(sent: "no" | "maybe"): ServiceError {
    return this.#error({ kind: "cancelled", sent, problem: "this process stopped it" });
  }

  /** The limiter did not let the request out. */
  denied(denied: Denial): ServiceError {
    const { deniedBy, waitMs: retryAfterMs } = denied;
    const problem = describeDenial(denied);
    return this.#error({ kind: "throttled", sent: "no", problem, retryAfterMs, deniedBy });
  }

  /** There was no token to send, or none after a 401, which says that nothing was carried out. */
  noToken(error: TokenError, status: number | undefined): ServiceError {
    const kind = error.temporary ? "unreachable" : "unauthorized";
    return this.#error({ kind, sent: "no", problem: `no usable token: ${error.message}`, status });
  }

  #status(head: AnswerHead, answer: string | undefined, isOfProxy: boolean): ServiceError {
    if (isOfProxy)
      return this.#error({ kind: "contract", sent: "maybe", problem: `status ${head.status}: ${proxyProblem}` }, head);
    const { status, headers } = head;
    const retryAfterMs = parseRetryAfter(headers, this.#nowMs);
    const problem = `the service answered with status ${status}${noAnswerOf(status)}`;
    const kind = statusKind(status, retryAfterMs);
    return this.#error({ kind, sent: "maybe", problem, retryAfterMs, answer }, head);
  }

  #lost(result: FailedExchange): ServiceError {
    const { code, sent, status, headers } = result;
    const head = status === undefined ? undefined : { status, headers };
    if (result.failure === "too-large") {
      return this.#error({ kind: "contract", sent, code, problem: "the answer is longer than allowed" }, head);
    }
    if (result.failure === "unreachable") {
      const why = result.why ?? tlsHint(code);
      const problem = `the service cannot be reached (${code})${why === undefined ? "" : `: ${why}`}; nothing was sent`;
      return this.#error({ kind: "unreachable", sent, code, problem });
    }
    const what = this.#call.method === "GET" ? "no whole answer came in time" : "the answer was lost";
    const problem = `${what} (${code})${this.#call.method === "GET" ? "" : "; the request may have been carried out"}`;
    return this.#error({ kind: "answer-lost", sent, code, problem }, head);
  }

  #error(fields: Omit<ServiceErrorFields, keyof CallFacts>, head?: AnswerHead): ServiceError {
    const status = head?.status ?? fields.status;
    return new ServiceError({
      ...this.#call,
      ...fields,
      status,
      correlationId: safeHeader(head?.headers.correlationId, this.#token),
      documented:
        status === undefined || fields.kind === "contract" ? undefined : documentedStatus(this.#call.operation, status),
    });
  }
}

/** The kind of a status outside 2xx. Source: docs/outcomes.md. */
export function statusKind(status: number, retryAfterMs: number | undefined): ErrorKind {
  if (status === 401) return "unauthorized";
  if (status === 403) return "forbidden";
  if (status === 404) return "not-found";
  if (status === 429) return "throttled";
  if (status === 503 && retryAfterMs !== undefined) return "throttled";
  // A proxy gave up, while the service may go on.
  if (status === 408 || status === 502 || status === 504) return "answer-lost";
  if (status >= 500) return "server";
  if (status === 400) return "bad-request";
  if (status >= 400) return "undocumented";
  return "contract";
}

/** Parses a Retry-After header: seconds or an HTTP date, as a wait of 0 to 15 minutes. */
export function parseRetryAfter(
  { retryAfter, date }: { readonly retryAfter: string | undefined; readonly date: string | undefined },
  nowMs: number,
): number | undefined {
  if (retryAfter === undefined) return undefined;
  const text = retryAfter.trim();
  if (/^\d+$/.test(text)) return clamp(Number(text) * 1_000);
  const untilMs = parseHttpDate(text);
  if (untilMs === undefined) return undefined;
  const dateMs = parseHttpDate(date) ?? nowMs;
  // By the answer's own clock where that is another one, else from the earlier date: the wait is
  // never too short. A wait that would be over by it is meant by another clock, as behind a proxy.
  const isAhead = dateMs - nowMs > clocksApartMs && untilMs >= dateMs;
  return clamp(untilMs - (isAhead ? dateMs : Math.min(nowMs, dateMs)));
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
