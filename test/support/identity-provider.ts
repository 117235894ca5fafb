// A small identity provider on 127.0.0.1: OpenID Connect discovery, keys, the code flow with PKCE,
// and JWTs, right ones and wrong ones. It signs in whom the test names.
import { createHash, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll } from "vitest";

type Pair = Awaited<ReturnType<typeof generateKeyPair>>;

/** Claims; one that is undefined is left out. */
type Claims = Readonly<Record<string, unknown>>;

/** What a code stands for, until it is used. */
interface Grant {
  readonly challenge: string;
  readonly nonce: string;
  readonly redirectUri: string;
}

/** A provider for a test file. */
export class IdentityProvider {
  /** What the ID token says of the person, beside the standard claims. */
  claims: Claims = { sub: "u1", email: "ana@example.com", groups: ["operators"] };
  /** How the keys are answered: as they are, with this text, or never. */
  keysAnswer: "keys" | "hang" | (string & {}) = "keys";
  /** Whether it closes a kept connection of Syncline just as the next request comes. */
  closesKept = false;
  /** Changes an ID token's claims, as an attacker in between would like to. */
  forge: (claims: Claims) => Claims = (claims) => claims;
  /** Requests so far, by path. */
  readonly asked = new Map<string, number>();
  readonly clientId = "syncline";
  readonly clientSecret = "a-secret-of-the-client";
  /** A file with that secret. */
  secretFile = "";
  issuer = "";
  #keys: { readonly kid: string; readonly pair: Pair }[] = [];
  readonly #codes = new Map<string, Grant>();
  readonly #kept = new WeakSet<object>();

  /** Starts it, until the tests of the file are over. */
  static async start(): Promise<IdentityProvider> {
    const provider = new IdentityProvider();
    await provider.rotate();
    const server = createServer((request, response) => void provider.#answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    provider.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const folder = mkdtempSync(join(tmpdir(), "syncline-"));
    provider.secretFile = join(folder, "client-secret");
    writeFileSync(provider.secretFile, `${provider.clientSecret}\n`);
    afterAll(() => {
      rmSync(folder, { recursive: true });
      server.closeAllConnections();
      server.close();
    });
    return provider;
  }

  /** Signs by a new key from now on, and names no other. */
  async rotate(): Promise<void> {
    this.#keys = [{ kid: randomUUID(), pair: await generateKeyPair("ES256", { extractable: true }) }];
  }

  /** A JWT for the audience `syncline-api`, good for ten minutes, but for what `changes` says. */
  sign(changes: Claims = {}, by = this.#keys[0]): Promise<string> {
    const now = Math.floor(Date.now() / 1_000);
    const standard = { iss: this.issuer, aud: "syncline-api", iat: now, exp: now + 600 };
    if (by === undefined) throw new Error("no key");
    return new SignJWT({ ...standard, ...this.claims, ...changes })
      .setProtectedHeader({ alg: "ES256", kid: by.kid })
      .sign(by.pair.privateKey);
  }

  /** The same, signed by a key of a stranger who gives it the name of ours. */
  async signAsStranger(): Promise<string> {
    const pair = await generateKeyPair("ES256");
    return this.sign({}, { kid: this.#keys[0]?.kid ?? "", pair });
  }

  /** The public key as PEM-less text, for a token that is signed with it as a password. */
  async publicKey(): Promise<string> {
    return JSON.stringify(await exportJWK((this.#keys[0] as { pair: Pair }).pair.publicKey));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isClient = request.headers["user-agent"] === "syncline";
    if (isClient && this.closesKept && this.#kept.has(request.socket)) return void request.socket.destroy();
    this.#kept.add(request.socket);
    const url = new URL(request.url ?? "/", this.issuer);
    this.asked.set(url.pathname, (this.asked.get(url.pathname) ?? 0) + 1);
    if (url.pathname === "/.well-known/openid-configuration") return json(response, this.#metadata());
    if (url.pathname === "/keys") return this.#answerKeys(response);
    if (url.pathname === "/linking") return html(response, `<a href="${url.searchParams.get("to")}">See</a>`);
    if (url.pathname === "/authorize") return this.#authorize(url, request, response);
    if (url.pathname === "/token") return this.#token(request, response);
    response.writeHead(url.pathname === "/favicon.ico" ? 204 : 404).end();
  }

  #metadata(): object {
    return {
      issuer: this.issuer,
      jwks_uri: `${this.issuer}/keys`,
      authorization_endpoint: `${this.issuer}/authorize`,
      token_endpoint: `${this.issuer}/token`,
      id_token_signing_alg_values_supported: ["ES256"],
      authorization_response_iss_parameter_supported: true,
    };
  }

  async #answerKeys(response: ServerResponse): Promise<void> {
    if (this.keysAnswer === "hang") return;
    if (this.keysAnswer !== "keys") return void response.end(this.keysAnswer);
    const keys = this.#keys.map(async ({ kid, pair }) => ({ ...(await exportJWK(pair.publicKey)), kid, use: "sig" }));
    json(response, { keys: await Promise.all(keys) });
  }

  #authorize({ searchParams: asked }: URL, { headers }: IncomingMessage, response: ServerResponse): void {
    const [redirectUri, code] = [asked.get("redirect_uri") ?? "", randomUUID()];
    if (asked.get("client_id") !== this.clientId || asked.get("code_challenge_method") !== "S256")
      return void response.writeHead(400).end();
    this.#codes.set(code, {
      challenge: asked.get("code_challenge") ?? "",
      nonce: asked.get("nonce") ?? "",
      redirectUri,
    });
    const back = new URL(redirectUri);
    back.search = new URLSearchParams({ code, state: asked.get("state") ?? "", iss: this.issuer }).toString();
    // A person presses a link there: the way back begins at another site.
    const isPerson = headers.accept?.includes("text/html");
    if (isPerson) html(response, `<a href="${back.href.replaceAll("&", "&amp;")}">Continue as Ana</a>`);
    else response.writeHead(302, { location: back.href }).end();
  }

  async #token(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = new URLSearchParams(Buffer.concat(await request.toArray()).toString());
    const [, credentials = ""] = request.headers.authorization?.split(" ") ?? [];
    // Both parts are form-encoded in there (RFC 6749, 2.3.1).
    const client = Buffer.from(credentials, "base64").toString().split(":").map(decodeURIComponent);
    const grant = this.#codes.get(asked.get("code") ?? "");
    this.#codes.delete(asked.get("code") ?? "");
    const challenge = createHash("sha256")
      .update(asked.get("code_verifier") ?? "")
      .digest("base64url");
    if (client.join(":") !== `${this.clientId}:${this.clientSecret}`)
      return json(response, { error: "invalid_client" }, 401);
    if (grant?.challenge !== challenge || grant.redirectUri !== asked.get("redirect_uri"))
      return json(response, { error: "invalid_grant" }, 400);
    const idToken = await this.sign(this.forge({ aud: this.clientId, nonce: grant.nonce }));
    json(response, { access_token: "x", token_type: "bearer", id_token: idToken, expires_in: 60 });
  }
}

function json(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function html(response: ServerResponse, body: string): void {
  response.writeHead(200, { "content-type": "text/html" }).end(`<title>Provider</title>${body}`);
}
