// One call of an operation: token, exchange, renewal after 401, retries of reads, and every failure as a ServiceError.
// Called by client.ts and pages.ts through SyncService. The token is attached here, per request, after the check of the final URL.
import type { Clock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";
import { type ExchangeEnding, type Gate, isHold, type Pass, unsaid } from "../core/gate.ts";
import { createSparingLog } from "../core/sparing-log.ts";
import { type CallFacts, CallFailure } from "./call-failure.ts";
import { factsOf, type Operation } from "./operations.ts";
import { type HeaderWishes, toHeaders } from "./request-headers.ts";
import { isUnderBase, type ServiceBase } from "./request-url.ts";
import { retryWaitMs, waitAtGateMsMax } from "./retry.ts";
import { ServiceError } from "./service-error.ts";
import type { RequestEvent, Timeouts } from "./service-options.ts";
import type { TokenSource } from "./token.ts";
import { TokenDesk } from "./token-desk.ts";
import type { AnswerHeaders, ExchangeResult, Transport } from "./transport.ts";

/** What to send. */
export interface Call extends HeaderWishes {
  readonly operation: Operation;
  readonly url: URL;
  /** For the gate: what this is about. */
  readonly subject: string;
  /** It goes on with what an earlier request began, and is waited for accordingly. */
  readonly goesOn?: boolean | undefined;
  readonly maySend?: (() => boolean) | undefined;
  readonly untilSent?: AbortSignal | undefined;
  /** For the first exchange, where the gate has been asked already. */
  readonly pass?: Pass | undefined;
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

/** The answer is not what the interface says; becomes a ServiceError of kind `contract`. */
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
  readonly gate: Gate | undefined;
  /** Aborts when the client is closed. */
  readonly closed: AbortSignal;
}

interface Progress {
  tries: number;
  status: number | undefined;
  signal: AbortSignal;
  pass: Pass | undefined;
}

/** Makes calls. */
export class Caller {
  readonly #parts: CallerParts;
  readonly #desk: TokenDesk;

  constructor(parts: CallerParts) {
    const { token, gate, log, clock } = parts;
    this.#parts = parts;
    this.#desk = new TokenDesk({ token, gate, log: createSparingLog(log, clock, "") });
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
        // What failed says more than that it may not be tried again now.
        if (before !== undefined && error.heldBy !== undefined) throw before;
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
        await sent.pass?.leave(error instanceof ServiceError && error.kind === "cancelled" ? unsaid : refused);
        throw error;
      });
      if (renewed !== token) {
        // A token that was rotated says nothing of the service; whether the new one is good does.
        await sent.pass?.leave(unsaid);
        // Refused means not done, so this repeat is safe for every method.
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

  /** An exchange behind the gate. Whoever gets it must leave the pass. */
  async #gated(call: Call, token: string, progress: Progress): Promise<Sent> {
    const pass = await this.#enter(call, progress);
    try {
      return { pass, result: await this.#exchange(call, token, progress) };
    } catch (error) {
      await pass?.leave(unsaid);
      throw error;
    }
  }

  async #enter(call: Call, progress: Progress): Promise<Pass | undefined> {
    const { gate, clock } = this.#parts;
    const given = progress.pass;
    progress.pass = undefined;
    if (gate === undefined || given !== undefined) return given;
    const isRead = factsOf(call.operation).method === "GET";
    const failure = this.#failure(call, "");
    for (let waitedMs = 0; ; ) {
      const answer = await gate.enter({ isRead, subject: call.subject });
      if (!isHold(answer)) return answer;
      const waitMs = Math.max(answer.waitMs, 1);
      waitedMs += waitMs;
      if (waitedMs > waitAtGateMsMax({ isRead, goesOn: call.goesOn === true }, answer.heldBy))
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
    return result;
  }

  #failure(call: Call, token: string): CallFailure {
    const { method } = factsOf(call.operation);
    const facts: CallFacts = { operation: call.operation, method, path: call.url.pathname };
    return new CallFailure(facts, { token, nowMs: this.#parts.clock.nowMs() });
  }
}

interface Sent {
  readonly pass: Pass | undefined;
  readonly result: ExchangeResult;
}

const refused: ExchangeEnding = { kind: "unauthorized", retryAfterMs: undefined };

async function judged({ pass, result }: Sent, failure: CallFailure): Promise<ReturnType<CallFailure["toAnswer"]>> {
  try {
    const answer = failure.toAnswer(result);
    // Nobody waits for it: that all is well is no news for what comes next, unless the service was thought to be down.
    const left = pass?.leave({ kind: undefined, retryAfterMs: undefined });
    if (pass?.isProbe === true) await left;
    return answer;
  } catch (error) {
    await pass?.leave(error instanceof ServiceError ? error : unsaid);
    throw error;
  }
}

function withTimeout(timeouts: Timeouts, timeoutMs: number): Timeouts {
  return { ...timeouts, socketMs: timeoutMs, responseMs: timeoutMs, readMs: timeoutMs, requestMs: timeoutMs };
}
