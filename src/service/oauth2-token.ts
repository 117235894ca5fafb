// A bearer token by OAuth 2 client credentials (RFC 6749 §4.4), kept while it is valid. It talks to
// the token endpoint only, over a transport of its own: oauth4webapi speaks the protocol. Built by
// create-service.ts; call.ts asks it through TokenSource.
//
//   none ──get──▶ asking, one at a time ──▶ token ──80 % of its life──▶ token, asking in the background ──▶ token
//                      └─failed─▶ none: for 1 s … 30 s the same error, without asking    └─failed─▶ token, until it ends
//   token refused with 401 ──▶ asking, but not again within 10 s of a token: a service that refuses every token is no reason to ask on

import * as oauth from "oauth4webapi";
import { type Clock, systemClock, untilAborted } from "../core/clock.ts";
import { createRateLimitedLog, type EventLog, silentLog } from "../core/event-log.ts";
import { isJsonObject } from "../core/json.ts";
import { isLoopback } from "../core/loopback.ts";
import { noteSecret } from "../core/secrets.ts";
import { parseRetryAfter } from "./call-failure.ts";
import { defaultTimeouts, type Timeouts } from "./service-options.ts";
import { TlsFiles, tlsHint } from "./tls-files.ts";
import { parseToken, readClientSecret, TokenError, type TokenSource } from "./token.ts";
import { type Exchange, type ExchangeResult, Transport } from "./transport.ts";

/** The client that asks for a token. */
interface OAuth2Client {
  /** https; http only for loopback or with `allowHttp`. May have a query, which is never shown. */
  readonly tokenUrl: string;
  readonly clientId: string;
  /** Read for every request, so that a rotated secret applies at once. */
  readonly clientSecretFile: string;
  readonly scope?: string | undefined;
  /** Where id and secret go: `basic` in the header (default), `post` in the body. */
  readonly auth?: "basic" | "post" | undefined;
  readonly allowHttp?: boolean | undefined;
}

/** A client and its surroundings. */
export interface OAuth2TokenOptions extends OAuth2Client {
  /** Trusted authorities; default: the public ones. */
  readonly tls?: TlsFiles | undefined;
  readonly timeouts?: Partial<Timeouts> | undefined;
  /** Gets `token.renewal-failed`; silent unless set. */
  readonly log?: EventLog | undefined;
  readonly clock?: Clock | undefined;
}

/** Makes the token source. @throws TypeError when the token URL is invalid, or http unallowed. */
export function oauth2Token(options: OAuth2TokenOptions): TokenSource {
  return new OAuth2Token(options);
}

interface CachedToken {
  readonly token: string;
  readonly renewFromMs: number;
  readonly goneFromMs: number;
  /** On the wall clock. */
  readonly expiresAtMs: number | undefined;
}

const renewAtShare = 0.8;
/** The shortest time between two renewals, however short a lifetime the endpoint gives. */
const useMsMin = 5_000;
/** When a token is renewed at the latest, also one without a stated lifetime. */
const renewAfterMsMax = 3_600_000;
const refusalGapMs = 10_000;
const pauseMsMax = 30_000;
const requestMs = 15_000;
/** The last instant that a Date can hold. */
const dateMsMax = 8.64e15;

class OAuth2Token implements TokenSource {
  readonly #options: OAuth2TokenOptions;
  readonly #clock: Clock;
  readonly #log: EventLog;
  readonly #transport: Transport;
  readonly #closed = new AbortController();
  #cached: CachedToken | undefined;
  #asking: Promise<CachedToken> | undefined;
  #failed: { readonly error: TokenError; readonly untilMs: number } | undefined;
  #failures = 0;
  #refusedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: OAuth2TokenOptions) {
    checkTokenUrl(options);
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = createRateLimitedLog(options.log ?? silentLog, this.#clock, "");
    this.#transport = new Transport(1, options.tls);
  }

  get expiresAtMs(): number | undefined {
    return this.#cached?.expiresAtMs;
  }

  get renewalFails(): boolean {
    return this.#failures > 0;
  }

