// What a connection that was opened before its request must not change: the request's bytes, what is said to be sent, limits of time, checks of certificates.
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttpsServer, Agent as HttpsAgent } from "node:https";
import {
  type AddressInfo,
  connect as connectPlain,
  createServer,
  type Server,
  Socket,
  type SocketConnectOpts,
} from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { freshWay } from "../../../src/service/connection.ts";
import { defaultTimeouts } from "../../../src/service/service-options.ts";
import { TlsFiles } from "../../../src/service/tls-files.ts";
import { createAuthority, signedBy, type TestCertificate } from "../../support/certificates.ts";
import { mountSecrets } from "../../support/secret-mount.ts";
import { connect, errorOf } from "./test-server.ts";

let authority: TestCertificate;
let certificate: TestCertificate;
beforeAll(async () => {
  authority = await createAuthority("house authority");
  certificate = await signedBy(authority);
});

async function trusted(): Promise<TlsFiles> {
  const mount = await mountSecrets({ ca: authority.cert });
  return new TlsFiles({ caFile: mount.path("ca") });
}

async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
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
    expect(await errorOf(change)).toMatchObject({ kind: "unknown", sent: "maybe" });
  });
});
