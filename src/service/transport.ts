// One HTTP exchange, the single door to got; it knows nothing of operations, tokens or retries. It
// never follows a redirect, never repeats a request, and never throws for a failure of the network
// or service.
// Two guarantees hold whatever a server sends and got or Node do: an exchange ends within 5 s of
// its time-out, and an error of its socket, parser or stream ends this exchange alone, never the
// process. Called by call.ts, oauth2-request.ts, ping.ts and notify/webhook.ts.
import type { ClientRequest, InformationEvent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Socket } from "node:net";
import got, { type PlainResponse, type Request, RequestError, TimeoutError } from "got";
import { countDown, withDeadline } from "../core/clock.ts";
import {
  type Connection,
  dedicatedConnection,
  type KeptAgents,
  keepAgents,
  keepHttpsAgent,
  NoConnection,
  pooledConnection,
} from "./connection.ts";
import type { Timeouts } from "./service-options.ts";
import { type TlsFiles, TlsFilesError, type TlsMaterial } from "./tls-files.ts";
import { isClientRefusal } from "./tls-hint.ts";

/** One request as it goes out. */
export interface Exchange {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /**
   * Use a dedicated connection, opened before and closed afterwards: a stale pooled socket would
   * make "surely not sent" uncertain.
   */
  readonly isFresh: boolean;
  readonly timeouts: Timeouts;
  readonly bodyBytesMax: number;
  /**
   * Asked once the fresh connection stands, right before the first byte; `false` ends it unsent.
   */
  readonly maySend?: (() => boolean) | undefined;
  readonly signal: AbortSignal;
  /** Ends it for as long as its request has not taken a fresh connection, and never after that. */
  readonly untilSent?: AbortSignal | undefined;
}

/** The headers of an answer that Syncline reads. */
export interface AnswerHeaders {
  readonly contentType: string | undefined;
  readonly retryAfter: string | undefined;
  readonly date: string | undefined;
  readonly correlationId: string | undefined;
  readonly etag: string | undefined;
}

/** The result of an exchange. */
export type ExchangeResult =
  | { readonly type: "answer"; readonly status: number; readonly headers: AnswerHeaders; readonly text: string }
  | {
      readonly type: "failure";
      /**
       * `unreachable`: surely not sent; `lost`: may be sent; `too-large`: the body passed its
       * limit; `aborted`: by this process.
       */
      readonly failure: "unreachable" | "lost" | "too-large" | "aborted";
      readonly sent: "no" | "maybe";
      readonly code: string;
      /** What is wrong with our own TLS files, when they are the cause. */
      readonly why?: string;
      /** The status, when it arrived before the failure. */
      readonly status: number | undefined;
      readonly headers: AnswerHeaders;
    };

/** The code of an exchange that the watchdog ended, since its own time-outs did not. */
export const stuckCode = "EXCHANGE_STUCK";

/** How long after its time-out the watchdog ends an exchange; 5 s are promised. */
const stuckAfterMs = 4_000;

const tooLarge = Symbol("too-large");
/**
 * Informational statuses that may precede the answer. Any other 1xx is no answer to the request
 * (RFC 9110 §15.2).
 */
const passingStatuses = new Set([100, 102, 103]);
/** How many of them may come. */
const passingMax = 100;
const noHeaders = toHeaders(undefined);
const notSent = { type: "failure", failure: "aborted", sent: "no", code: "ABORTED", status: undefined } as const;
const badFiles = { type: "failure", failure: "unreachable", sent: "no", code: "TLS_FILES", status: undefined } as const;

/** Constant options are set once: merging options is a good part of a request's cost. */
const client = got.extend({
  followRedirect: false,
  throwHttpErrors: false,
  decompress: true,
  http2: false,
  retry: { limit: 0 },
});

interface Agents {
  readonly kept: KeptAgents;
  readonly fresh: HttpsAgent;
}

/** What an exchange holds, to release all of it at any time. */
interface Line {
  readonly stop: AbortController;
  way?: Connection;
  stream?: Request;
  socket?: Socket;
}

/** Sends requests over pooled connections, or each over a dedicated one. */
export class Transport {
  readonly #keeping: { readonly keepAlive: true; readonly maxSockets: number; readonly maxFreeSockets: number };
  readonly #tls: TlsFiles | undefined;
  #kept: KeptAgents;
  /** Opens dedicated connections. One agent for all, so that TLS sessions are resumed. */
  #fresh = new HttpsAgent();
  #material: TlsMaterial | undefined;

  /**
   * @param maxSockets how many pooled connections may be open. @param tls certificates, where they
   * are not Node's own.
   */
  constructor(maxSockets: number, tls?: TlsFiles) {
    this.#keeping = { keepAlive: true, maxSockets, maxFreeSockets: maxSockets };
    this.#kept = keepAgents(this.#keeping);
    this.#tls = tls;
  }

