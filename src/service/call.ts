// One call of an operation: token, exchange, renewal after a 401, retries of reads. Every failure
// becomes a ServiceError. The token is attached here, per request, after the check of the final
// URL. Called by client.ts and pages.ts.
import type { Clock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";
import { type ExchangeEnding, isDenied, type Limiter, noVerdict, type Permit } from "../core/limiter.ts";
import { createRateLimitedLog } from "../core/rate-limited-log.ts";
import { notedLengthMin } from "../core/secrets.ts";
import { type CallFacts, CallFailure } from "./call-failure.ts";
import { factsOf, type Operation } from "./operations.ts";
import { isUnderBase, type ServiceBase } from "./request-url.ts";
import { retryWaitMs, waitForLimiterMsMax } from "./retry.ts";
import { ServiceError } from "./service-error.ts";
import type { RequestEvent, Timeouts } from "./service-options.ts";
import { TokenError, type TokenSource } from "./token.ts";
import { type AnswerHeaders, type ExchangeResult, stuckCode, type Transport } from "./transport.ts";

/** What to send. */
export interface Call extends HeaderWishes {
  readonly operation: Operation;
  readonly url: URL;
  /** The resource key for the limiter. */
  readonly subject: string;
  /** The call continues an earlier request, so it waits longer for the limiter. */
  readonly goesOn?: boolean | undefined;
  readonly maySend?: (() => boolean) | undefined;
  readonly untilSent?: AbortSignal | undefined;
  /** A permit for the first exchange, where the caller has acquired one already. */
  readonly pass?: Permit | undefined;
  /** Replaces the time-outs of the whole exchange, of the answer's head and of its body. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
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
export interface CallerParts {
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

interface Progress {
  tries: number;
  status: number | undefined;
  signal: AbortSignal;
  pass: Permit | undefined;
}

/** Makes calls. */
export class Caller {
  readonly #parts: CallerParts;
  readonly #desk: TokenProvider;

  constructor(parts: CallerParts) {
    const { token, limiter, log, clock } = parts;
    this.#parts = parts;
    this.#desk = new TokenProvider({ token, limiter, log: createRateLimitedLog(log, clock, "") });
  }

  /**
   * Makes one call and reads its answer with `read`.
   * @throws ServiceError of any kind but `paging`.
   */
  async call<T>(call: Call, read: (answer: Answer) => T): Promise<T> {
    const { clock, closed, onRequest } = this.#parts;
    const signal = call.signal === undefined ? closed : AbortSignal.any([closed, call.signal]);
    const progress: Progress = { tries: 0, status: undefined, signal, pass: call.pass };
    const { method } = factsOf(call.operation);
    const startedAtMs = clock.monotonicMs();
    let kind: RequestEvent["kind"];
    try {
      return await this.#retried(call, read, progress);
    } catch (error) {
      kind = error instanceof ServiceError ? error.kind : undefined;
      throw error;
    } finally {
      const durationMs = clock.monotonicMs() - startedAtMs;
      const { tries, status } = progress;
      onRequest?.({ operation: call.operation, method, status, kind, durationMs, tries });
    }
  }

  async #retried<T>(call: Call, read: (answer: Answer) => T, progress: Progress): Promise<T> {
    const { clock, log, retries } = this.#parts;
    const triesMax = retries + 1;
    let before: ServiceError | undefined;
    for (let round = 1; ; round += 1) {
      try {
        return await this.#once(call, read, progress);
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        // The earlier failure says more than that the limiter denies another try.
        if (before !== undefined && error.deniedBy !== undefined) throw before;
        if (round >= triesMax) throw error;
        before = error;
        const waitMs = retryWaitMs(error, { tries: round, retriesMax: retries });
        if (waitMs === undefined) throw error;
        const { operation, kind, status, path } = error;
        log.warn("request.retried", { operation, path, kind, status, try: round, waitMs });
        await clock.sleep(waitMs, progress.signal);
        if (progress.signal.aborted) throw this.#failure(call, "").cancelled("maybe");
      }
    }
  }

  async #once<T>(call: Call, read: (answer: Answer) => T, progress: Progress): Promise<T> {
    let token = await this.#token(call, progress);
    let sent = await this.#gated(call, token, progress);
    if (sent.result.status === 401) {
      const renewed = await this.#token(call, progress, token).catch(async (error: unknown) => {
        await sent.pass?.release(error instanceof ServiceError && error.kind === "cancelled" ? noVerdict : refused);
        throw error;
      });
      if (renewed !== token) {
        // An expired token says nothing about the service; the answer to the new one does.
        await sent.pass?.release(noVerdict);
        // Refused means not carried out, so this repeat is safe for every method.
        this.#parts.log.info("token.renewed", { operation: call.operation });
        token = renewed;
        sent = await this.#gated(call, token, progress);
      }
    }
    const failure = this.#failure(call, token);
    const answer = await judged(sent, failure);
    try {
      return read(answer);
    } catch (error) {
      if (error instanceof WrongShape) throw failure.contract(error.message, answer);
      throw error;
    }
  }

  async #token(call: Call, progress: Progress, refused?: string): Promise<string> {
    const { pass, status } = progress;
    const { subject, untilSent } = call;
    const signal = untilSent === undefined ? progress.signal : AbortSignal.any([progress.signal, untilSent]);
    const isRead = factsOf(call.operation).method === "GET";
    const wish = { isRead, subject, failure: this.#failure(call, ""), signal, pass };
    try {
      return await (refused === undefined ? this.#desk.get(wish) : this.#desk.renew(wish, { token: refused, status }));
    } catch (error) {
      progress.pass = undefined;
      throw error;
    }
  }

  /** One exchange behind the limiter. The caller must release the permit. */
  async #gated(call: Call, token: string, progress: Progress): Promise<Sent> {
    const pass = await this.#enter(call, progress);
    try {
      return { pass, result: await this.#exchange(call, token, progress) };
    } catch (error) {
      await pass?.release(noVerdict);
      throw error;
    }
  }

  async #enter(call: Call, progress: Progress): Promise<Permit | undefined> {
    const { limiter, clock } = this.#parts;
    const given = progress.pass;
    progress.pass = undefined;
    if (limiter === undefined || given !== undefined) return given;
    const isRead = factsOf(call.operation).method === "GET";
    const failure = this.#failure(call, "");
    for (let waitedMs = 0; ; ) {
      const answer = await limiter.acquire({ isRead, resource: call.subject });
      if (!isDenied(answer)) return answer;
      const waitMs = Math.max(answer.waitMs, 1);
      waitedMs += waitMs;
      if (waitedMs > waitForLimiterMsMax({ isRead, goesOn: call.goesOn === true }, answer.deniedBy))
        throw failure.held(answer);
      await clock.sleep(waitMs, progress.signal);
      if (progress.signal.aborted) throw failure.cancelled("no");
    }
  }

  async #exchange(call: Call, token: string, progress: Progress): Promise<ExchangeResult> {
    const { base, timeouts, bodyBytesMax, transport } = this.#parts;
    if (!isUnderBase(call.url, base)) throw new Error("a request was about to leave the configured service");
    const { method } = factsOf(call.operation);
    progress.tries += 1;
    const result = await transport.send({
      method,
      url: call.url,
      headers: toHeaders(call, token),
      body: call.body === undefined ? undefined : JSON.stringify(call.body),
      isFresh: method !== "GET",
      timeouts: call.timeoutMs === undefined ? timeouts : withTimeout(timeouts, call.timeoutMs),
      bodyBytesMax,
      maySend: call.maySend,
      signal: progress.signal,
      untilSent: call.untilSent,
    });
    progress.status = result.status;
    if (result.type === "failure" && result.code === stuckCode) {
      const { sent } = result;
      this.#parts.log.warn("request.stuck", { operation: call.operation, method, path: call.url.pathname, sent });
    }
    return result;
  }

  #failure(call: Call, token: string): CallFailure {
    const { method } = factsOf(call.operation);
    const facts: CallFacts = { operation: call.operation, method, path: call.url.pathname };
    return new CallFailure(facts, { token, nowMs: this.#parts.clock.nowMs() });
  }
}

