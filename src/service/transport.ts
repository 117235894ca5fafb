// One HTTP exchange: the single door to got. Called by call.ts, oauth2-request.ts and sinks/webhook.ts; knows nothing of operations, tokens or retries.
// Never follows a redirect, never repeats a request, never throws for what the network or the service did.
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import got, { type PlainResponse, type Request, RequestError, TimeoutError } from "got";
import { countDown } from "../core/clock.ts";
import { freshWay, type KeptAgents, keptWay, NoConnection, type Way } from "./connection.ts";
import type { Timeouts } from "./service-options.ts";
import { type TlsFiles, TlsFilesError, type TlsMaterial } from "./tls-files.ts";
import { isClientRefusal } from "./tls-hint.ts";

/** One request as it goes out. */
export interface Exchange {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Over a connection of its own, opened before and closed afterwards: so that a stale reused socket cannot blur "surely not sent". */
  readonly isFresh: boolean;
  readonly timeouts: Timeouts;
  readonly bodyBytesMax: number;
  /** Asked once the fresh connection stands, right before the first byte; `false` ends it unsent. */
  readonly maySend?: (() => boolean) | undefined;
  readonly signal: AbortSignal;
  /** Ends it for as long as its request has not taken a fresh connection, and never after that. */
  readonly untilSent?: AbortSignal | undefined;
}

/** The headers of an answer that anybody looks at. */
export interface AnswerHeaders {
  readonly contentType: string | undefined;
  readonly retryAfter: string | undefined;
  readonly date: string | undefined;
  readonly correlationId: string | undefined;
  readonly etag: string | undefined;
}

/** What came of an exchange. */
export type ExchangeResult =
  | { readonly type: "answer"; readonly status: number; readonly headers: AnswerHeaders; readonly text: string }
  | {
      readonly type: "failure";
      /** `unreachable`: surely not sent; `lost`: may be sent; `too-large`: the body passed its limit; `aborted`: by our side. */
      readonly failure: "unreachable" | "lost" | "too-large" | "aborted";
      readonly sent: "no" | "maybe";
      readonly code: string;
      /** What is wrong in our own files, where that is why. */
      readonly why?: string;
      /** Head of the answer, when it arrived before the failure. */
      readonly status: number | undefined;
      readonly headers: AnswerHeaders;
    };

const tooLarge = Symbol("too-large");
const noHeaders = toHeaders(undefined);
const notSent = { type: "failure", failure: "aborted", sent: "no", code: "ABORTED", status: undefined } as const;
const badFiles = { type: "failure", failure: "unreachable", sent: "no", code: "TLS_FILES", status: undefined } as const;

/** What never changes is given to got once: merging options is a good part of what a request costs. */
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

/** Sends requests over a bounded set of kept connections, or each over its own. */
export class Transport {
  readonly #keeping: { readonly keepAlive: true; readonly maxSockets: number; readonly maxFreeSockets: number };
  readonly #tls: TlsFiles | undefined;
  #kept: KeptAgents;
  /** Opens the connections that are not kept. One for all, so that TLS sessions are resumed. */
  #fresh = new HttpsAgent();
  #material: TlsMaterial | undefined;

  /** @param maxSockets connections for reads that may be open at a time. @param tls certificates, where they are not Node's own. */
  constructor(maxSockets: number, tls?: TlsFiles) {
    this.#keeping = { keepAlive: true, maxSockets, maxFreeSockets: maxSockets };
    this.#kept = { http: new HttpAgent(this.#keeping), https: new HttpsAgent(this.#keeping) };
    this.#tls = tls;
  }

  /** Makes one exchange. Resolves with an answer of any status, or with how it failed. */
  async send(exchange: Exchange): Promise<ExchangeResult> {
    const agents = await this.#agents(exchange);
    const { signal, untilSent } = exchange;
    if (signal.aborted || untilSent?.aborted === true) return { ...notSent, headers: noHeaders };
    if ("why" in agents) return { ...badFiles, why: agents.why, headers: noHeaders };
    const leftMs = countDown(exchange.timeouts.requestMs);
    const stop = new AbortController();
    let way: Way | undefined;
    const onAbort = () => stop.abort();
    const onTooLate = () => {
      if (way?.isOpen !== true) stop.abort();
    };
    signal.addEventListener("abort", onAbort);
    untilSent?.addEventListener("abort", onTooLate);
    try {
      way = exchange.isFresh ? await freshWay(agents.fresh, { ...exchange, leftMs }, stop) : keptWay(agents.kept);
      const options = toGotOptions(exchange, { requestMs: leftMs(), signal: stop.signal });
      const stream = client.stream(exchange.url, { ...options, ...way.options });
      // Without a body to send, nothing goes out before this.
      if (exchange.method !== "GET" && exchange.body === undefined) stream.end();
      return await readAnswer(stream, exchange, stop);
    } catch (error) {
      // Some servers say nothing of a certificate that they do not like: they reset.
      this.#tls?.expire();
      return toFailure(error, { exchange, signal: stop.signal, isHeldBack: way?.isOpen !== true });
    } finally {
      way?.socket?.destroy();
      signal.removeEventListener("abort", onAbort);
      untilSent?.removeEventListener("abort", onTooLate);
    }
  }

  /** Closes the kept connections. */
  close(): void {
    this.#kept.http.destroy();
    this.#kept.https.destroy();
  }

  /** The connections for an exchange; kept ones end when the certificates change. */
  async #agents(exchange: Exchange): Promise<Agents | { readonly why: string }> {
    if (this.#tls !== undefined && exchange.url.protocol === "https:") {
      try {
        const material = await this.#tls.current();
        if (material !== this.#material) {
          if (this.#material !== undefined) retire(this.#kept.https);
          this.#material = material;
          this.#kept = { ...this.#kept, https: new HttpsAgent({ ...this.#keeping, ...material }) };
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

/** Lets what is under way end, and keeps no connection afterwards. */
function retire(agent: HttpsAgent): void {
  agent.maxFreeSockets = 0;
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}

/**
 * Reads the body chunk by chunk, so that its limit holds on decoded bytes. (got's `downloadProgress` falls silent once a
 * decoded body outgrows the Content-Length of its compressed form, so it cannot guard against a compressed bomb.)
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
    // Without an agent Node knows no usual port, and would name it here.
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
  /** The request has not been let out. */
  readonly isHeldBack: boolean;
}

function toFailure(error: unknown, { exchange, signal, isHeldBack }: FailureContext): ExchangeResult {
  if (error instanceof NoConnection) return notConnected(error.code, signal);
  // Only got's own errors speak of the exchange; anything else is a bug and goes up as it is.
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

/** True where no byte of a request that was made can have left, or nobody took it. */
function isSurelyNotSent({ response, code, timings }: RequestError, { isFresh, url }: Exchange): boolean {
  if (response !== undefined) return false;
  // The handshake ended over our certificate: nobody there took the request, even if it was on its way.
  if (isClientRefusal(code)) return true;
  // Its connection stood; got has not seen it come up, and says nothing of it.
  if (isFresh || timings?.upload !== undefined) return false;
  const ready = url.protocol === "https:" ? timings?.secureConnect : timings?.connect;
  return ready === undefined;
}

function toHeaders(response: PlainResponse | undefined): AnswerHeaders {
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
