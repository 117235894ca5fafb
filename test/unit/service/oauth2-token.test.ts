import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import type { EventFields, EventLog } from "../../../src/core/event-log.ts";
import type { Limiter } from "../../../src/core/limiter.ts";
import { type OAuth2TokenOptions, oauth2Token } from "../../../src/service/oauth2-token.ts";
import { ServiceError } from "../../../src/service/service-error.ts";
import type { TokenSource } from "../../../src/service/token.ts";
import { folderForTest } from "../../support/folder.ts";
import { type Answering, canary, connect, errorOf, json, startServer, type TestServer } from "./test-server.ts";

const secret = "client+secret/with=odd&chars";

function movableClock(): Clock & { move(durationMs: number): void } {
  let nowMs = 0;
  return {
    ...systemClock,
    nowMs: () => Date.UTC(2026, 0, 1) + nowMs,
    monotonicMs: () => nowMs,
    move: (durationMs) => {
      nowMs += durationMs;
    },
  };
}

interface Fixture {
  readonly endpoint: TestServer;
  readonly token: TokenSource;
  readonly clock: ReturnType<typeof movableClock>;
  readonly secretFile: string;
  readonly warned: (EventFields & { event: string })[];
}

/** A token endpoint that answers so, and a client of it. */
async function fixture(answer: Answering, options: Partial<OAuth2TokenOptions> = {}): Promise<Fixture> {
  const endpoint = await startServer(answer);
  const folder = folderForTest();
  const secretFile = join(folder, "client");
  await writeFile(secretFile, `${secret}\n`);
  const clock = movableClock();
  const warned: Fixture["warned"] = [];
  const log: EventLog = {
    info: () => {},
    warn: (event, fields) => warned.push({ ...fields, event }),
    error: () => {},
  };
  const token = oauth2Token({
    tokenUrl: `${endpoint.url}/oauth2/token?tenant=7`,
    clientId: "syncline",
    clientSecretFile: secretFile,
    clock,
    log,
    ...options,
  });
  onTestFinished(() => token.close?.());
  return { endpoint, token, clock, secretFile, warned };
}

/** Grants token-1, token-2, … */
function granting(lifeS?: number | string): Answering {
  let count = 0;
  return (_, response) => {
    count += 1;
    const life = lifeS === undefined ? {} : { expires_in: lifeS };
    json(response, { access_token: `token-number-${count}`, token_type: "Bearer", ...life });
  };
}

/** Waits until the condition holds. */
async function until(holds: () => boolean): Promise<void> {
  for (let look = 0; look < 500 && !holds(); look += 1) await systemClock.sleep(10);
  expect(holds()).toBe(true);
}