interface Sent {
  readonly pass: Permit | undefined;
  readonly result: ExchangeResult;
}

const refused: ExchangeEnding = { kind: "unauthorized", retryAfterMs: undefined };

async function judged({ pass, result }: Sent, failure: CallFailure): Promise<ReturnType<CallFailure["toAnswer"]>> {
  try {
    const answer = failure.toAnswer(result);
    // Not awaited: a success changes nothing for the next call, unless the service was thought to
    // be down.
    const left = pass?.release({ kind: undefined, retryAfterMs: undefined });
    if (pass?.isProbe === true) await left;
    return answer;
  } catch (error) {
    await pass?.release(error instanceof ServiceError ? error : noVerdict);
    throw error;
  }
}

function withTimeout(timeouts: Timeouts, timeoutMs: number): Timeouts {
  return { ...timeouts, socketMs: timeoutMs, responseMs: timeoutMs, readMs: timeoutMs, requestMs: timeoutMs };
}

/** What the headers depend on. */
interface HeaderWishes {
  readonly isCount?: boolean | undefined;
  readonly body?: Readonly<Record<string, unknown>> | undefined;
  readonly idempotencyKey?: string | undefined;
  readonly ifMatch?: string | undefined;
  readonly pageSizeWish?: number | undefined;
}

