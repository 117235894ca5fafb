// One call of an operation: token, limiter, exchange, renewal after a 401, retries of reads only.
// Called by client.ts. Every failure of service, token or limiter becomes a ServiceError; any other
// error is a bug. The token is attached here, per request, after the check of the final URL.

import { backoffMs, type Clock } from "../core/clock.ts";
import { createRateLimitedLog, type EventLog } from "../core/event-log.ts";
import { getOrMake } from "../core/get-or-make.ts";
import {
  type DeniedBy,
  type ExchangeEnding,
  isDenied,
  isOwnLimit,
  type Limiter,
  noEnding,
  type Permit,
} from "../core/limiter.ts";
import { notedLengthMin } from "../core/secrets.ts";
import { CallFailure } from "./call-failure.ts";
import { isPage } from "./error-body.ts";
import { factsOf, type Operation } from "./operations.ts";
import { isUnderBase, type ServiceBase } from "./request-url.ts";
import { ServiceError } from "./service-error.ts";
import {
  type Changes,
  type RequestEvent,
  type StartOptions,
  type Timeouts,
  timeoutsWithin,
  type UpdateOptions,
} from "./service-options.ts";
import { TokenError, type TokenSource } from "./token.ts";
import { type AnswerHeaders, type ExchangeResult, stuckCode, type Transport } from "./transport.ts";

/** What to send. */
export interface Call extends StartOptions, UpdateOptions {
  readonly operation: Operation;
  readonly url: URL;
  /** The resource key for the limiter; not asked for where the call brings its permit. */
  readonly resource: () => string;
  readonly isCount?: boolean | undefined;
  readonly body?: Changes | undefined;
}

/** An answer with a 2xx status. */
export interface Answer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly text: string;
}

/** The answer breaks the interface; becomes a ServiceError of kind `contract`. */
export class WrongShape extends Error {
  override readonly name = "WrongShape";
}

/** What every call of one service shares. */
export interface CallExecutorOptions {
  readonly base: ServiceBase;
  readonly token: TokenSource;
  readonly transport: Transport;
  readonly timeouts: Timeouts;
  readonly bodyBytesMax: number;
  readonly retries: number;
  readonly log: EventLog;
  readonly clock: Clock;
  readonly onRequest: ((event: RequestEvent) => void) | undefined;
  readonly limiter: Limiter | undefined;
  /** Aborts when the client is closed. */
  readonly closed: AbortSignal;
}

/** One call under way. */
interface Progress {
  readonly call: Call;
  readonly isRead: boolean;
  readonly signal: AbortSignal;
  tries: number;
  status: number | undefined;
  /** The permit of the next exchange, where there is one already. */
  permit: Permit | undefined;
}

interface SentRequest {
  readonly permit: Permit | undefined;
  readonly result: ExchangeResult;
}

const answeredEnding: ExchangeEnding = { kind: undefined, retryAfterMs: undefined };
const failedEnding: ExchangeEnding = { kind: "server", retryAfterMs: undefined };
const refusedEnding: ExchangeEnding = { kind: "unauthorized", retryAfterMs: undefined };

/** Makes the calls of one service. */
export class CallExecutor {
  readonly #options: CallExecutorOptions;
  readonly #tokenLog: EventLog;
  /** Errors of a waiting token source that the limiter has counted: each counts once. */
  readonly #counted = new WeakSet<TokenError>();
  /** By `abortBeforeSend`, one for all starts of a process: the signal that `close` aborts, too. */
  readonly #beforeSend = new WeakMap<AbortSignal, AbortSignal>();
  #hasWarnedOfShortToken = false;

  constructor(options: CallExecutorOptions) {
    this.#options = options;
    this.#tokenLog = createRateLimitedLog(options.log, options.clock, "");
  }