describe("a token by client credentials", () => {
  it("is asked for with id and secret in the header, form-encoded, scope in the body", async () => {
    const { endpoint, token } = await fixture(granting(3_600), { scope: "sync.run sync.read" });
    expect(await token.get()).toBe("token-number-1");
    const [request] = endpoint.seen;
    expect(request).toMatchObject({ method: "POST", url: "/oauth2/token?tenant=7" });
    const credentials = Buffer.from(request?.headers.authorization?.replace("Basic ", "") ?? "", "base64").toString();
    expect(credentials).toBe("syncline:client%2Bsecret%2Fwith%3Dodd%26chars");
    expect(Object.fromEntries(new URLSearchParams(request?.body))).toEqual({
      grant_type: "client_credentials",
      scope: "sync.run sync.read",
    });
    expect(request?.headers["content-type"]).toContain("application/x-www-form-urlencoded");
  });

  it("is asked for with id and secret in the body, where the endpoint wants them there", async () => {
    const { endpoint, token } = await fixture(granting(3_600), { auth: "post" });
    await token.get();
    expect(endpoint.seen[0]?.headers.authorization).toBeUndefined();
    expect(Object.fromEntries(new URLSearchParams(endpoint.seen[0]?.body))).toEqual({
      grant_type: "client_credentials",
      client_id: "syncline",
      client_secret: secret,
    });
  });

  it("is taken though an id token comes with it, of whatever issuer", async () => {
    const grant = { access_token: "token-number-1", token_type: "Bearer", id_token: "eyJhbGciOiJub25lIn0.e30.x" };
    const { token } = await fixture((_, response) => json(response, grant), { scope: "openid" });
    expect(await token.get()).toBe("token-number-1");
  });

  it("is asked for once, however many calls want it at a time, and kept", async () => {
    const { endpoint, token } = await fixture(granting(3_600));
    const tokens = await Promise.all(Array.from({ length: 50 }, () => token.get()));
    expect(new Set(tokens)).toEqual(new Set(["token-number-1"]));
    expect(await token.get()).toBe("token-number-1");
    expect(endpoint.seen).toHaveLength(1);
  });

  it("is renewed from 80 % of its life on, while the old one is still given out", async () => {
    const { endpoint, token, clock } = await fixture(granting("100"));
    expect(token.expiresAtMs).toBeUndefined();
    await token.get();
    expect(token.expiresAtMs).toBe(Date.UTC(2026, 0, 1) + 100_000);
    clock.move(79_999);
    await token.get();
    expect(endpoint.seen).toHaveLength(1);
    clock.move(1);
    expect(await token.get()).toBe("token-number-1");
    await until(() => token.expiresAtMs === Date.UTC(2026, 0, 1) + 180_000);
    expect(await token.get()).toBe("token-number-2");
    expect(endpoint.seen).toHaveLength(2);
  });

  it("ends at a whole millisecond, also where its life is a fraction", async () => {
    const { token } = await fixture(granting(3_599.98247));
    await token.get();
    expect(token.expiresAtMs).toBe(Date.UTC(2026, 0, 1) + 3_599_982);
  });

  it("outlives a failed early renewal, with one warning; at its end the failure shows", async () => {
    let isDown = false;
    const grant = granting(100);
    const { token, clock, warned } = await fixture((request, response, raw) => {
      if (isDown) json(response, { secret }, 503);
      else grant(request, response, raw);
    });
    await token.get();
    isDown = true;
    clock.move(90_000);
    expect(await token.get()).toBe("token-number-1");
    await until(() => warned.length === 1);
    expect(await token.get()).toBe("token-number-1");
    expect(warned).toMatchObject([{ event: "token.renewal-failed", expiresAt: "2026-01-01T00:01:40.000Z" }]);
    expect(warned[0]?.["message"]).toContain("status 503");
    clock.move(10_000);
    expect(await errorOf(token.get())).toMatchObject({ name: "TokenError", temporary: true });
    isDown = false;
    clock.move(30_000);
    expect(await token.get()).toBe("token-number-2");
  });

  it("with a life of a second, or of none, does not keep the endpoint busy", async () => {
    for (const lifeS of [1, 0.001]) {
      const { endpoint, token, clock } = await fixture(granting(lifeS));
      await token.get();
      clock.move(4_999);
      await token.get();
      expect(endpoint.seen).toHaveLength(1);
      clock.move(1);
      await token.get();
      expect(endpoint.seen).toHaveLength(2);
    }
  });

  it("whose life is not said, or without end, is renewed after an hour", async () => {
    for (const lifeS of [undefined, 1e15, "9223372036854775807"]) {
      const { endpoint, token, clock } = await fixture(granting(lifeS));
      await token.get();
      expect(token.expiresAtMs).toBeUndefined();
      clock.move(3_599_999);
      await token.get();
      expect(endpoint.seen).toHaveLength(1);
      clock.move(1);
      await token.get();
      await until(() => endpoint.seen.length === 2);
    }
  });

  it("is asked for with the secret that stands in the file then", async () => {
    const { endpoint, token, clock, secretFile } = await fixture(granting(10), { auth: "post" });
    await token.get();
    await writeFile(secretFile, "rotated secret");
    clock.move(10_000);
    await token.get();
    expect(endpoint.seen.map(({ body }) => new URLSearchParams(body).get("client_secret"))).toEqual([
      secret,
      "rotated secret",
    ]);
  });
});

