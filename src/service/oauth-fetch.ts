// The way to an identity provider: oauth4webapi and jose ask by it instead of the global fetch. A
// few connections, short time-outs, small bodies, no redirect. Built for the role web by
// app/create-web.ts, and by `syncline doctor`.
import { defaultTimeouts } from "./service-options.ts";
import { TlsFiles, tlsHint } from "./tls-files.ts";
import { type ExchangeResult, Transport } from "./transport.ts";

/** What the libraries ask for. */
interface OAuthRequest {
  readonly method?: string | undefined;
  readonly headers?: ConstructorParameters<typeof Headers>[0] | undefined;
  readonly body?: unknown;
}

/** Asks a provider once. @throws Error that says why there is no answer. */
export type OAuthFetch = (url: string, request?: OAuthRequest) => Promise<Response>;

const requestMs = 5_000;
const bodyBytesMax = 256 * 1024;
const socketsMax = 4;

/** Makes the way. `caFile`: authorities to trust beside the public ones, in PEM. */
export function createOAuthFetch(caFile?: string): OAuthFetch {
  const tls = caFile === undefined ? undefined : new TlsFiles({ caFile }, { trustPublic: true });
  const transport = new Transport(socketsMax, tls);
  const never = new AbortController().signal;
  return async (href, { method, headers, body } = {}) => {
    const url = new URL(href);
    const result = await transport.send({
      method: method === "POST" ? "POST" : "GET",
      url,
      headers: { ...Object.fromEntries(new Headers(headers)), "user-agent": "syncline" },
      body: body instanceof URLSearchParams ? body.toString() : undefined,
      isDedicated: false,
      timeouts: { ...defaultTimeouts, requestMs },
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
export function failureText(
  where: string,
  { failure, code, why }: Extract<ExchangeResult, { type: "failure" }>,
): string {
  const hint = why ?? tlsHint(code);
  const what = failure === "too-large" ? "answered with too long a body" : "cannot be reached";
  return `${where} ${what} (${code})${hint === undefined ? "" : `: ${hint}`}`;
}