  /**
   * Makes one exchange. Resolves with an answer of any status, or with the failure, at most 4 s
   * after its time-out: a library's promise may never settle.
   */
  async send(exchange: Exchange): Promise<ExchangeResult> {
    const line: Line = { stop: new AbortController() };
    const stuck = new Error(stuckCode);
    try {
      return await withDeadline(this.#make(exchange, line), exchange.timeouts.requestMs + stuckAfterMs, () => stuck);
    } catch (error) {
      if (error !== stuck) throw error;
      const { isOpen = false } = line.way ?? {};
      // Destroys the request, so that it cannot be sent any more.
      cut(line);
      const failure = { type: "failure", code: stuckCode, status: undefined, headers: noHeaders } as const;
      return isOpen
        ? { ...failure, failure: "lost", sent: "maybe" }
        : { ...failure, failure: "unreachable", sent: "no" };
    }
  }

  async #make(exchange: Exchange, line: Line): Promise<ExchangeResult> {
    const agents = await this.#agents(exchange);
    const { signal, untilSent } = exchange;
    const { stop } = line;
    if (signal.aborted || untilSent?.aborted === true || stop.signal.aborted) return { ...notSent, headers: noHeaders };
    if ("why" in agents) return { ...badFiles, why: agents.why, headers: noHeaders };
    const leftMs = countDown(exchange.timeouts.requestMs);
    let way: Connection | undefined;
    let isWhole = false;
    const onAbort = () => stop.abort();
    const onTooLate = () => {
      if (way?.isOpen !== true) stop.abort();
    };
    signal.addEventListener("abort", onAbort);
    untilSent?.addEventListener("abort", onTooLate);
    try {
      way = exchange.isFresh
        ? await dedicatedConnection(agents.fresh, { ...exchange, leftMs }, stop)
        : pooledConnection(agents.kept);
      line.way = way;
      const options = toGotOptions(exchange, { requestMs: leftMs(), signal: stop.signal });
      const stream = client.stream(exchange.url, { ...options, ...way.options });
      line.stream = stream;
      const noAnswer = untilNoAnswer(stream, line);
      // Without a body, the request is not sent before this line.
      if (exchange.method !== "GET" && exchange.body === undefined) stream.end();
      const result = await Promise.race([readAnswer(stream, exchange, stop), noAnswer]);
      isWhole = result.type === "answer" && result.status >= 200;
      return result;
    } catch (error) {
      // Some servers only reset the connection when they refuse a certificate.
      this.#tls?.expire();
      return toFailure(error, { exchange, signal: stop.signal, isHeldBack: way?.isOpen !== true });
    } finally {
      way?.socket?.destroy();
      // Reuse a pooled connection only after a whole answer.
      if (!isWhole) cut(line);
      signal.removeEventListener("abort", onAbort);
      untilSent?.removeEventListener("abort", onTooLate);
    }
  }

  /** Closes the pooled connections. */
  close(): void {
    this.#kept.http.destroy();
    this.#kept.https.destroy();
  }