describe("a token that the service refuses", () => {
  const refusing = (valid: string) =>
    startServer((request, response) => {
      response.writeHead(request.headers.authorization === `Bearer ${valid}` ? 200 : 401);
      response.end();
    });

  // The endpoint never sees the new token, the service never the secret.
  it("is renewed once, and the start goes out with the new one", async () => {
    const { endpoint, token } = await fixture(granting(3_600));
    const service = await refusing("token-number-2");
    const client = connect(service.url, { token });
    await client.runSyncJob(7);
    expect(service.seen.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer token-number-1",
      "Bearer token-number-2",
    ]);
    expect(client.tokenExpiresAtMs).toBe(Date.UTC(2026, 0, 1) + 3_600_000);
    expect(JSON.stringify(endpoint.seen)).not.toContain("token-number");
    expect(JSON.stringify(service.seen)).not.toMatch(/client.{1,3}secret/);
  });

  it("by a hundred calls at once is renewed once, and each of them goes out once more", async () => {
    const { endpoint, token } = await fixture(granting(3_600));
    const service = await refusing("token-number-2");
    const client = connect(service.url, { token });
    await Promise.all(Array.from({ length: 100 }, (_, key) => client.runSyncJob(key)));
    expect(endpoint.seen).toHaveLength(2);
    const valid = service.seen.filter(({ headers }) => headers.authorization === "Bearer token-number-2");
    expect(new Set(valid.map(({ url }) => url)).size).toBe(100);
    expect(valid).toHaveLength(100);
    expect(service.seen.length).toBeLessThanOrEqual(200);
  });

  it("is no refusal until a new one was issued: starts until then are retried later", async () => {
    let isDown = false;
    const grant = granting(3_600);
    const { endpoint, token, clock } = await fixture((request, response, raw) => {
      if (isDown) json(response, {}, 503);
      else grant(request, response, raw);
    });
    await token.get();
    isDown = true;
    const service = await refusing("token-number-2");
    const client = connect(service.url, { token });
    for (const moveMs of [0, 100, 900, 5_000]) {
      clock.move(moveMs);
      expect(await errorOf(client.runSyncJob(7))).toMatchObject({ kind: "unreachable", sent: "no", status: 401 });
    }
    // At first, after the pause of 1 s, and after that of 2 s.
    expect(endpoint.seen).toHaveLength(4);
    isDown = false;
    clock.move(30_000);
    await client.runSyncJob(7);
  });

  it("long after it was renewed by another call gives the new one without asking", async () => {
    const { endpoint, token, clock } = await fixture(granting(3_600));
    expect(await token.get()).toBe("token-number-1");
    expect(await token.renew("token-number-1")).toBe("token-number-2");
    clock.move(60_000);
    expect(await token.renew("token-number-1")).toBe("token-number-2");
    expect(endpoint.seen).toHaveLength(2);
  });

  it("again and again is no reason to ask on: one renewal in 10 s", async () => {
    const { endpoint, token, clock } = await fixture(granting(3_600));
    const service = await refusing("none is valid");
    const client = connect(service.url, { token });
    for (let call = 0; call < 5; call += 1) {
      expect(await errorOf(client.runSyncJob(call))).toMatchObject({ kind: "unauthorized", status: 401 });
    }
    expect(endpoint.seen).toHaveLength(2);
    clock.move(10_000);
    await errorOf(client.runSyncJob(9));
    expect(endpoint.seen).toHaveLength(3);
  });

  it("is unreachable while the endpoint is down: the start is retried later", async () => {
    let isDown = false;
    const grant = granting(3_600);
    const { token } = await fixture((request, response, raw) => {
      if (isDown) response.destroy();
      else grant(request, response, raw);
    });
    await token.get();
    isDown = true;
    const service = await refusing("none is valid");
    const error = await errorOf(connect(service.url, { token }).runSyncJob(7));
    expect(error).toMatchObject({ kind: "unreachable", sent: "no", status: 401 });
  });
});