  /**
   * Makes one call and reads its answer with `read`.
   * @throws ServiceError of any kind but `paging`.
   */
  async call<T>(call: Call, read: (answer: Answer) => T): Promise<T> {
    const { clock, closed, onRequest } = this.#options;
    const { operation } = call;
    const { method } = factsOf(operation);
    const signal = call.signal === undefined ? closed : AbortSignal.any([closed, call.signal]);
    const isRead = method === "GET";
    const progress: Progress = { call, isRead, signal, tries: 0, status: undefined, permit: call.permit };
    const startedAtMs = clock.monotonicMs();
    const tell = (error?: ServiceError) => {
      const durationMs = clock.monotonicMs() - startedAtMs;
      const { tries, status } = progress;
      onRequest?.({ operation, method, status, kind: error?.kind, sent: error?.sent, durationMs, tries });
    };
    let value: T;
    try {
      value = await this.#retried(progress, read);
    } catch (error) {
      if (error instanceof ServiceError) tell(error);
      throw error;
    }
    tell();
    return value;
  }

  async #retried<T>(progress: Progress, read: (answer: Answer) => T): Promise<T> {
    const { clock, log, retries } = this.#options;
    let before: ServiceError | undefined;
    for (let round = 1; ; round += 1) {
      try {
        return await this.#once(progress, read);
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        // The earlier failure says more than that the limiter denies another try.
        if (before !== undefined && error.deniedBy !== undefined) throw before;
        before = error;
        const waitMs = retryWaitMs(error, { tries: round, retriesMax: retries });
        if (waitMs === undefined) throw error;
        const { operation, kind, status, path } = error;
        log.warn("request.retried", { operation, path, kind, status, try: round, waitMs });
        await clock.sleep(waitMs, progress.signal);
        if (progress.signal.aborted) throw this.#failure(progress).cancelled("maybe");
      }
    }
  }

  async #once<T>(progress: Progress, read: (answer: Answer) => T): Promise<T> {
    const { operation } = progress.call;
    let token = await this.#token(progress);
    let sent = await this.#send(progress, token);
    if (sent.result.status === 401) {
      const renewed = await this.#renewedToken(progress, token).catch(async (error: unknown) => {
        const isOurs = error instanceof ServiceError && error.kind === "cancelled";
        await sent.permit?.release(isOurs ? noEnding : refusedEnding);
        throw error;
      });
      if (renewed !== token) {
        // An expired token says nothing about the service; the answer to the new one does. A probe
        // keeps its permit: the limiter would deny another one for a whole period.
        if (sent.permit?.isProbe === true) progress.permit = sent.permit;
        else await sent.permit?.release(noEnding);
        // Refused means not carried out, so this repeat is safe for every method.
        this.#options.log.info("token.renewed", { operation });
        token = renewed;
        sent = await this.#send(progress, token);
      }
    }
    return readAndRelease(sent, this.#failure(progress, token), read);
  }

  async #token(progress: Progress): Promise<string> {
    const signal = this.#signalBeforeSend(progress);
    let token: string;
    try {
      token = await this.#options.token.get(signal);
    } catch (error) {
      const { permit } = progress;
      progress.permit = undefined;
      throw await this.#countedFailure(this.#toTokenError(progress, signal, error), progress, permit);
    }
    if (token.length < notedLengthMin && !this.#hasWarnedOfShortToken) {
      this.#hasWarnedOfShortToken = true;
      this.#tokenLog.warn("token.too-short", { characters: token.length, charactersMin: notedLengthMin });
    }
    return token;
  }

  /** A token after the service refused this one; it may be the same. */
  async #renewedToken(progress: Progress, refused: string): Promise<string> {
    const signal = this.#signalBeforeSend(progress);
    try {
      return await this.#options.token.renew(refused, signal);
    } catch (error) {
      throw this.#failure(progress).noToken(this.#toTokenError(progress, signal, error), progress.status);
    }
  }

  /** Aborts when the call ends, or when its request must not be sent any more. */
  #signalBeforeSend({ signal, call: { abortBeforeSend } }: Progress): AbortSignal {
    const { closed } = this.#options;
    if (abortBeforeSend === undefined) return signal;
    if (signal !== closed) return AbortSignal.any([signal, abortBeforeSend]);
    // Made once: both signals keep weak references to such a signal until it is collected.
    return getOrMake(this.#beforeSend, abortBeforeSend, () => AbortSignal.any([closed, abortBeforeSend]));
  }

  #toTokenError(progress: Progress, signal: AbortSignal, error: unknown): TokenError {
    if (signal.aborted) throw this.#failure(progress).cancelled("no");
    if (!(error instanceof TokenError)) throw error;
    this.#tokenLog.warn("token.unusable", { message: error.message });
    return error;
  }

  /**
   * Reports a missing token to the limiter, once for each try to get one: without it no request can
   * work. The limiter may deny the call as for a service that is down.
   */
  async #countedFailure(error: TokenError, progress: Progress, permit: Permit | undefined): Promise<ServiceError> {
    const { limiter, token } = this.#options;
    const failure = this.#failure(progress);
    const waitMs = token.restsForMs ?? 0;
    if (limiter !== undefined && waitMs > 0 && this.#counted.has(error)) {
      await permit?.release(noEnding);
      return failure.denied({ deniedBy: "token", waitMs });
    }
    // Set before the limiter answers: other calls with the same error ask it at the same time.
    this.#counted.add(error);
    const permitOrDenial =
      permit ?? (await limiter?.acquire({ isRead: progress.isRead, resource: progress.call.resource() }));
    if (permitOrDenial !== undefined && isDenied(permitOrDenial)) {
      this.#counted.delete(error);
      return failure.denied(permitOrDenial);
    }
    const noToken = failure.noToken(error, undefined);
    await permitOrDenial?.release(noToken);
    return noToken;
  }

  /** One exchange behind the limiter. The caller must release the permit. */
  async #send(progress: Progress, token: string): Promise<SentRequest> {
    const permit = await this.#acquire(progress);
    try {
      return { permit, result: await this.#exchange(progress, token) };
    } catch (error) {
      await permit?.release(noEnding);
      throw error;
    }
  }

  async #acquire(progress: Progress): Promise<Permit | undefined> {
    const { limiter, clock } = this.#options;
    const { call, isRead, permit, signal } = progress;
    progress.permit = undefined;
    if (limiter === undefined || permit !== undefined) return permit;
    for (let waitedMs = 0; ; ) {
      const permitOrDenial = await limiter.acquire({ isRead, resource: call.resource() });
      if (!isDenied(permitOrDenial)) return permitOrDenial;
      const waitMs = Math.max(permitOrDenial.waitMs, 1);
      waitedMs += waitMs;
      if (waitedMs > waitForLimiterMsMax({ isRead, isFollowUp: call.isFollowUp === true }, permitOrDenial.deniedBy))
        throw this.#failure(progress).denied(permitOrDenial);
      await clock.sleep(waitMs, signal);
      if (signal.aborted) throw this.#failure(progress).cancelled("no");
    }
  }

  async #exchange(progress: Progress, token: string): Promise<ExchangeResult> {
    const { base, timeouts, bodyBytesMax, transport, log } = this.#options;
    const { operation, url, body, timeoutMs, beforeSend, abortBeforeSend } = progress.call;
    if (!isUnderBase(url, base)) throw new Error("a request was about to leave the configured service");
    const { method } = factsOf(operation);
    progress.tries += 1;
    const result = await transport.send({
      ...{ method, url, bodyBytesMax, beforeSend, abortBeforeSend, signal: progress.signal },
      headers: toHeaders(progress.call, token),
      body: body === undefined ? undefined : JSON.stringify(body),
      isDedicated: method !== "GET",
      timeouts: timeoutMs === undefined ? timeouts : { ...timeouts, ...timeoutsWithin(timeoutMs) },
    });
    progress.status = result.status;
    if (result.type === "failure" && result.code === stuckCode)
      log.warn("request.stuck", { operation, method, path: url.pathname, sent: result.sent });
    return result;
  }

  #failure({ call: { operation, url } }: Progress, token = ""): CallFailure {
    const { method } = factsOf(operation);
    return new CallFailure({ operation, method, path: url.pathname }, { token, nowMs: this.#options.clock.nowMs() });
  }
}