  /** The agents for an exchange. Pooled connections end when the certificates change. */
  async #agents(exchange: Exchange): Promise<Agents | { readonly why: string }> {
    if (this.#tls !== undefined && exchange.url.protocol === "https:") {
      try {
        const material = await this.#tls.current();
        if (material !== this.#material) {
          if (this.#material !== undefined) retire(this.#kept.https);
          this.#material = material;
          this.#kept = { ...this.#kept, https: keepHttpsAgent({ ...this.#keeping, ...material }) };
          this.#fresh = new HttpsAgent({ ...material });
        }
      } catch (error) {
        if (error instanceof TlsFilesError) return { why: error.message };
        throw error;
      }
    }
    return { kept: this.#kept, fresh: this.#fresh };
  }
}

/** Lets running requests end, and keeps no connection afterwards. */
function retire(agent: HttpsAgent): void {
  agent.maxFreeSockets = 0;
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}

/** Releases all that an exchange holds, in whatever state its stream and sockets are. */
function cut({ stop, way, stream, socket }: Line): void {
  stop.abort();
  stream?.destroy();
  way?.socket?.destroy();
  socket?.destroy();
}

/**
 * Resolves early with a 1xx status that is no answer, whatever its socket does afterwards: got
 * listens to `upgrade`, so Node leaves the connection to its listener. Also listens to errors after
 * got has stopped listening, since Node ends the process over an unheard one.
 */
function untilNoAnswer(stream: Request, line: Line): Promise<ExchangeResult> {
  const ignore = () => {};
  stream.on("error", ignore);
  stream.on("response", (response: PlainResponse) => void response.on("error", ignore));
  return new Promise((resolve) => {
    const refuse = ({ statusCode, headers }: Pick<InformationEvent, "headers"> & { readonly statusCode?: number }) =>
      resolve({ type: "answer", status: statusCode ?? 0, headers: toHeaders({ headers }), text: "" });
    let passed = 0;
    stream.on("request", (request: ClientRequest) => {
      request.on("error", ignore);
      request.on("socket", (socket) => {
        line.socket = socket;
      });
      request.on("upgrade", refuse);
      request.on("information", (information) => {
        passed += 1;
        if (passed > passingMax || !passingStatuses.has(information.statusCode)) refuse(information);
      });
    });
  });
}

/**
 * Reads the body in chunks, so that the limit applies to decoded bytes. (got's `downloadProgress`
 * stops once a decoded body exceeds the Content-Length of its compressed form, so it cannot guard
 * against a compressed bomb.)
 */
async function readAnswer(stream: Request, exchange: Exchange, stop: AbortController): Promise<ExchangeResult> {
  let head: PlainResponse | undefined;
  stream.on("response", (response: PlainResponse) => {
    head = response;
  });
  const chunks: Uint8Array[] = [];
  let bodyBytes = 0;
  for await (const chunk of stream) {
    bodyBytes += chunk.length;
    if (bodyBytes > exchange.bodyBytesMax) {
      stop.abort(tooLarge);
      const failure = { type: "failure", failure: "too-large", sent: "maybe", code: "BODY_TOO_LARGE" } as const;
      return { ...failure, status: head?.statusCode, headers: toHeaders(head) };
    }
    chunks.push(chunk);
  }
  if (head === undefined) throw new Error("got ended a stream without a response");
  const text = new TextDecoder().decode(Buffer.concat(chunks));
  return { type: "answer", status: head.statusCode, headers: toHeaders(head), text };
}

function toGotOptions(
  exchange: Exchange,
  { requestMs, signal }: { readonly requestMs: number; readonly signal: AbortSignal },
) {
  const { timeouts } = exchange;
  return {
    method: exchange.method,
    // Without an agent Node does not know the default port and would add it here.
    headers: { host: exchange.url.host, ...exchange.headers },
    ...(exchange.body === undefined ? {} : { body: exchange.body }),
    signal,
    timeout: {
      lookup: timeouts.lookupMs,
      connect: timeouts.connectMs,
      secureConnect: timeouts.secureConnectMs,
      socket: timeouts.socketMs,
      send: timeouts.sendMs,
      response: timeouts.responseMs,
      read: timeouts.readMs,
      request: requestMs,
    },
  } as const;
}

interface FailureContext {
  readonly exchange: Exchange;
  readonly signal: AbortSignal;
  /** True while the request was not sent. */
  readonly isHeldBack: boolean;
}

function toFailure(error: unknown, { exchange, signal, isHeldBack }: FailureContext): ExchangeResult {
  if (error instanceof NoConnection) return notConnected(error.code, signal);
  // Only got's own errors concern the exchange; any other error is a bug and is thrown on.
  if (!(error instanceof RequestError)) throw error;
  const head = { status: error.response?.statusCode, headers: toHeaders(error.response) };
  const sent = isHeldBack || isSurelyNotSent(error, exchange) ? "no" : "maybe";
  const code = error instanceof TimeoutError ? `ETIMEDOUT (${error.event})` : error.code;
  if (signal.aborted) return { type: "failure", failure: "aborted", sent, code: "ABORTED", ...head };
  return { type: "failure", failure: sent === "no" ? "unreachable" : "lost", sent, code, ...head };
}

function notConnected(code: string, { aborted }: AbortSignal): ExchangeResult {
  const nothing = { type: "failure", sent: "no", status: undefined, headers: noHeaders } as const;
  return aborted ? { ...nothing, failure: "aborted", code: "ABORTED" } : { ...nothing, failure: "unreachable", code };
}

/** Whether no byte of the request left, or the server surely did not take it. */
function isSurelyNotSent({ response, code, timings }: RequestError, { isFresh, url }: Exchange): boolean {
  if (response !== undefined) return false;
  // The server refused our certificate in the handshake: it took no request, even if one was sent.
  if (isClientRefusal(code)) return true;
  // A dedicated connection was open before; got reports no timing of it.
  if (isFresh || timings?.upload !== undefined) return false;
  const ready = url.protocol === "https:" ? timings?.secureConnect : timings?.connect;
  return ready === undefined;
}

function toHeaders(response: Pick<PlainResponse, "headers"> | undefined): AnswerHeaders {
  const first = (name: string) => {
    const value = response?.headers[name];
    return Array.isArray(value) ? value[0] : value;
  };
  return {
    contentType: first("content-type"),
    retryAfter: first("retry-after"),
    date: first("date"),
    correlationId: first("x-correlation-id") ?? first("request-id") ?? first("x-request-id"),
    etag: first("etag"),
  };
}
