// One identity provider: what it says of itself (OpenID Connect discovery) and its signing keys,
// both kept. While it fails it is asked once in ten seconds, and for a key that it did not name
// before once in thirty: no stranger makes us ask on and on.
import { createRemoteJWKSet, customFetch, errors, jwtVerify, type RemoteJWKSet } from "jose";
import * as oauth from "oauth4webapi";
import { shared } from "../core/batcher.ts";
import { type Clock, createDeadline } from "../core/clock.ts";
import { errorText } from "../core/errors.ts";
import { createRateLimitedLog, type EventLog } from "../core/event-log.ts";
import type { JsonObject } from "../core/json.ts";
import { isLoopback } from "../core/loopback.ts";
import { notProven } from "./identity.ts";
import { WebError } from "./problem.ts";

/** Asks a provider once (service/oauth2-token.ts). @throws Error that says why it has no answer. */
export type ProviderFetch = (
  url: string,
  request: {
    readonly method: string;
    readonly headers: Headers | Record<string, string>;
    readonly body?: URLSearchParams | undefined;
  },
) => Promise<Response>;

/** What providers are asked with. */
export interface IssuerParts {
  readonly fetch: ProviderFetch;
  readonly clock: Clock;
  readonly log: EventLog;
}

/** What a provider says of itself, and its keys. */
interface ProviderMetadata {
  readonly server: oauth.AuthorizationServer;
  readonly keys: RemoteJWKSet;
  readonly isOld: () => boolean;
}

const metadataMsMax = 3_600_000;
const restMs = 10_000;
const skewSeconds = 30;
const keyLimits = { cacheMaxAge: 600_000, cooldownDuration: 30_000, timeoutDuration: 5_000 };
/** Asymmetric ones only: by HS256 the public key would be a password. */
const algorithms = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split(" ");

/** A provider, by its issuer identifier. */
export class Issuer {
  readonly url: string;
  readonly #keysUrl: string | undefined;
  readonly #parts: IssuerParts;
  readonly #log: EventLog;
  #metadata: ProviderMetadata | undefined;
  readonly #askOnce = shared(() => this.#ask());
  #failed: { readonly error: WebError; readonly isOver: () => boolean } | undefined;

  /** `keysUrl`: where its keys are, for a provider without discovery. */
  constructor(url: string, keysUrl: string | undefined, parts: IssuerParts) {
    this.url = url;
    this.#keysUrl = keysUrl;
    this.#parts = parts;
    this.#log = createRateLimitedLog(parts.log, parts.clock, "issuer");
  }

  /** What the provider says of itself. @throws WebError while it cannot be reached. */
  async server(): Promise<oauth.AuthorizationServer> {
    return (await this.#current()).server;
  }

  /** Reads its keys. @throws WebError while they cannot be had. */
  async readKeys(): Promise<void> {
    const { keys } = await this.#current();
    await keys.reload().catch((error: unknown) => this.#refuse(error));
  }

  /** The claims of a signed JWT for an audience. @throws AccessDenied; WebError without keys. */
  async verify(jwt: string, audience: string): Promise<JsonObject> {
    const { server, keys } = await this.#current();
    const currentDate = new Date(this.#parts.clock.nowMs());
    const expected = { issuer: server.issuer, audience, algorithms, requiredClaims: ["exp"] };
    const options = { ...expected, clockTolerance: skewSeconds, currentDate };
    const { payload } = await jwtVerify(jwt, keys, options).catch((error: unknown) => this.#refuse(error));
    return payload;
  }

  #refuse(error: unknown): never {
    if (error instanceof errors.JWKSInvalid) throw this.fail("its keys are no JSON Web Key Set");
    if (error instanceof errors.JOSEError) throw notProven(`this token is not accepted: ${reasonOf(error)}`);
    throw error;
  }

  /** The options of oauth4webapi. Plain http is for a provider on this machine only. */
  get options() {
    return {
      [oauth.customFetch]: this.#fetch,
      [oauth.allowInsecureRequests]: isLoopback(new URL(this.url).hostname),
    };
  }

  #current(): Promise<ProviderMetadata> {
    if (this.#metadata !== undefined && !this.#metadata.isOld()) return Promise.resolve(this.#metadata);
    return this.#askOnce();
  }

  async #ask(): Promise<ProviderMetadata> {
    try {
      const server =
        this.#keysUrl === undefined ? await this.#discover() : { issuer: this.url, jwks_uri: this.#keysUrl };
      const keysUrl = this.endpointOf(server.jwks_uri, "jwks_uri");
      const keys = createRemoteJWKSet(keysUrl, { ...keyLimits, [customFetch]: this.#fetch });
      this.#metadata = { server, keys, isOld: createDeadline(metadataMsMax, this.#parts.clock) };
    } catch (error) {
      // What it said an hour ago is better than nothing.
      if (this.#metadata === undefined) throw error instanceof WebError ? error : this.fail(errorText(error));
      this.#metadata = { ...this.#metadata, isOld: createDeadline(restMs, this.#parts.clock) };
    }
    return this.#metadata;
  }

  async #discover(): Promise<oauth.AuthorizationServer> {
    const url = new URL(this.url);
    return oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, this.options));
  }

  /** Asks the provider; what it is asked to tell must be JSON. */
  readonly #fetch: ProviderFetch = async (url, request) => {
    if (this.#failed?.isOver() === false) throw this.#failed.error;
    try {
      const response = await this.#parts.fetch(url, request);
      if (request.method === "GET") {
        if (response.status !== 200) throw new Error(`${url} answered with status ${response.status}`);
        await response.clone().json();
      }
      this.#failed = undefined;
      return response;
    } catch (error) {
      throw this.fail(errorText(error));
    }
  };

  /** Notes, for a while, that it cannot be asked, and why; the caller is told the first only. */
  fail(message: string): WebError {
    this.#log.warn("web.issuer-unreachable", { issuer: this.url, message });
    const detail = "the identity provider does not answer as it should: who you are cannot be known now";
    const hint = "try again soon, or use a token of `syncline token`; the log has the cause (web.issuer-unreachable)";
    const title = "The identity provider does not answer";
    const error = new WebError({ status: 503, name: "issuer-unreachable", title, detail, hint });
    this.#failed = { error, isOver: createDeadline(restMs, this.#parts.clock) };
    return error;
  }

  /** An address that the provider names. @throws WebError when it is missing, or has no https. */
  endpointOf(url: string | undefined, name: string): URL {
    const found = url === undefined ? null : URL.parse(url);
    const isSafe = found?.protocol === "https:" || this.options[oauth.allowInsecureRequests];
    if (found === null || !isSafe) throw this.fail(`it names no https:// address as its ${name}`);
    return found;
  }
}

/** Why a JWT is not accepted, in words of our own: those of the library may quote it. */
function reasonOf(error: errors.JOSEError): string {
  if (error instanceof errors.JWTExpired) return "it has expired";
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.reason === "missing") return `it has no claim ${error.claim}`;
    return error.claim === "nbf" ? "it is not valid yet" : `its ${error.claim} is another than configured`;
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) return "its signature is wrong";
  if (error instanceof errors.JWKSNoMatchingKey) return "the provider has no such key";
  if (error instanceof errors.JWKSMultipleMatchingKeys) return "it does not say by which key it is signed";
  if (error instanceof errors.JOSEAlgNotAllowed) return "its algorithm is not allowed";
  return "it is no JWT that could be checked";
}
