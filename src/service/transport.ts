// One HTTP exchange, the single door to got; it knows nothing of operations, tokens or retries. It
// never follows a redirect, never repeats a request, and never throws for a failure of the network
// or service. Whatever a server sends and got or Node do: an exchange ends within 5 s of its
// time-out, and an error of its socket, parser or stream ends this exchange alone, never the
// process. Called by call.ts, oauth2-token.ts, ping.ts and notify/webhook.ts.
import type { ClientRequest, InformationEvent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Socket } from "node:net";
import got, { type PlainResponse, type Request, RequestError, TimeoutError } from "got";
import { countDown, withTimeLimit } from "../core/clock.ts";
import {
  type Connection,
  dedicatedConnection,
  NoConnection,
  type PooledAgents,
  PooledHttpAgent,
  PooledHttpsAgent,
} from "./connection.ts";
import type { Timeouts } from "./service-options.ts";
import { isClientRefusal, type TlsFiles, TlsFilesError, type TlsMaterial } from "./tls-files.ts";

/** One request as it goes out. */
export interface Exchange {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** A connection of its own: a stale pooled one would make "surely not sent" uncertain. */
  readonly isDedicated: boolean;
  readonly timeouts: Timeouts;
  readonly bodyBytesMax: number;
  /** Asked on the open dedicated connection, before the first byte; `false` ends it unsent. */
  readonly beforeSend?: (() => boolean) | undefined;
  readonly signal: AbortSignal;
  /** Ends it as long as its request has not taken the dedicated connection, and never after. */
  readonly abortBeforeSend?: AbortSignal | undefined;
}

/** The headers of an answer that Syncline reads. */
export interface AnswerHeaders {
  readonly contentType: string | undefined;
  readonly retryAfter: string | undefined;
  readonly date: string | undefined;
  readonly correlationId: string | undefined;
  readonly etag: string | undefined;
  /** Set by the router of Cloud Foundry where it answers itself. */
  readonly routerError: string | undefined;
}

