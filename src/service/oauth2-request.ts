// Requests one token by OAuth 2 client credentials (RFC 6749 §4.4): oauth4webapi speaks the
// protocol, the transport does the HTTP. The library's errors hold whole answers, so only their
// code is used. Called by oauth2-token.ts.
import * as oauth from "oauth4webapi";
import { noteSecret } from "../core/secrets.ts";
import { parseRetryAfter } from "./failure-kind.ts";
import type { Timeouts } from "./service-options.ts";
import { tlsHint } from "./tls-hint.ts";
import { parseToken, readSecret, TokenError } from "./token.ts";
import type { Exchange, ExchangeResult, Transport } from "./transport.ts";

/** The client that asks for a token. */
export interface OAuth2Client {
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

/** The token endpoint gave no token. `retryAfterMs`: how long it asks to wait. */
export class TokenRefusal extends TokenError {
  readonly retryAfterMs: number;

  constructor(message: string, temporary: boolean, retryAfterMs = 0) {
    super(message, temporary);
    this.retryAfterMs = retryAfterMs;
  }
}

/** A token, and its lifetime in milliseconds where the endpoint states it. */
export interface GrantedToken {
  readonly token: string;
  readonly lifeMs: number | undefined;
}

/** What one request needs. */
export interface AskOptions {
  readonly transport: Transport;
  readonly timeouts: Timeouts;
  readonly signal: AbortSignal;
  readonly nowMs: number;
}

const answerBytesMax = 256 * 1024;

/**
 * What to do for each error code of RFC 6749 §5.2. Other codes are not shown: the text is the
 * endpoint's own.
 */
const advice: Readonly<Record<string, string>> = {
  invalid_client: "check clientId, clientSecretFile and auth",
  unauthorized_client: "the client may not use client credentials: ask for that grant",
  invalid_scope: "check scope",
  invalid_request: "check scope and auth",
  invalid_grant: "check the client's rights",
  unsupported_grant_type: "this endpoint knows no client credentials: check tokenUrl",
};

/**
 * Asks for a token once.
 * @throws TokenError; `temporary` when the endpoint was unreachable, busy or broken.
 */
export async function askForToken(client: OAuth2Client, options: AskOptions): Promise<GrantedToken> {
  const secret = (await readSecret(client.clientSecretFile, "client secret file")).replace(/\r?\n$/, "");
  if (secret === "")
    throw new TokenError(`client secret file ${client.clientSecretFile} is empty: put the secret there`);
  noteSecret(secret);
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
      // oauth2-token.ts has checked whether http is allowed.
      [oauth.allowInsecureRequests]: true,
      [oauth.customFetch]: async (href, init) => {
        const answer = toResponse(await send(href, init, options), where, options.nowMs);
        status = answer.status;
        return answer;
      },
    });
    const answer = await oauth.processClientCredentialsResponse(server, identity, response);
    if (answer.token_type !== "bearer") throw new TokenRefusal(`${where} gives no bearer tokens`, false);
    const lifeMs = answer.expires_in === undefined ? undefined : answer.expires_in * 1_000;
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
    isFresh: true,
    timeouts,
    bodyBytesMax: answerBytesMax,
    signal,
  };
  return transport.send(exchange);
}

/** Passes only possible grants and OAuth errors on to the library. */
function toResponse(result: ExchangeResult, where: string, nowMs: number): Response {
  if (result.type === "failure") {
    const why = result.why ?? tlsHint(result.code);
    const what = result.failure === "too-large" ? "answered with too long a body" : "cannot be reached";
    throw new TokenRefusal(`${where} ${what} (${result.code})${why === undefined ? "" : `: ${why}`}`, true);
  }
  const { status, headers, text } = result;
  if (status === 200 || (status >= 400 && status < 500 && status !== 429 && status !== 408)) {
    const type = headers.contentType;
    return new Response(text, { status, headers: type === undefined ? {} : { "content-type": type } });
  }
  const isRedirect = status >= 300 && status < 400;
  const why = isRedirect ? " (a redirect, which is never followed): check tokenUrl" : "";
  const retryAfterMs = parseRetryAfter(headers, nowMs);
  throw new TokenRefusal(`${where} answered with status ${status}${why}`, !isRedirect, retryAfterMs);
}

function toTokenError(error: unknown, where: string, status: number): unknown {
  if (error instanceof TokenError) return error;
  if (error instanceof oauth.ResponseBodyError) {
    const hint = Object.hasOwn(advice, error.error) ? `: ${error.error}: ${advice[error.error]}` : "";
    return new TokenRefusal(`${where} refused (status ${error.status})${hint}`, false);
  }
  if (error instanceof oauth.OperationProcessingError || error instanceof oauth.UnsupportedOperationError) {
    // A proxy's page instead of JSON may go away. A refusal, or valid JSON without a token, will
    // not.
    const mayPass = status === 200 && (error.code === oauth.RESPONSE_IS_NOT_JSON || error.code === oauth.PARSE_ERROR);
    return new TokenRefusal(`${where} did not answer as OAuth 2 says (status ${status}): check tokenUrl`, mayPass);
  }
  return error;
}