describe("a token endpoint that fails", () => {
  const echo = { error_description: `secret ${secret} is wrong`, client_secret: secret, access_token: canary };
  const cases: readonly (readonly [what: string, answer: Answering, temporary: boolean, text: string])[] = [
    [
      "refuses the client",
      (_, r) => json(r, { ...echo, error: "invalid_client" }, 401),
      false,
      "refused (status 401): invalid_client: check clientId",
    ],
    [
      "refuses the scope",
      (_, r) => json(r, { ...echo, error: "invalid_scope" }, 400),
      false,
      "refused (status 400): invalid_scope: check scope",
    ],
    [
      "refuses the client as UAA does",
      (_, r) => json(r, { ...echo, error: "unauthorized" }, 401),
      false,
      "refused (status 401): unauthorized: check clientId",
    ],
    [
      "gives the secret as its error",
      (_, r) => json(r, { ...echo, error: secret }, 400),
      false,
      "refused (status 400)",
    ],
    ["answers 403 in HTML", (_, r) => html(r, 403), false, "(status 403)"],
    ["is hidden by a proxy's 404", (_, r) => html(r, 404), true, "(status 404)"],
    ["is not there", (_, r) => json(r, { ...echo, error: "Realm does not exist" }, 404), false, "(status 404)"],
    ["answers 500", (_, r) => json(r, { ...echo, error: "server_error" }, 500), true, "status 500"],
    ["answers 429", (_, r) => json(r, echo, 429), true, "status 429"],
    ["answers 204", (_, r) => r.writeHead(204).end(), true, "status 204"],
    ["answers a page", (_, r) => html(r, 200), true, "did not answer as OAuth 2 says"],
    ["answers half a JSON", (_, r) => half(r), true, "did not answer as OAuth 2 says"],
    ["answers no token", (_, r) => json(r, echo.error_description), false, "did not answer as OAuth 2 says"],
    ["answers no bearer token", (_, r) => json(r, { ...echo, token_type: "mac" }), false, "did not answer as OAuth 2"],
    ["answers a DPoP token", (_, r) => json(r, { ...echo, token_type: "DPoP" }), false, "gives no bearer tokens"],
    [
      "answers a token of two lines",
      (_, r) => json(r, { access_token: `${canary}\r\nX: 1`, token_type: "bearer" }),
      false,
      "white space, control",
    ],
    ["answers without end", (_, r) => json(r, { ...echo, pad: "x".repeat(300_000) }), true, "too long a body"],
    [
      "sends elsewhere",
      (_, r) => r.writeHead(307, { location: `http://localhost:1/${secret}` }).end(),
      false,
      "a redirect, which is never followed",
    ],
    ["resets", (_, r) => r.destroy(), true, "cannot be reached (ECONNRESET)"],
    ["does not answer", () => {}, true, "cannot be reached (ETIMEDOUT"],
  ];

  it.each(cases)("because it %s: says so without a secret", async (_, answer, temporary, text) => {
    const requestMs = text.includes("ETIMEDOUT") ? 1_500 : 30_000;
    const { endpoint, token } = await fixture(answer, { timeouts: { requestMs } });
    const error = await errorOf(token.get());
    expect(error).toMatchObject({ name: "TokenError", temporary });
    const shown = [inspect(error, { depth: 20, showHidden: true }), JSON.stringify(error)].join("\n");
    expect(shown).toContain(text);
    expect(shown).toContain(`${endpoint.url}/oauth2/token`);
    for (const hidden of [secret, encodeURIComponent(secret), canary, "tenant=7"]) expect(shown).not.toContain(hidden);
    const service = connect("http://127.0.0.1:1", { token });
    expect(await errorOf(service.runSyncJob(1))).toMatchObject({ kind: temporary ? "unreachable" : "unauthorized" });
  });

  it("is left alone for a while: 1 s, then longer, at most 30 s or what it asks for", async () => {
    const { endpoint, token, clock } = await fixture((request, response) => {
      response.writeHead(429, endpointSaw(request.url) ? { "retry-after": "120" } : {});
      response.end();
    });
    const endpointSaw = (url: string) => url !== "" && endpoint.seen.length === 3;
    const asked = async (moveMs: number) => {
      clock.move(moveMs);
      await errorOf(token.get());
      await errorOf(token.get());
      return endpoint.seen.length;
    };
    expect(await asked(0)).toBe(1);
    expect(await asked(999)).toBe(1);
    expect(await asked(1)).toBe(2);
    expect(await asked(1_999)).toBe(2);
    expect(await asked(1)).toBe(3);
    expect(await asked(119_999)).toBe(3);
    expect(await asked(1)).toBe(4);
  });

  it("is not reached when the secret file is missing or empty", async () => {
    const { endpoint, token, clock, secretFile } = await fixture(granting(10));
    await rm(secretFile);
    expect(await errorOf(token.get())).toMatchObject({ temporary: true, message: expect.stringContaining("ENOENT") });
    await writeFile(secretFile, "\n");
    clock.move(1_000);
    expect(await errorOf(token.get())).toMatchObject({ temporary: false, message: expect.stringContaining("empty") });
    expect(endpoint.seen).toHaveLength(0);
  });
});