/** The result of an exchange. */
export type ExchangeResult =
  | { readonly type: "answer"; readonly status: number; readonly headers: AnswerHeaders; readonly text: string }
  | {
      readonly type: "failure";
      /**
       * `unreachable`: surely not sent; `lost`: may be sent; `too-large`: the answer is longer than
       * allowed; `aborted`: by this process.
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
/** One for all, since only its identity counts: an error for each exchange costs a stack trace. */
const stuck = new Error(stuckCode);

const tooLarge = Symbol("too-large");
const utf8 = new TextDecoder();
/** Informational statuses that may precede the answer; any other 1xx is none (RFC 9110 §15.2). */
const passingStatuses = new Set([100, 102, 103]);
const passingMax = 100;
const noHeaders = toHeaders(undefined);
const notSent = { type: "failure", failure: "aborted", sent: "no", code: "ABORTED", status: undefined } as const;
const badFiles = { type: "failure", failure: "unreachable", sent: "no", code: "TLS_FILES", status: undefined } as const;

/** Constant options are set once: merging options is a large part of a request's cost. */
const client = got.extend({
  followRedirect: false,
  throwHttpErrors: false,
  decompress: true,
  http2: false,
  retry: { limit: 0 },
});

interface Agents {
  readonly pooled: PooledAgents;
  /** Opens dedicated connections. One agent for all, so that TLS sessions are resumed. */
  readonly dedicated: HttpsAgent;
}

/** What an exchange holds, to release all of it at any time. */
interface Held {
  readonly stop: AbortController;
  connection?: Connection;
  stream?: Request;
  socket?: Socket;
  /** The answer, when it was a 1xx that ends no request. */
  refused?: ExchangeResult;
}

/** Sends requests over pooled connections, or each over a dedicated one. */
export class Transport {
  readonly #keeping: { readonly keepAlive: true; readonly maxSockets: number; readonly maxFreeSockets: number };
  readonly #tls: TlsFiles | undefined;
  #agents: Agents;
  #material: TlsMaterial | undefined;

  /** `maxSockets`: of pooled connections. `tls`: certificates, where they are not Node's own. */
  constructor(maxSockets: number, tls?: TlsFiles) {
    this.#keeping = { keepAlive: true, maxSockets, maxFreeSockets: maxSockets };
    const pooled = { http: new PooledHttpAgent(this.#keeping), https: new PooledHttpsAgent(this.#keeping) };
    this.#agents = { pooled, dedicated: new HttpsAgent() };
    this.#tls = tls;
  }

  /** Makes one exchange, and ends it after its time-out: a library's promise may never settle. */
  async send(exchange: Exchange): Promise<ExchangeResult> {
    const held: Held = { stop: new AbortController() };
    try {
      return await withTimeLimit(this.#make(exchange, held), exchange.timeouts.requestMs + stuckAfterMs, () => stuck);
    } catch (error) {
      if (error !== stuck) throw error;
      const { isTaken = false } = held.connection ?? {};
      // Destroys the request, so that it cannot be sent any more.
      cut(held);
      const failure = { type: "failure", code: stuckCode, status: undefined, headers: noHeaders } as const;
      return isTaken
        ? { ...failure, failure: "lost", sent: "maybe" }
        : { ...failure, failure: "unreachable", sent: "no" };
    }
  }

  async #make(exchange: Exchange, held: Held): Promise<ExchangeResult> {
    const agents = await this.#currentAgents(exchange);
    const { signal, abortBeforeSend } = exchange;
    const { stop } = held;
    if (signal.aborted || abortBeforeSend?.aborted === true || stop.signal.aborted)
      return { ...notSent, headers: noHeaders };
    if ("why" in agents) return { ...badFiles, why: agents.why, headers: noHeaders };
    const leftMs = countDown(exchange.timeouts.requestMs);
    let connection: Connection | undefined;
    let isWhole = false;
    const onAbort = () => stop.abort();
    const onTooLate = () => {
      if (connection?.isTaken !== true) stop.abort();
    };
    signal.addEventListener("abort", onAbort);
    abortBeforeSend?.addEventListener("abort", onTooLate);
    try {
      connection = exchange.isDedicated
        ? await dedicatedConnection(agents.dedicated, { ...exchange, leftMs }, stop)
        : { options: { agent: agents.pooled }, isTaken: true };
      held.connection = connection;
      const options = toGotOptions(exchange, { requestMs: leftMs(), signal: stop.signal });
      const stream = client.stream(exchange.url, { ...options, ...connection.options });
      held.stream = stream;
      refuseNoAnswer(stream, held);
      // Without a body, the request is not sent before this line.
      if (exchange.method !== "GET" && exchange.body === undefined) stream.end();
      const result = await readAnswer(stream, exchange, stop);
      isWhole = result.type === "answer" && result.status >= 200;
      return result;
    } catch (error) {
      if (held.refused !== undefined) return held.refused;
      // Some servers only reset the connection when they refuse a certificate.
      this.#tls?.expire();
      return toFailure(error, { exchange, signal: stop.signal, isUnsent: connection?.isTaken !== true });
    } finally {
      connection?.socket?.destroy();
      // Reuse a pooled connection only after a whole answer.
      if (!isWhole) cut(held);
      signal.removeEventListener("abort", onAbort);
      abortBeforeSend?.removeEventListener("abort", onTooLate);
    }
  }

  /** Closes the pooled connections. */
  close(): void {
    this.#agents.pooled.http.destroy();
    this.#agents.pooled.https.destroy();
  }

  /** The agents for an exchange. Pooled connections end when the certificates change. */
  async #currentAgents({ url }: Exchange): Promise<Agents | { readonly why: string }> {
    if (this.#tls === undefined || url.protocol !== "https:") return this.#agents;
    try {
      const material = await this.#tls.current();
      if (material === this.#material) return this.#agents;
      const { http, https } = this.#agents.pooled;
      if (this.#material !== undefined) retire(https);
      this.#material = material;
      const pooled = { http, https: new PooledHttpsAgent({ ...this.#keeping, ...material }) };
      this.#agents = { pooled, dedicated: new HttpsAgent({ ...material }) };
      return this.#agents;
    } catch (error) {
      if (error instanceof TlsFilesError) return { why: error.message };
      throw error;
    }
  }
}

/** Lets running requests end, and keeps no connection afterwards. */
function retire(agent: HttpsAgent): void {
  agent.maxFreeSockets = 0;
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}

/** Releases all that an exchange holds, in whatever state its stream and sockets are. */
function cut({ stop, connection, stream, socket }: Held): void {
  stop.abort();
  stream?.destroy();
  connection?.socket?.destroy();
  socket?.destroy();
}

/**
 * Ends an exchange early at a 1xx status that is no answer: got listens to `upgrade`, so Node
 * leaves the connection to it. Also hears errors when got has stopped: an unheard one ends the
 * process. A promise to race with would keep each request in memory for many collections.
 */
function refuseNoAnswer(stream: Request, held: Held): void {
  const ignore = () => {};
  stream.on("error", ignore);
  stream.on("response", (response: PlainResponse) => void response.on("error", ignore));
  const refuse = ({ statusCode, headers }: Pick<InformationEvent, "headers"> & { readonly statusCode?: number }) => {
    held.refused ??= { type: "answer", status: statusCode ?? 0, headers: toHeaders({ headers }), text: "" };
    cut(held);
  };
  let passed = 0;
  stream.on("request", (request: ClientRequest) => {
    request.on("error", ignore);
    request.on("socket", (socket) => {
      held.socket = socket;
    });
    request.on("upgrade", refuse);
    request.on("information", (information) => {
      passed += 1;
      if (passed > passingMax || !passingStatuses.has(information.statusCode)) refuse(information);
    });
  });
}

/**
 * Reads the body in chunks: its limit guards against compressed bombs, and got's own does not. An
 * async iterator would cost each exchange more listeners and promises than its events do.
 */
async function readAnswer(stream: Request, exchange: Exchange, stop: AbortController): Promise<ExchangeResult> {
  let head: PlainResponse | undefined;
  stream.on("response", (response: PlainResponse) => {
    head = response;
  });
  const chunks: Uint8Array[] = [];
  let bodyBytes = 0;
  const { promise: body, resolve, reject } = Promise.withResolvers<"whole" | "too-large">();
  stream.on("data", (chunk: Uint8Array) => {
    bodyBytes += chunk.length;
    if (bodyBytes <= exchange.bodyBytesMax) {
      chunks.push(chunk);
      return;
    }
    chunks.length = 0;
    resolve("too-large");
    stop.abort(tooLarge);
  });
  stream.on("end", () => resolve("whole"));
  stream.on("error", reject);
  // After an end or an error it changes nothing.
  stream.on("close", () => reject(new Error("got closed a stream before its end")));
  if ((await body) === "too-large") {
    const failure = { type: "failure", failure: "too-large", sent: "maybe", code: "BODY_TOO_LARGE" } as const;
    return { ...failure, status: head?.statusCode, headers: toHeaders(head) };
  }
  if (head === undefined) throw new Error("got ended a stream without a response");
  // Taken out: the listeners would keep them until the stream is collected.
  const text = utf8.decode(Buffer.concat(chunks.splice(0)));
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

function toFailure(
  error: unknown,
  context: { readonly exchange: Exchange; readonly signal: AbortSignal; readonly isUnsent: boolean },
): ExchangeResult {
  const { exchange, signal, isUnsent } = context;
  if (error instanceof NoConnection) return notConnected(error.code, signal);
  // Only got's own errors concern the exchange; any other error is a bug and is thrown on.
  if (!(error instanceof RequestError)) throw error;
  const head = { status: error.response?.statusCode, headers: toHeaders(error.response) };
  const sent = isUnsent || isSurelyNotSent(error, exchange) ? "no" : "maybe";
  const code = error instanceof TimeoutError ? `ETIMEDOUT (${error.event})` : error.code;
  if (signal.aborted) return { type: "failure", failure: "aborted", sent, code: "ABORTED", ...head };
  return { type: "failure", failure: sent === "no" ? "unreachable" : "lost", sent, code, ...head };
}

function notConnected(code: string, { aborted }: AbortSignal): ExchangeResult {
  const nothing = { type: "failure", sent: "no", status: undefined, headers: noHeaders } as const;
  return aborted ? { ...nothing, failure: "aborted", code: "ABORTED" } : { ...nothing, failure: "unreachable", code };
}

/** Whether no byte of the request left, or the server surely did not take it. */
function isSurelyNotSent({ response, code, timings }: RequestError, { isDedicated, url }: Exchange): boolean {
  if (response !== undefined) return false;
  // The server refused our certificate in the handshake: it took no request, even if one was sent.
  if (isClientRefusal(code)) return true;
  // A dedicated connection was open before; got reports no timing of it.
  if (isDedicated || timings?.upload !== undefined) return false;
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
    routerError: first("x-cf-routererror"),
  };
}