/** Reads the answer, and tells the limiter what the exchange says about the service. */
async function readAndRelease<T>(
  { permit, result }: SentRequest,
  failure: CallFailure,
  read: (answer: Answer) => T,
): Promise<T> {
  let answer: Answer | undefined;
  try {
    answer = failure.toAnswer(result);
    const value = read(answer);
    // Not awaited: a success changes nothing for the next call, unless the service was thought to
    // be down.
    const released = permit?.release(answeredEnding);
    if (permit?.isProbe === true) await released;
    return value;
  } catch (error) {
    if (answer !== undefined && error instanceof WrongShape) {
      await permit?.release(isPage(answer.headers.contentType, answer.text) ? failedEnding : answeredEnding);
      throw failure.contract(error.message, answer);
    }
    await permit?.release(error instanceof ServiceError ? exchangeEndingOf(error) : noEnding);
    throw error;
  }
}

/**
 * A status that ends no request, as a redirect, is a proxy's: the service did not answer. A page
 * with 404 may be its own, and about one object.
 */
function exchangeEndingOf(error: ServiceError): ExchangeEnding {
  const { kind, status = 200 } = error;
  return kind === "contract" && (status < 200 || (status >= 300 && status !== 404)) ? failedEnding : error;
}

/** The headers of one request. Source: service-interface §4, §5; the rest is HTTP and OData. */
function toHeaders(call: Call, token: string): Record<string, string> {
  const { isCount, body, idempotencyKey, ifMatch } = call;
  return {
    authorization: `Bearer ${token}`,
    accept: isCount === true ? "application/json, text/plain;q=0.9, */*;q=0.1" : "application/json",
    "user-agent": "syncline",
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
    ...(ifMatch === undefined ? {} : { "if-match": ifMatch }),
  };
}