  get restsForMs(): number {
    return Math.max(0, (this.#failed?.untilMs ?? 0) - this.#clock.monotonicMs());
  }

  async get(signal?: AbortSignal): Promise<string> {
    const nowMs = this.#clock.monotonicMs();
    const kept = this.#cached;
    if (kept === undefined || nowMs >= kept.goneFromMs) return (await untilAborted(this.#ask(), signal)).token;
    if (nowMs >= kept.renewFromMs) this.#renewEarly();
    return kept.token;
  }

  async renew(refused: string, signal?: AbortSignal): Promise<string> {
    const nowMs = this.#clock.monotonicMs();
    const kept = this.#cached;
    // Another call has renewed it already.
    if (kept !== undefined && kept.token !== refused) return kept.token;
    // While no new token can be had, report that: the refused one again would look like a refusal.
    const isWorthAsking = this.#asking !== undefined || this.#failed !== undefined;
    if (kept !== undefined && !isWorthAsking && nowMs - this.#refusedAtMs < refusalGapMs) return kept.token;
    this.#refusedAtMs = nowMs;
    return (await untilAborted(this.#ask(), signal)).token;
  }

  close(): void {
    this.#closed.abort();
    this.#transport.close();
  }

  /** Not awaited: the current token is still valid for a while. */
  #renewEarly(): void {
    this.#ask().catch((error: unknown) => {
      const message = error instanceof TokenError ? error.message : String(error);
      this.#log.warn("token.renewal-failed", { message, expiresAt: toIso(this.#cached?.expiresAtMs) });
    });
  }

  #ask(): Promise<CachedToken> {
    const failed = this.#failed;
    if (failed !== undefined && this.restsForMs > 0) return Promise.reject(failed.error);
    this.#asking ??= this.#askOnce().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #askOnce(): Promise<CachedToken> {
    const timeouts = { ...defaultTimeouts, requestMs, ...this.#options.timeouts };
    const signal = this.#closed.signal;
    const nowMs = this.#clock.nowMs();
    try {
      const asked = { transport: this.#transport, timeouts, signal, nowMs };
      const { token, lifeMs } = await askForToken(this.#options, asked);
      this.#cached = toCachedToken(token, lifeMs, this.#clock);
      this.#failed = undefined;
      this.#failures = 0;
      return this.#cached;
    } catch (error) {
      if (error instanceof TokenError) this.#pause(error);
      throw error;
    }
  }

  #pause(error: TokenError): void {
    this.#failures += 1;
    const pauseMs = Math.min(pauseMsMax, 1_000 * 2 ** Math.min(this.#failures - 1, 10));
    const providerRequestMs = error instanceof TokenRefusal ? error.retryAfterMs : 0;
    this.#failed = { error, untilMs: this.#clock.monotonicMs() + Math.max(pauseMs, providerRequestMs) };
  }
}

function toCachedToken(token: string, lifeMs: number | undefined, clock: Clock): CachedToken {
  const nowMs = clock.monotonicMs();
  const endMs = lifeMs === undefined ? undefined : clock.nowMs() + lifeMs;
  const renewAfterMs = lifeMs === undefined ? renewAfterMsMax : Math.min(lifeMs * renewAtShare, renewAfterMsMax);
  return {
    token,
    renewFromMs: nowMs + Math.max(renewAfterMs, useMsMin),
    goneFromMs: lifeMs === undefined ? Number.POSITIVE_INFINITY : nowMs + Math.max(lifeMs, useMsMin),
    expiresAtMs: endMs !== undefined && endMs <= dateMsMax ? endMs : undefined,
  };
}

function checkTokenUrl({ tokenUrl, allowHttp = false }: OAuth2Client): void {
  const url = URL.canParse(tokenUrl) ? new URL(tokenUrl) : undefined;
  if (url?.protocol === "https:" || (url?.protocol === "http:" && (allowHttp || isLoopback(url.hostname)))) return;
  throw new TypeError("the token URL is not an https URL: the client's secret goes there");
}

function toIso(instantMs: number | undefined): string | undefined {
  return instantMs === undefined ? undefined : new Date(instantMs).toISOString();
}

/** The token endpoint gave no token. `retryAfterMs`: how long it asks to wait. */
class TokenRefusal extends TokenError {
  readonly retryAfterMs: number;

  constructor(message: string, temporary: boolean, retryAfterMs = 0) {
    super(message, temporary);
    this.retryAfterMs = retryAfterMs;
  }
}

/** A token, and its lifetime in milliseconds where the endpoint states it. */
interface GrantedToken {
  readonly token: string;
  readonly lifeMs: number | undefined;
}

interface AskOptions {
  readonly transport: Transport;
  readonly timeouts: Timeouts;
  readonly signal: AbortSignal;
  readonly nowMs: number;
}

const answerBytesMax = 256 * 1024;

/** What to do for each error code of RFC 6749 §5.2, and one of UAA. Other codes are not shown. */
const advice: Readonly<Record<string, string>> = {
  // An older UAA does not decode what RFC 6749 §2.3.1 has encoded in the header.
  unauthorized: "check clientId and clientSecretFile; if they are right, try auth: post",
  invalid_client: "check clientId, clientSecretFile and auth",
  unauthorized_client: "the client may not use client credentials: ask for that grant",
  invalid_scope: "check scope",
  invalid_request: "check scope and auth",
  invalid_grant: "check the client's rights",
  unsupported_grant_type: "this endpoint knows no client credentials: check tokenUrl",
};

/** Asks for a token once. @throws TokenError; `temporary`: it was unreachable, busy or broken. */
async function askForToken(client: OAuth2Client, options: AskOptions): Promise<GrantedToken> {
  const secret = await readClientSecret(client.clientSecretFile);
  const url = new URL(client.tokenUrl);
  noteSecret(url.search);
  const server = { issuer: url.origin, token_endpoint: url.href };
  const identity = { client_id: client.clientId };
  const auth = client.auth === "post" ? oauth.ClientSecretPost(secret) : oauth.ClientSecretBasic(secret);
  const parameters = client.scope === undefined ? {} : { scope: client.scope };
  const where = `the token endpoint ${url.origin}${url.pathname}`;
  let status = 0;
  try {
    const response = await oauth.clientCredentialsGrantRequest(server, identity, auth, parameters, {
      // `checkTokenUrl` has checked whether http is allowed.
      [oauth.allowInsecureRequests]: true,
      [oauth.customFetch]: async (href, init) => {
        const answer = toResponse(await send(href, init, options), where, options.nowMs);
        status = answer.status;
        return answer;
      },
    });
    const answer = await oauth.processClientCredentialsResponse(server, identity, response);
    if (answer.token_type !== "bearer") throw new TokenRefusal(`${where} gives no bearer tokens`, false);
    const lifeMs = answer.expires_in === undefined ? undefined : Math.floor(answer.expires_in * 1_000);
    return { token: parseToken(answer.access_token, `what ${where} gave`), lifeMs };
  } catch (error) {
    throw toTokenError(error, where, status);
  }
}

function send(
  href: string,
  init: { readonly headers: Record<string, string>; readonly body: URLSearchParams },
  { transport, timeouts, signal }: AskOptions,
): Promise<ExchangeResult> {
  noteSecret((init.headers["authorization"] ?? "").replace(/^Basic /, ""));
  const exchange: Exchange = {
    method: "POST",
    url: new URL(href),
    headers: { ...init.headers, "user-agent": "syncline" },
    body: init.body.toString(),
    isDedicated: true,
    timeouts,
    bodyBytesMax: answerBytesMax,
    signal,
  };
  return transport.send(exchange);
}

/** Passes only possible grants and OAuth errors on to the library. */
function toResponse(result: ExchangeResult, where: string, nowMs: number): Response {
  if (result.type === "failure") throw new TokenRefusal(failureText(where, result), true);
  const { status, headers, text } = result;
  if (status === 200 || (status >= 400 && status < 500 && status !== 429 && status !== 408)) {
    const type = headers.contentType;
    return new Response(withoutIdToken(text), { status, headers: type === undefined ? {} : { "content-type": type } });
  }
  const isRedirect = status >= 300 && status < 400;
  const why = isRedirect ? " (a redirect, which is never followed): check tokenUrl" : "";
  const retryAfterMs = parseRetryAfter(headers, nowMs);
  throw new TokenRefusal(`${where} answered with status ${status}${why}`, !isRedirect, retryAfterMs);
}

/** The library would hold an id token, as comes with the scope `openid`, against `issuer`. */
function withoutIdToken(text: string): string {
  if (!text.includes('"id_token"')) return text;
  try {
    const body: unknown = JSON.parse(text);
    return isJsonObject(body) ? JSON.stringify({ ...body, id_token: undefined }) : text;
  } catch {
    // Deep nesting is read, and not written.
    return text;
  }
}

function toTokenError(error: unknown, where: string, status: number): unknown {
  if (error instanceof TokenError) return error;
  if (error instanceof oauth.ResponseBodyError) {
    const hint = Object.hasOwn(advice, error.error) ? `: ${error.error}: ${advice[error.error]}` : "";
    return new TokenRefusal(`${where} refused (status ${error.status})${hint}`, false);
  }
  if (error instanceof oauth.OperationProcessingError || error instanceof oauth.UnsupportedOperationError) {
    // A proxy's page instead of JSON may go away, with 404, too; JSON without a token will not.
    const isPage = error.code === oauth.RESPONSE_IS_NOT_JSON || error.code === oauth.PARSE_ERROR;
    const mayPass = isPage && (status === 200 || status === 404);
    return new TokenRefusal(`${where} did not answer as OAuth 2 says (status ${status}): check tokenUrl`, mayPass);
  }
  return error;
}

/** What the libraries ask for. */
interface OAuthRequest {
  readonly method?: string | undefined;
  readonly headers?: ConstructorParameters<typeof Headers>[0] | undefined;
  readonly body?: unknown;
}

/** Asks a provider once. @throws Error that says why there is no answer. */
export type OAuthFetch = (url: string, request?: OAuthRequest) => Promise<Response>;

const providerRequestMs = 5_000;
const bodyBytesMax = 256 * 1024;

/** Makes the way. `caFile`: authorities to trust beside the public ones, in PEM. */
export function createOAuthFetch(caFile?: string): OAuthFetch {
  const tls = caFile === undefined ? undefined : new TlsFiles({ caFile }, { trustPublic: true });
  const transport = new Transport(1, tls);
  const never = new AbortController().signal;
  return async (href, { method, headers, body } = {}) => {
    const url = new URL(href);
    const result = await transport.send({
      method: method === "POST" ? "POST" : "GET",
      url,
      headers: { ...Object.fromEntries(new Headers(headers)), "user-agent": "syncline" },
      body: body instanceof URLSearchParams ? body.toString() : undefined,
      // A sign-in asks once: a kept connection that the provider closes just then would fail it.
      isDedicated: true,
      timeouts: { ...defaultTimeouts, requestMs: providerRequestMs },
      bodyBytesMax,
      signal: never,
    });
    const where = `${url.origin}${url.pathname}`;
    if (result.type === "failure") throw new Error(failureText(where, result));
    const {
      status,
      text,
      headers: { contentType },
    } = result;
    // A redirect is never followed; a Response cannot have every status that a server may send.
    if (status < 200 || (status >= 300 && status < 400) || status >= 500)
      throw new Error(`${where} answered with status ${status}`);
    return new Response(status === 204 ? null : text, {
      status,
      headers: contentType === undefined ? {} : { "content-type": contentType },
    });
  };
}

/** Why there is no answer from a place, in one line. */
function failureText(where: string, { failure, code, why }: Extract<ExchangeResult, { type: "failure" }>): string {
  const hint = why ?? tlsHint(code);
  const what = failure === "too-large" ? "answered with too long a body" : "cannot be reached";
  return `${where} ${what} (${code})${hint === undefined ? "" : `: ${hint}`}`;
}
