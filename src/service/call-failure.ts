// Turns what came of an exchange into an answer or a ServiceError: the table of design §7. Called by call.ts. No I/O.
import { formatDuration } from "../core/duration.ts";
import type { HeldBy, Hold } from "../core/gate.ts";
import { errorExcerpt, safeHeader } from "./error-body.ts";
import { parseRetryAfter, statusKind } from "./failure-kind.ts";
import { documentedStatus, factsOf, type Operation } from "./operations.ts";
import { ServiceError, type ServiceErrorFields } from "./service-error.ts";
import { tlsHint } from "./tls-hint.ts";
import type { TokenError } from "./token.ts";
import type { AnswerHeaders, ExchangeResult } from "./transport.ts";

/** What identifies a call in an error; the path comes without its query. */
export interface CallFacts {
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
}

const whyHeld: Readonly<Record<HeldBy, string>> = {
  throttle: "the service asked for patience",
  breaker: "the service fails again and again, or this of it does",
  concurrency: "as many requests as limits.concurrency allows are under way",
  rate: "as many requests as limits.requestsPerSecond allows went out",
  token: "there is no token, and it is not asked for again before that",
};

/** Why a request did not go out, and for how long: whole seconds from one second on. */
export function tellHold({ heldBy, waitMs }: Hold): string {
  const roundedMs = waitMs < 1_000 ? waitMs : Math.ceil(waitMs / 1_000) * 1_000;
  return `held back for ${formatDuration(roundedMs)}: ${whyHeld[heldBy]}`;
}

interface Head {
  readonly status: number;
  readonly headers: AnswerHeaders;
}

type Failed = Extract<ExchangeResult, { type: "failure" }>;

/** Makes the errors of one call. */
export class CallFailure {
  readonly #call: CallFacts;
  readonly #token: string;
  readonly #nowMs: number;

  /** @param context the live token, so that it can be taken out of what the service says, and the wall clock. */
  constructor(call: CallFacts, context: { readonly token: string; readonly nowMs: number }) {
    this.#call = call;
    this.#token = context.token;
    this.#nowMs = context.nowMs;
  }

  /**
   * The answer, when its status is 2xx. For operations whose answer holds nothing the status is all: a body that was cut
   * or too long does not make their success unknown.
   * @throws ServiceError for everything else.
   */
  toAnswer(result: ExchangeResult): Head & { readonly text: string } {
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

  /** The answer is good by its status, but not what the interface says. */
  contract(problem: string, head: Head): ServiceError {
    return this.#error({ kind: "contract", sent: "maybe", problem: `status ${head.status}, but ${problem}` }, head);
  }

  /** Our own side stopped the call. */
  cancelled(sent: "no" | "maybe"): ServiceError {
    return this.#error({ kind: "cancelled", sent, problem: "stopped by the caller" });
  }

  /** Our own gate did not let the request out. */
  held(hold: Hold): ServiceError {
    const { heldBy, waitMs } = hold;
    return this.#error({ kind: "throttled", sent: "no", problem: tellHold(hold), retryAfterMs: waitMs, heldBy });
  }

  /** There was no token to send; after a 401, when there was none to renew. What a 401 refused was not done. */
  noToken(error: TokenError, status: number | undefined): ServiceError {
    const kind = error.temporary ? "unreachable" : "unauthorized";
    return this.#error({ kind, sent: "no", problem: `no usable token: ${error.message}`, status });
  }

  #status(head: Head, answer: string | undefined): ServiceError {
    const { status, headers } = head;
    const retryAfterMs = parseRetryAfter(headers, this.#nowMs);
    const redirect = status >= 300 && status < 400 ? " (a redirect, which is never followed)" : "";
    const problem = `the service answered with status ${status}${redirect}`;
    const kind = statusKind(status, retryAfterMs);
    return this.#error({ kind, sent: "maybe", problem, retryAfterMs, answer }, head);
  }

  #lost(result: Failed): ServiceError {
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

  #error(fields: Omit<ServiceErrorFields, keyof CallFacts>, head?: Head): ServiceError {
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