describe("asking for a token", () => {
  it("goes on for the others when one is stopped, and ends when the client closes", async () => {
    let release = () => {};
    const { endpoint, token } = await fixture((_, response) => {
      release = () => json(response, { access_token: "token-late", token_type: "bearer" });
    });
    const stop = new AbortController();
    const stopped = errorOf(token.get(stop.signal));
    const other = token.get();
    await until(() => endpoint.seen.length === 1);
    stop.abort();
    expect(await stopped).toBeInstanceOf(Error);
    release();
    expect(await other).toBe("token-late");
    const second = await fixture(() => {});
    const hanging = errorOf(second.token.get());
    await until(() => second.endpoint.seen.length === 1);
    second.token.close?.();
    expect(await hanging).toMatchObject({ name: "TokenError" });
  });

  it.each([
    ["http to another machine", "http://login.example.com/token"],
    ["http to what only looks like this machine", "http://127.0.0.1.example.com/token"],
    ["another scheme", "ftp://127.0.0.1/token"],
    ["no URL", "login.example.com"],
  ])("refuses %s", (_, tokenUrl) => {
    const make = () => oauth2Token({ tokenUrl, clientId: "a", clientSecretFile: "/nowhere" });
    expect(make).toThrow("not an https URL");
  });

  it("goes over http elsewhere only when that is allowed by name", () => {
    const tokenUrl = "http://login.internal/token";
    expect(() => oauth2Token({ tokenUrl, clientId: "a", clientSecretFile: "/x", allowHttp: true })).not.toThrow();
  });
});

function html(response: Parameters<Answering>[1], status: number): void {
  response.writeHead(status, { "content-type": "text/html" });
  response.end(`<html>${secret}</html>`);
}

function half(response: Parameters<Answering>[1]): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(`{"access_token":"${canary}`);
}

describe("what a token endpoint that fails costs the breaker of its service", () => {
  /** Lets everything in, and notes what it was told; `deniedBy`: what it answers instead. */
  function notingLimiter() {
    const told: string[] = [];
    const limiter: Limiter & { deniedBy: "rate" | undefined } = {
      deniedBy: undefined,
      acquire: async () =>
        limiter.deniedBy === undefined
          ? { release: async ({ kind }) => void told.push(kind ?? "well") }
          : { deniedBy: limiter.deniedBy, waitMs: 10 },
    };
    return { limiter, told };
  }

  it.each([
    [503, "unreachable"],
    [401, "unauthorized"],
  ])("is one failure per request to it (%d), for any caller; the others wait", async (status, kind) => {
    const { endpoint, token, clock } = await fixture((_, response) => json(response, {}, status));
    const { limiter, told } = notingLimiter();
    const client = connect("http://127.0.0.1:1", { token, limiter, retries: 2, clock });
    const together = await Promise.all(Array.from({ length: 10 }, (_, key) => errorOf(client.runSyncJob(key))));
    const kinds = together.map((error) => (error instanceof ServiceError ? error.kind : "bug"));
    expect(kinds.toSorted()).toEqual([...Array.from({ length: 9 }, () => "throttled"), kind].toSorted());
    clock.move(400);
    const later = await errorOf(client.getSyncJobById(7));
    expect(later).toMatchObject({ kind: "throttled", deniedBy: "token", sent: "no", retryAfterMs: 600 });
    expect(String(later)).toContain(
      "held back for 600ms: there is no token, and the next try to get one comes after that",
    );
    expect(told).toEqual([kind]);
    expect(endpoint.seen).toHaveLength(1);
    for (const pauseMs of [600, 2_000, 4_000, 8_000]) {
      clock.move(pauseMs);
      for (const key of [1, 2]) await errorOf(client.runSyncJob(key));
    }
    expect(endpoint.seen).toHaveLength(5);
    expect(told).toEqual(Array.from({ length: 5 }, () => kind));
  });

  it("is counted by the next caller when a limit denied the first; frees its permit", async () => {
    const { token } = await fixture((_, response) => json(response, {}, 503));
    const { limiter, told } = notingLimiter();
    const client = connect("http://127.0.0.1:1", { token, limiter });
    limiter.deniedBy = "rate";
    expect(await errorOf(client.runSyncJob(1))).toMatchObject({ deniedBy: "rate" });
    limiter.deniedBy = undefined;
    expect(await errorOf(client.runSyncJob(2))).toMatchObject({ kind: "unreachable" });
    expect(told).toEqual(["unreachable"]);
    const permit = { release: async ({ kind }: { kind: string | undefined }) => void told.push(`given: ${kind}`) };
    expect(await errorOf(client.runSyncJob(3, {}, { permit }))).toMatchObject({ deniedBy: "token" });
    expect(told).toEqual(["unreachable", "given: cancelled"]);
  });
});
