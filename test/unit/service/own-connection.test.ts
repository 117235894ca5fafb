// What a connection that was opened before its request must not change: the request's bytes, what
// is said to be sent, limits of time, checks of certificates.
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttpsServer, Agent as HttpsAgent } from "node:https";
import { connect as connectPlain, createServer, Socket, type SocketConnectOpts } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { dedicatedConnection } from "../../../src/service/connection.ts";
import { defaultTimeouts } from "../../../src/service/service-options.ts";
import { TlsFiles } from "../../../src/service/tls-files.ts";
import { createAuthority, signedBy, type TestCertificate } from "../../support/certificates.ts";
import { mountSecrets } from "../../support/secret-mount.ts";
import { connect, errorOf, listen } from "./test-server.ts";

let authority: TestCertificate;
let certificate: TestCertificate;
beforeAll(async () => {
  authority = await createAuthority("fixture authority");
  certificate = await signedBy(authority);
});

async function trusted(): Promise<TlsFiles> {
  const mount = await mountSecrets({ ca: authority.cert });
  return new TlsFiles({ caFile: mount.path("ca") });
}

/** Lets connections to any port come out at this one. */
function leadTo(port: number): void {
  const open = Socket.prototype.connect;
  const spy = vi.spyOn(Socket.prototype, "connect").mockImplementation(function (this: Socket, ...given: unknown[]) {
    const [options, onConnect] = given.flat() as [SocketConnectOpts, (() => void) | undefined];
    return Reflect.apply(open, this, [{ ...options, port }, onConnect]);
  });
  onTestFinished(() => spy.mockRestore());
}

describe("a request over a connection of its own", () => {
  it.each(["http", "https"])("names the host alone where %s has its usual port", async (scheme) => {
    const hosts: unknown[] = [];
    const server =
      scheme === "http"
        ? createHttpServer((request, response) => response.end(void hosts.push(request.headers.host)))
        : createHttpsServer({ ...certificate }, (request, response) =>
            response.end(void hosts.push(request.headers.host)),
          );
    leadTo(await listen(server));
    await connect(`${scheme}://localhost`, { tls: await trusted() }).runSyncJob(42);
    expect(hosts).toEqual(["localhost"]);
  });

  it("may be carried out when its body was cut off, over TLS as well", async () => {
    const raw = new Set<Socket>();
    const server = createTlsServer({ ...certificate }, (socket) => {
      socket.on("error", () => {});
      socket.once("data", () => {
        for (const each of raw) each.resetAndDestroy();
      });
    });
    server.on("connection", (socket: Socket) => raw.add(socket));
    const service = connect(`https://localhost:${await listen(server)}`, { tls: await trusted() });
    const change = service.updateSyncJobById(42, { syncJobName: "x".repeat(16 * 1024 * 1024) });
    expect(await errorOf(change)).toMatchObject({ kind: "answer-lost", sent: "maybe" });
  });
});

describe("a connection that a request waits for", () => {
  it("counts for the time that the whole request has", async () => {
    const service = connect(`https://127.0.0.1:${await listen(createServer())}`, { timeouts: { requestMs: 1_000 } });
    expect(await errorOf(service.runSyncJob(42))).toMatchObject({
      kind: "unreachable",
      sent: "no",
      code: "ETIMEDOUT (secureConnect)",
    });
  });

  it("leaves the request what is left of that time", async () => {
    // The handshake takes most of it.
    const upstream = await listen(createTlsServer({ ...certificate }, () => {}));
    const server = createServer((socket) => {
      const beyond = connectPlain(upstream, "127.0.0.1");
      for (const each of [socket, beyond]) each.on("error", () => {});
      beyond.pipe(socket);
      setTimeout(() => socket.pipe(beyond), 500);
    });
    const timeouts = { requestMs: 2_000, responseMs: 1_750 };
    const service = connect(`https://localhost:${await listen(server)}`, { tls: await trusted(), timeouts });
    expect(await errorOf(service.runSyncJob(42))).toMatchObject({ sent: "maybe", code: "ETIMEDOUT (request)" });
  });

  it("may take for ever where no limit is set", async () => {
    const server = createHttpsServer({ ...certificate }, (_, response) => response.end());
    const [lookupMs, connectMs, secureConnectMs, requestMs] = Array(4).fill(Number.POSITIVE_INFINITY);
    const timeouts = { lookupMs, connectMs, secureConnectMs, requestMs };
    const service = connect(`https://localhost:${await listen(server)}`, { tls: await trusted(), timeouts });
    await service.runSyncJob(42);
  });

  it("is checked, whatever Node is told by its environment", async () => {
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
    onTestFinished(() => void vi.unstubAllEnvs());
    let requests = 0;
    const server = createHttpsServer({ ...certificate }, (_, response) => {
      requests += 1;
      response.end();
    });
    const service = connect(`https://localhost:${await listen(server)}`);
    expect(await errorOf(service.runSyncJob(42))).toMatchObject({ kind: "unreachable", sent: "no" });
    expect(requests).toBe(0);
  });

  it("tells why it broke before the request took it", async () => {
    const wantsClient = { requestCert: true, rejectUnauthorized: true, ca: authority.cert };
    const port = await listen(createTlsServer({ ...certificate, ...wantsClient }, () => {}));
    const wanted = { url: new URL(`https://localhost:${port}`), timeouts: defaultTimeouts, leftMs: () => 5_000 };
    const connection = await dedicatedConnection(new HttpsAgent({ ca: authority.cert }), wanted, new AbortController());
    await new Promise((resolve) => connection.socket?.once("close", resolve));
    const take = () => "createConnection" in connection.options && connection.options.createConnection();
    expect(take).toThrow(expect.objectContaining({ code: "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED" }));
    expect(connection.isTaken).toBe(false);
  });
});