const backoff = { baseMs: 500, capMs: 10_000 } as const;

/** How long a read may wait in place. A longer wait goes back to the queue and frees the worker. */
const waitInPlaceMsMax = 2_000;

/**
 * Follow-up requests wait this long for the limiter. If they gave up, the first request would come
 * again and take the permit, and a tight limit would never let the second one out.
 */
export const followUpWaitMsMax = 15_000;

/** How long a request may wait in place for the limiter, in milliseconds. */
function waitForLimiterMsMax(
  { isRead, isFollowUp }: { readonly isRead: boolean; readonly isFollowUp: boolean },
  deniedBy: DeniedBy,
): number {
  if (isFollowUp && isOwnLimit(deniedBy)) return followUpWaitMsMax;
  return isRead ? waitInPlaceMsMax : 0;
}

/** What the decision depends on. */
export interface RetryState {
  /** Tries made so far, 1 or more. */
  readonly tries: number;
  /** Retries allowed after the first try. */
  readonly retriesMax: number;
  readonly random?: () => number;
}

/** The wait before the next try in milliseconds; undefined when the call fails now. */
export function retryWaitMs(error: ServiceError, state: RetryState): number | undefined {
  const { method, kind, deniedBy, retryAfterMs = 0 } = error;
  if (method !== "GET" || state.tries > state.retriesMax) return undefined;
  if (kind !== "throttled" && kind !== "unreachable" && kind !== "server" && kind !== "answer-lost") return undefined;
  // A denied request has waited in place already. A long wait belongs to the queue, which shares it
  // with every replica.
  if (deniedBy !== undefined || retryAfterMs > waitInPlaceMsMax) return undefined;
  return Math.max(retryAfterMs, backoffMs(backoff, state.tries, state.random));
}
