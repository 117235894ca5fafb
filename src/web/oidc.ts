// Signing in on the page by an identity provider: OpenID Connect's code flow with PKCE. What one
// sign-in needs at its end (state, nonce, verifier) waits in a cookie of the browser that began it.
// The address to come back to is configured, never taken from a request.
import * as oauth from "oauth4webapi";
import { z } from "zod";
import type { OidcSettings } from "../config/auth-file.ts";
import { errorText } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { AccessDenied } from "./identity.ts";
import type { Issuer } from "./issuer.ts";

/** The path that the provider leads back to. */
export const callbackPath = "/sign-in/callback";

const flowSchema = z.strictObject({ state: z.string(), nonce: z.string(), verifier: z.string(), next: z.string() });

/** Signs people in by one provider. `readSecret`: reads the client's secret from its file. */
export class OidcSignIn {
  /** The provider and the client: sessions of others are over. */
  readonly id: string;
  readonly #settings: OidcSettings;
  readonly #issuer: Issuer;
  readonly #readSecret: (path: string) => Promise<string>;

  constructor(settings: OidcSettings, issuer: Issuer, readSecret: (path: string) => Promise<string>) {
    this.id = `${settings.clientId} at ${settings.issuer}`;
    this.#settings = settings;
    this.#issuer = issuer;
    this.#readSecret = readSecret;
  }

  /** Begins: where the browser goes, and what its cookie keeps. @throws WebError */
  async begin(next: string): Promise<{ readonly location: string; readonly flow: string }> {
    const { authorization_endpoint: endpoint } = await this.#issuer.server();
    const state = oauth.generateRandomState();
    const nonce = oauth.generateRandomNonce();
    const verifier = oauth.generateRandomCodeVerifier();
    const location = this.#issuer.endpointOf(endpoint, "authorization_endpoint");
    for (const [name, value] of Object.entries({
      client_id: this.#settings.clientId,
      redirect_uri: this.#redirectUri,
      response_type: "code",
      scope: this.#settings.scopes.join(" "),
      state,
      nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    }))
      location.searchParams.set(name, value);
    const flow = Buffer.from(JSON.stringify({ state, nonce, verifier, next })).toString("base64url");
    return { location: location.href, flow };
  }

  /** Ends: who it is, and where to go on. @throws AccessDenied; WebError without the provider. */
  async end(query: URLSearchParams, flow: string): Promise<{ readonly claims: JsonObject; readonly next: string }> {
    const { state, nonce, verifier, next } = parseFlow(flow);
    const server = await this.#issuer.server();
    const { clientId } = this.#settings;
    const client = { client_id: clientId };
    try {
      const answer = oauth.validateAuthResponse(server, client, query, state);
      const auth = await this.#clientAuth();
      const { options } = this.#issuer;
      const uri = this.#redirectUri;
      const response = await oauth.authorizationCodeGrantRequest(server, client, auth, answer, uri, verifier, options);
      const expected = { expectedNonce: nonce, requireIdToken: true };
      const { id_token: token = "" } = await oauth.processAuthorizationCodeResponse(server, client, response, expected);
      // It came from the provider itself; its signature is checked all the same.
      return { claims: await this.#issuer.verify(token, clientId), next };
    } catch (error) {
      throw toDenied(error);
    }
  }

  get #redirectUri(): string {
    return new URL(callbackPath, this.#settings.publicUrl).href;
  }

  async #clientAuth(): Promise<oauth.ClientAuth> {
    const { clientSecretFile: file, auth } = this.#settings;
    if (file === undefined) return oauth.None();
    const secret = await this.#readSecret(file).catch((error: unknown) => {
      throw this.#issuer.fail(errorText(error));
    });
    return auth === "post" ? oauth.ClientSecretPost(secret) : oauth.ClientSecretBasic(secret);
  }
}

/** A sign-in that did not come to its end. `why` never quotes what was sent. */
export function signInFailed(why: string): AccessDenied {
  const hint = "begin anew; when it fails again, an administrator finds the cause in the log (web.refused)";
  return new AccessDenied({ status: 403, name: "sign-in-failed", title: "This sign-in failed", detail: why, hint });
}

function parseFlow(flow: string): z.output<typeof flowSchema> {
  try {
    return flowSchema.parse(JSON.parse(Buffer.from(flow, "base64url").toString()));
  } catch {
    throw signInFailed("it was begun in another browser, too long ago, or it is over already");
  }
}

function toDenied(error: unknown): unknown {
  if (error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError) {
    const code = /^[a-z_]{1,40}$/.test(error.error) ? error.error : "an unknown error";
    return signInFailed(`the identity provider refused it (${code})`);
  }
  const isOAuth = error instanceof oauth.OperationProcessingError || error instanceof oauth.UnsupportedOperationError;
  if (isOAuth || error instanceof oauth.WWWAuthenticateChallengeError)
    return signInFailed(`what came back does not belong to it, or is not as OpenID Connect has it (${error.code})`);
  return error;
}