/** The headers of one request. Source: service-interface §4, §5; the rest is HTTP and OData. */
function toHeaders(wishes: HeaderWishes, token: string): Record<string, string> {
  const { isCount, body, idempotencyKey, ifMatch, pageSizeWish } = wishes;
  return {
    authorization: `Bearer ${token}`,
    accept: isCount === true ? "application/json, text/plain;q=0.9, */*;q=0.1" : "application/json",
    "user-agent": "syncline",
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...(pageSizeWish === undefined ? {} : { prefer: `odata.maxpagesize=${pageSizeWish}` }),
    ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
    ...(ifMatch === undefined ? {} : { "if-match": ifMatch }),
  };
}

/** The call that wants a token. */
interface TokenWish {
  readonly isRead: boolean;
  readonly subject: string;
  /** Makes the errors of the call. */
  readonly failure: CallFailure;
  readonly signal: AbortSignal;
  /** The call's permit, if it has one: released when there is no token. */
  readonly pass: Permit | undefined;
}

/** What the token provider needs. */
interface TokenProviderOptions {
  readonly token: TokenSource;
  readonly limiter: Limiter | undefined;
  /** Gets `token.unusable` and `token.too-short`. */
  readonly log: EventLog;
}

/** Gives tokens to the calls of one service. */
class TokenProvider {
  readonly #parts: TokenProviderOptions;
  /**
   * While a source waits after a failure, it throws the same error to every caller: the limiter
   * counts it once.
   */
  readonly #counted = new WeakSet<TokenError>();
  #hasWarned = false;

  constructor(parts: TokenProviderOptions) {
    this.#parts = parts;
  }

  /**
   * The token to send now.
   * @throws ServiceError of kind `unreachable`, `unauthorized`, `throttled` (by the limiter) or
   * `cancelled`.
   */
  async get(wish: TokenWish): Promise<string> {
    try {
      return this.#looked(await this.#parts.token.get(wish.signal));
    } catch (error) {
      throw await this.#judged(this.#unusable(wish, error), wish);
    }
  }

  /**
   * A new token after the service refused this one.
   * @throws ServiceError of kind `unreachable`, `unauthorized` or `cancelled`.
   */
  async renew(
    wish: TokenWish,
    refused: { readonly token: string; readonly status: number | undefined },
  ): Promise<string> {
    try {
      return await this.#parts.token.renew(refused.token, wish.signal);
    } catch (error) {
      throw wish.failure.noToken(this.#unusable(wish, error), refused.status);
    }
  }

  /** Warns once when a token is too short to be masked in logs. */
  #looked(token: string): string {
    if (token.length < notedLengthMin && !this.#hasWarned) {
      this.#hasWarned = true;
      this.#parts.log.warn("token.too-short", { characters: token.length, charactersMin: notedLengthMin });
    }
    return token;
  }

  #unusable({ signal, failure }: TokenWish, error: unknown): TokenError {
    if (signal.aborted) throw failure.cancelled("no");
    if (!(error instanceof TokenError)) throw error;
    this.#parts.log.warn("token.unusable", { message: error.message });
    return error;
  }

  /**
   * Reports a missing token to the limiter: without a token no request to this service can work.
   * The limiter counts each try to get one, and may deny the call as for a service that is down. A
   * caller that gets an already counted error waits until the source is asked again.
   */
  async #judged(error: TokenError, { isRead, subject, failure, pass }: TokenWish) {
    const { limiter, token } = this.#parts;
    const waitMs = token.restsForMs ?? 0;
    if (limiter !== undefined && waitMs > 0 && this.#counted.has(error)) {
      await pass?.release(noVerdict);
      return failure.held({ deniedBy: "token", waitMs });
    }
    // Set before the limiter answers: other calls with the same error ask it at the same time.
    this.#counted.add(error);
    const answer = pass ?? (await limiter?.acquire({ isRead, resource: subject }));
    if (answer !== undefined && isDenied(answer)) {
      this.#counted.delete(error);
      return failure.held(answer);
    }
    const noToken = failure.noToken(error, undefined);
    await answer?.release(noToken);
    return noToken;
  }
}
