// A bearer token by OAuth 2 client credentials, kept while it is good. It talks to the token
// endpoint only, over a transport of its own, never with a token or certificate of the service.
// Built by create-service.ts; call.ts asks it through TokenSource.
//
//   none ──get──▶ asking, one at a time ──▶ token ──80 % of its life──▶ token, asking in the background ──▶ token
//                      └─failed─▶ none: for 1 s … 30 s the same error, without asking    └─failed─▶ token, until it ends
//   token refused with 401 ──▶ asking, but not again within 10 s of a token: a service that refuses every token is no reason to ask on
import { untilAborted } from "../core/abortable.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { type EventLog, silentLog } from "../core/event-log.ts";
import { createRateLimitedLog } from "../core/rate-limited-log.ts";
import { askForToken, type OAuth2Client, TokenRefusal } from "./oauth2-request.ts";
import { defaultTimeouts, type Timeouts } from "./service-options.ts";
import type { TlsFiles } from "./tls-files.ts";
import { TokenError, type TokenSource } from "./token.ts";
import { Transport } from "./transport.ts";

/** A client and its surroundings. */
export interface OAuth2TokenOptions extends OAuth2Client {
  /** Trusted authorities; default: the public ones. */
  readonly tls?: TlsFiles | undefined;
  readonly timeouts?: Partial<Timeouts> | undefined;
  /** Gets `token.renewal-failed`; silent unless set. */
  readonly log?: EventLog | undefined;
  readonly clock?: Clock | undefined;
}

/**
 * Makes the token source.
 * @throws TypeError when the token URL is invalid, or is http where that is not allowed.
 */
export function oauth2Token(options: OAuth2TokenOptions): TokenSource {
  return new OAuth2Token(options);
}

interface Kept {
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

class OAuth2Token implements TokenSource {
  readonly #options: OAuth2TokenOptions;
  readonly #clock: Clock;
  readonly #log: EventLog;
  readonly #transport: Transport;
  readonly #closed = new AbortController();
  #kept: Kept | undefined;
  #asking: Promise<Kept> | undefined;
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
    return this.#kept?.expiresAtMs;
  }

  get renewalFails(): boolean {
    return this.#failures > 0;
  }

  get restsForMs(): number {
    return Math.max(0, (this.#failed?.untilMs ?? 0) - this.#clock.monotonicMs());
  }

  async get(signal?: AbortSignal): Promise<string> {
    const nowMs = this.#clock.monotonicMs();
    const kept = this.#kept;
    if (kept === undefined || nowMs >= kept.goneFromMs) return (await untilAborted(this.#ask(), signal)).token;
    if (nowMs >= kept.renewFromMs) this.#renewEarly();
    return kept.token;
  }

  async renew(refused: string, signal?: AbortSignal): Promise<string> {
    const nowMs = this.#clock.monotonicMs();
    const kept = this.#kept;
    // Another call has renewed it already.
    if (kept !== undefined && kept.token !== refused) return kept.token;
    // While no new token can be had, report that: the refused token again would look like a refusal
    // of every token.
    const isWorthAsking = this.#asking !== undefined || this.#failed !== undefined;
    if (kept !== undefined && !isWorthAsking && nowMs - this.#refusedAtMs < refusalGapMs) return kept.token;
    this.#refusedAtMs = nowMs;
    return (await untilAborted(this.#ask(), signal)).token;
  }

  close(): void {
    this.#closed.abort();
    this.#transport.close();
  }

  /** Not awaited: the current token is still good for a while. */
  #renewEarly(): void {
    this.#ask().catch((error: unknown) => {
      const message = error instanceof TokenError ? error.message : String(error);
      this.#log.warn("token.renewal-failed", { message, expiresAt: toIso(this.#kept?.expiresAtMs) });
    });
  }

  #ask(): Promise<Kept> {
    const failed = this.#failed;
    if (failed !== undefined && this.restsForMs > 0) return Promise.reject(failed.error);
    this.#asking ??= this.#askOnce().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #askOnce(): Promise<Kept> {
    const timeouts = { ...defaultTimeouts, requestMs, ...this.#options.timeouts };
    try {
      const { token, lifeMs } = await askForToken(this.#options, {
        transport: this.#transport,
        timeouts,
        signal: this.#closed.signal,
        nowMs: this.#clock.nowMs(),
      });
      this.#kept = toKept(token, lifeMs, this.#clock);
      this.#failed = undefined;
      this.#failures = 0;
      return this.#kept;
    } catch (error) {
      if (error instanceof TokenError) this.#pause(error);
      throw error;
    }
  }

  #pause(error: TokenError): void {
    this.#failures += 1;
    const pauseMs = Math.min(pauseMsMax, 1_000 * 2 ** Math.min(this.#failures - 1, 10));
    const askedMs = error instanceof TokenRefusal ? error.retryAfterMs : 0;
    this.#failed = { error, untilMs: this.#clock.monotonicMs() + Math.max(pauseMs, askedMs) };
  }
}

function toKept(token: string, lifeMs: number | undefined, clock: Clock): Kept {
  const nowMs = clock.monotonicMs();
  const renewAfterMs = lifeMs === undefined ? renewAfterMsMax : Math.min(lifeMs * renewAtShare, renewAfterMsMax);
  return {
    token,
    renewFromMs: nowMs + Math.max(renewAfterMs, useMsMin),
    goneFromMs: lifeMs === undefined ? Number.POSITIVE_INFINITY : nowMs + Math.max(lifeMs, useMsMin),
    expiresAtMs: lifeMs === undefined ? undefined : clock.nowMs() + lifeMs,
  };
}

function checkTokenUrl({ tokenUrl, allowHttp = false }: OAuth2Client): void {
  const url = URL.canParse(tokenUrl) ? new URL(tokenUrl) : undefined;
  if (url?.protocol === "https:" || (url?.protocol === "http:" && (allowHttp || isLoopback(url.hostname)))) return;
  throw new TypeError("the token URL is not an https URL: the client's secret goes there");
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
}

function toIso(instantMs: number | undefined): string | undefined {
  return instantMs === undefined || instantMs > 8.64e15 ? undefined : new Date(instantMs).toISOString();
}
