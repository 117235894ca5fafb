// Turns the result of an exchange into an answer or a ServiceError, by the table of
// docs/outcomes.md. Pure; called by call.ts.
import { formatDuration } from "../core/duration.ts";
import type { Denied, DeniedBy } from "../core/limiter.ts";
import { errorExcerpt, safeHeader } from "./error-body.ts";
import { parseRetryAfter, statusKind } from "./failure-kind.ts";
import { documentedStatus, factsOf, type Operation } from "./operations.ts";
import { ServiceError, type ServiceErrorFields } from "./service-error.ts";
import { tlsHint } from "./tls-hint.ts";
import type { TokenError } from "./token.ts";
import type { AnswerHeaders, ExchangeResult } from "./transport.ts";

/** What identifies a call in an error. The path has no query. */
export interface CallFacts {
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
}

const whyHeld: Readonly<Record<DeniedBy, string>> = {
  throttle: "the service asked for patience",
  breaker: "circuit breaker open: this service or resource keeps failing",
  concurrency: "limits.concurrency is reached",
  rate: "limits.requestsPerSecond is reached",
  token: "there is no token, and the next try to get one comes after that",
};

/** Why a request was not sent, and for how long: in whole seconds from one second on. */
export function describeDenied({ deniedBy, waitMs }: Denied): string {
  const roundedMs = waitMs < 1_000 ? waitMs : Math.ceil(waitMs / 1_000) * 1_000;
  return `blocked for ${formatDuration(roundedMs)}: ${whyHeld[deniedBy]}`;
}

function noAnswerOf(status: number): string {
  if (status < 200) return " (informational, so it ends no request: a proxy or another protocol answered)";
  return status >= 300 && status < 400 ? " (a redirect, which is never followed)" : "";
}

interface AnswerHead {
  readonly status: number;
  readonly headers: AnswerHeaders;
}

type FailedExchange = Extract<ExchangeResult, { type: "failure" }>;

/** Makes the errors of one call. */
export class CallFailure {
  readonly #call: CallFacts;
  readonly #token: string;
  readonly #nowMs: number;

  /** @param context the live token, to mask it in the service's words, and the wall clock. */
  constructor(call: CallFacts, context: { readonly token: string; readonly nowMs: number }) {
    this.#call = call;
    this.#token = context.token;
    this.#nowMs = context.nowMs;
  }

  /**
   * Returns the answer when its status is 2xx. For operations without an answer the status is
   * enough: a body that was cut or too long does not make their success unknown.
   * @throws ServiceError for everything else.
   */
  toAnswer(result: ExchangeResult): AnswerHead & { readonly text: string } {
    const isGood = result.status !== undefined && result.status >= 200 && result.status < 300;
    if (result.type === "answer") {
      if (isGood) return result;
      throw this.#status(result, errorExcerpt(result.text, this.#token));
    }
    const { status, headers } = result;
    const wantsNothing = factsOf(this.#call.operation).answer === "nothing";
    if (status !== undefined && isGood && wantsNothing) return { status, headers, text: "" };
    if (result.failure === "aborted") throw this.cancelled(result.sent);
    if (status !== undefined && !isGood) throw this.#status({ status, headers }, undefined);
    throw this.#lost(result);
  }

  /** The status is 2xx, but the answer breaks the interface. */
  contract(problem: string, head: AnswerHead): ServiceError {
    return this.#error({ kind: "contract", sent: "maybe", problem: `status ${head.status}, but ${problem}` }, head);
  }

  /** This process stopped the call. */
  cancelled(sent: "no" | "maybe"): ServiceError {
    return this.#error({ kind: "cancelled", sent, problem: "stopped by the caller" });
  }

  /** The limiter did not let the request out. */
  held(hold: Denied): ServiceError {
    const { deniedBy, waitMs } = hold;
    return this.#error({
      kind: "throttled",
      sent: "no",
      problem: describeDenied(hold),
      retryAfterMs: waitMs,
      deniedBy: deniedBy,
    });
  }

  /**
   * There was no token to send, or none to renew after a 401. A request that got a 401 was not
   * carried out.
   */
  noToken(error: TokenError, status: number | undefined): ServiceError {
    const kind = error.temporary ? "unreachable" : "unauthorized";
    return this.#error({ kind, sent: "no", problem: `no usable token: ${error.message}`, status });
  }

  #status(head: AnswerHead, answer: string | undefined): ServiceError {
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
    return this.#error({ kind: "unknown", sent, code, problem }, head);
  }

  #error(fields: Omit<ServiceErrorFields, keyof CallFacts>, head?: AnswerHead): ServiceError {
    const status = head?.status ?? fields.status;
    return new ServiceError({
      ...this.#call,
      ...fields,
      status,
      correlationId: safeHeader(head?.headers.correlationId, this.#token),
      documented: status === undefined ? undefined : documentedStatus(this.#call.operation, status),
    });
  }
}
