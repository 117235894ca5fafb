import { once } from "node:events";
import { createServer as createPlainServer } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { oauth2Token } from "../../../src/service/oauth2-token.ts";
import { TlsFiles, type TlsPaths } from "../../../src/service/tls-files.ts";
import { createAuthority, signedBy, type TestCertificate } from "../../support/certificates.ts";
import { mountSecrets } from "../../support/secret-mount.ts";
import { connect, errorOf } from "./test-server.ts";

let authority: TestCertificate;
let other: TestCertificate;
let serverCertificate: TestCertificate;
let client: TestCertificate;
beforeAll(async () => {
  authority = await createAuthority("fixture authority");
  other = await createAuthority("another authority");
  serverCertificate = await signedBy(authority);
  client = await signedBy(authority, { name: "syncline" });
});

interface SecureServer {
  readonly server: Server;
  readonly url: string;
  readonly port: number;
  /** Common names of the client certificates that came, one for each request; "" without one. */
  readonly clients: string[];
}

async function startSecure(
  certificate: TestCertificate,
  { wantsClient = false, answer = "{}" }: { readonly wantsClient?: boolean; readonly answer?: string } = {},
): Promise<SecureServer> {
  const clients: string[] = [];
  const mutual = wantsClient ? { requestCert: true, rejectUnauthorized: true, ca: authority.cert } : {};
  const server = createServer({ ...certificate, ...mutual }, (request, response) => {
    const peer = (request.socket as TLSSocket).getPeerCertificate();
    clients.push(String(peer?.subject?.CN ?? ""));
    request.resume();
    response.writeHead(200, { "content-type": "application/json" });
    response.end(answer);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { server, url: `https://127.0.0.1:${port}`, port, clients };
}

function movableClock(): Clock & { move(durationMs: number): void } {
  let nowMs = 0;
  return {
    ...systemClock,
    monotonicMs: () => nowMs,
    move: (durationMs) => {
      nowMs += durationMs;
    },
  };
}

/** Mounted files, and the TlsFiles over them. */
async function mounted(files: Readonly<Record<string, string>>, paths: (at: (name: string) => string) => TlsPaths) {
  const mount = await mountSecrets(files);
  const clock = movableClock();
  const warned: string[] = [];
  const log = {
    info: () => {},
    warn: (_: string, fields = {}) => warned.push(JSON.stringify(fields)),
    error: () => {},
  };
  return { mount, clock, warned, tls: new TlsFiles(paths(mount.path), { clock, log }) };
}

describe("a private authority", () => {
  it("is trusted, in place of the public ones, for reads and for starts", async () => {
    const server = await startSecure(serverCertificate);
    const { tls } = await mounted({ "ca.crt": authority.cert }, (at) => ({ caFile: at("ca.crt") }));
    const service = connect(server.url, { tls });
    await service.getSyncJobById(1);
    await service.runSyncJob(1);
    expect(server.clients).toHaveLength(2);
  });

  it.each([
    [
      "nothing is named: the authority is unknown",
      async () => undefined,
      "name that authority's certificate in tls.caFile",
    ],
    ["another authority is named", async () => other.cert, "name that authority's certificate in tls.caFile"],
  ])("when %s, nothing is sent, and the error says what to do", async (_, ca, text) => {
    const server = await startSecure(serverCertificate);
    const cert = await ca();
    const tls = cert === undefined ? undefined : (await mounted({ ca: cert }, (at) => ({ caFile: at("ca") }))).tls;
    const service = connect(server.url, { tls });
    for (const call of [() => service.getSyncJobById(1), () => service.runSyncJob(1)]) {
      const error = await errorOf(call());
      expect(error).toMatchObject({ kind: "unreachable", sent: "no" });
      expect(String(error)).toContain(text);
    }
    expect(server.clients).toHaveLength(0);
  });

  it("excuses no certificate that is expired, not yet valid or for another host", async () => {
    const day = 86_400_000;
    const now = Date.now();
    const cases = [
      [{ from: new Date(now - 9 * day), until: new Date(now - day) }, "has expired"],
      [{ from: new Date(now + day), until: new Date(now + 9 * day) }, "not valid yet"],
      [{ name: "elsewhere.example", noAddress: true }, "for another host"],
    ] as const;
    const { tls } = await mounted({ ca: authority.cert }, (at) => ({ caFile: at("ca") }));
    for (const [options, text] of cases) {
      const server = await startSecure(await signedBy(authority, options));
      const error = await errorOf(connect(server.url, { tls }).runSyncJob(1));
      expect(error).toMatchObject({ kind: "unreachable", sent: "no" });
      expect(String(error)).toContain(text);
      expect(server.clients).toHaveLength(0);
    }
  });

  it("goes with another host name than the URL's, when that is said", async () => {
    const server = await startSecure(await signedBy(authority, { name: "sync.example.com", noAddress: true }));
    const files = { ca: authority.cert };
    const right = await mounted(files, (at) => ({ caFile: at("ca"), serverName: "sync.example.com" }));
    await connect(server.url, { tls: right.tls }).getSyncJobById(1);
    const wrong = await mounted(files, (at) => ({ caFile: at("ca"), serverName: "sync2.example.com" }));
    expect(await errorOf(connect(server.url, { tls: wrong.tls }).getSyncJobById(1))).toMatchObject({
      kind: "unreachable",
      code: "ERR_TLS_CERT_ALTNAME_INVALID",
    });
  });

  it("cannot be used where there is no TLS: the error says so", async () => {
    const plain = createPlainServer((_, response) => response.end("{}"));
    plain.listen(0, "127.0.0.1");
    await once(plain, "listening");
    onTestFinished(() => void plain.close());
    const { tls } = await mounted({ ca: authority.cert }, (at) => ({ caFile: at("ca") }));
    const { port } = plain.address() as AddressInfo;
    const error = await errorOf(connect(`https://127.0.0.1:${port}`, { tls }).runSyncJob(1));
    expect(error).toMatchObject({ kind: "unreachable", sent: "no" });
    expect(String(error)).toContain("does not speak TLS");
  });
});

describe("a client certificate", () => {
  const paths = (at: (name: string) => string) => ({ caFile: at("ca"), certFile: at("crt"), keyFile: at("key") });

  it("is shown to the service, with its encrypted key", async () => {
    const server = await startSecure(serverCertificate, { wantsClient: true });
    const passphrase = "correct horse battery";
    const locked = await signedBy(authority, { name: "locked", passphrase });
    const { tls } = await mounted(
      { ca: authority.cert, crt: locked.cert, key: locked.key, pass: `${passphrase}\n` },
      (at) => ({ ...paths(at), keyPassphraseFile: at("pass") }),
    );
    await connect(server.url, { tls }).runSyncJob(1);
    expect(server.clients).toEqual(["locked"]);
  });

  it("that the service misses means surely not sent, and says what to check", async () => {
    const server = await startSecure(serverCertificate, { wantsClient: true });
    const { tls } = await mounted({ ca: authority.cert }, (at) => ({ caFile: at("ca") }));
    const error = await errorOf(connect(server.url, { tls }).runSyncJob(1));
    expect(error).toMatchObject({ kind: "unreachable", sent: "no" });
    expect(String(error)).toContain("refused the client certificate");
    expect(server.clients).toEqual([]);
  });

  it("that was rotated shows at the next look, also in kept connections", async () => {
    const server = await startSecure(serverCertificate, { wantsClient: true });
    const { mount, clock, tls } = await mounted({ ca: authority.cert, crt: client.cert, key: client.key }, paths);
    const service = connect(server.url, { tls });
    await service.getSyncJobById(1);
    const next = await signedBy(authority, { name: "next" });
    await mount.swap({ ca: authority.cert, crt: next.cert, key: next.key });
    await service.getSyncJobById(1);
    clock.move(30_000);
    await service.getSyncJobById(1);
    await service.runSyncJob(1);
    expect(server.clients).toEqual(["syncline", "syncline", "next", "next"]);
  });

  it("that the service refuses is read again at once: the next try takes a rotated one", async () => {
    const server = await startSecure(serverCertificate, { wantsClient: true });
    const stranger = await signedBy(other, { name: "stranger" });
    const { mount, tls } = await mounted({ ca: authority.cert, crt: stranger.cert, key: stranger.key }, paths);
    const service = connect(server.url, { tls });
    // This server resets without an alert, which could have been after the request: nobody knows.
    expect(await errorOf(service.runSyncJob(1))).toMatchObject({ kind: "answer-lost", sent: "maybe" });
    await mount.swap({ ca: authority.cert, crt: client.cert, key: client.key });
    await service.runSyncJob(1);
    expect(server.clients).toEqual(["syncline"]);
  });

  it("that was half rotated leaves the good one in force, and is warned of once", async () => {
    const server = await startSecure(serverCertificate, { wantsClient: true });
    const { mount, clock, tls, warned } = await mounted(
      { ca: authority.cert, crt: client.cert, key: client.key },
      paths,
    );
    const service = connect(server.url, { tls });
    await service.getSyncJobById(1);
    const next = await signedBy(authority, { name: "next" });
    await mount.swap({ ca: authority.cert, crt: next.cert, key: client.key });
    for (let look = 0; look < 3; look += 1) {
      clock.move(30_000);
      await service.getSyncJobById(1);
    }
    expect(server.clients).toEqual(["syncline", "syncline", "syncline", "syncline"]);
    expect(warned.length).toBeLessThan(3);
    expect(warned[0]).toContain("check that the key is the certificate's");
    expect(warned[0]).toContain('"inForce":true');
  });

  it.each([
    ["a missing file", { crt: "", key: "" }, { caFile: "/nowhere/ca" }, "ENOENT"],
    ["no certificate", { crt: "hello", key: "x" }, {}, "holds no certificate"],
    [
      "a locked key without its passphrase",
      "locked",
      {},
      "check that the key is the certificate's, and its passphrase",
    ],
    [
      "a locked key with a wrong passphrase",
      "wrong",
      {},
      "check that the key is the certificate's, and its passphrase",
    ],
  ])("with %s keeps the service out of reach, and the text shows no secret", async (_, given, more, text) => {
    const locked = await signedBy(authority, { passphrase: "right-passphrase" });
    const files = typeof given === "string" ? { crt: locked.cert, key: locked.key } : given;
    const mount = await mountSecrets({ ...files, pass: "wrong-passphrase" });
    const pass = given === "wrong" ? { keyPassphraseFile: mount.path("pass") } : {};
    const tls = new TlsFiles({ certFile: mount.path("crt"), keyFile: mount.path("key"), ...pass, ...more });
    const error = await errorOf(connect("https://127.0.0.1:1", { tls }).runSyncJob(1));
    expect(error).toMatchObject({ kind: "unreachable", sent: "no", code: "TLS_FILES" });
    expect(String(error)).toContain(text);
    expect(String(error)).not.toMatch(/wrong-passphrase|PRIVATE/);
  });
});

describe("a token endpoint", () => {
  it("of the fixture is trusted by the caFile, and never gets the client certificate", async () => {
    const grant = JSON.stringify({ access_token: "a-token", token_type: "bearer" });
    const endpoint = await startSecure(serverCertificate, { answer: grant });
    const mount = await mountSecrets({ ca: authority.cert, secret: "client secret" });
    const tokenUrl = `${endpoint.url}/token`;
    const asking = { tokenUrl, clientId: "syncline", clientSecretFile: mount.path("secret") };
    const trusted = oauth2Token({ ...asking, tls: new TlsFiles({ caFile: mount.path("ca") }, { trustPublic: true }) });
    expect(await trusted.get()).toBe("a-token");
    expect(endpoint.clients).toEqual([""]);
    const error = await errorOf(oauth2Token(asking).get());
    expect(error).toMatchObject({ temporary: true, message: expect.stringContaining("tls.caFile") });
  });

  it("still trusts the public authorities beside that of the fixture", async () => {
    const mount = await mountSecrets({ ca: authority.cert });
    const both = await new TlsFiles({ caFile: mount.path("ca") }, { trustPublic: true }).current();
    const own = await new TlsFiles({ caFile: mount.path("ca") }).current();
    expect(both.ca?.length).toBeGreaterThan(10);
    expect(own.ca).toEqual([authority.cert]);
  });
});
