import { once } from "node:events";
import { createServer as createSecureServer } from "node:https";
import { createServer, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import type { TLSSocket } from "node:tls";
import { describe, expect, it } from "vitest";
import type { ServiceError } from "../../../src/service/client.ts";
import { TlsFiles } from "../../../src/service/tls-files.ts";
import { createAuthority, signedBy } from "../../support/certificates.ts";
import { mountSecrets } from "../../support/secret-mount.ts";
import { connect, errorOf, listen, startServer } from "./test-server.ts";

describe("the connection of a start", () => {
  it("is its own, and is closed after the answer", async () => {
    const server = await startServer((_, response) => response.end());
    const ended: Promise<unknown>[] = [];
    server.server.on("connection", (socket) => ended.push(once(socket, "close")));
    const service = connect(server.url);
    for (const key of [1, 2, 3]) await service.runSyncJob(key);
    expect(ended).toHaveLength(3);
    await Promise.all(ended);
  });

  const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));
  const hosts = [
    ["a name", "127.0.0.1", "localhost"],
    ["an IPv6 address", "::1", "[::1]"],
  ] as const;
  it.each(hosts.slice(0, hasIpv6 ? 2 : 1))("goes to %s", async (_what, host, inUrl) => {
    const bytes: string[] = [];
    const port = await listen(
      createServer((socket) =>
        socket.on("data", (data) => {
          bytes.push(data.toString());
          socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }),
      ),
      host,
    );
    await connect(`http://${inUrl}:${port}`).runSyncJob(42);
    expect(bytes.join("")).toMatch(/^POST \/api\/syncjobs\/run\(42\) HTTP\/1\.1\r\n/);
    expect(bytes.join("").toLowerCase()).toContain(`host: ${inUrl}:${port}\r\n`);
  });

  it("resumes the TLS session of the one before, and names the host", async () => {
    const authority = await createAuthority("fixture authority");
    const reused: boolean[] = [];
    const names: unknown[] = [];
    const server = createSecureServer({ ...(await signedBy(authority)) }, (request, response) => {
      reused.push((request.socket as TLSSocket).isSessionReused());
      names.push((request.socket as TLSSocket & { readonly servername?: unknown }).servername);
      response.end();
    });
    const port = await listen(server);
    const mount = await mountSecrets({ ca: authority.cert });
    const tls = new TlsFiles({ caFile: mount.path("ca") });
    const service = connect(`https://localhost:${port}`, { tls });
    for (const key of [1, 2, 3]) await service.runSyncJob(key);
    expect(reused).toEqual([false, true, true]);
    expect(names).toEqual(["localhost", "localhost", "localhost"]);
  });

  it("that does not come up in time surely carried nothing", async () => {
    const port = await listen(createServer(() => {}));
    const service = connect(`https://127.0.0.1:${port}`, { timeouts: { secureConnectMs: 50 } });
    expect(await errorOf(service.runSyncJob(1))).toMatchObject({
      kind: "unreachable",
      sent: "no",
      code: "ETIMEDOUT (secureConnect)",
    });
  });

  it("to an unknown host says so at once", async () => {
    const error = await errorOf(connect("http://nobody.invalid").runSyncJob(1));
    expect(error).toMatchObject({ kind: "unreachable", sent: "no", code: expect.stringMatching(/^(ENOTFOUND|EAI_)/) });
  });

  it("is given up at once when the caller aborts, and nothing was sent", async () => {
    const stop = new AbortController();
    const port = await listen(createServer(() => stop.abort()));
    const start = connect(`https://127.0.0.1:${port}`).runSyncJob(1, {}, { signal: stop.signal });
    expect(await errorOf(start)).toMatchObject({ kind: "cancelled", sent: "no" });
  });

  it.each([
    ["reset", (socket: Socket) => socket.resetAndDestroy()],
    ["closed", (socket: Socket) => socket.end()],
  ])("may be %s as soon as it stands: each start ends with an error of its own", async (_what, hangUp) => {
    const port = await listen(createServer({ allowHalfOpen: true }, (socket) => void hangUp(socket)));
    const service = connect(`http://127.0.0.1:${port}`);
    const errors = await Promise.all(Array.from({ length: 50 }, (_, key) => errorOf(service.runSyncJob(key + 1))));
    for (const error of errors as ServiceError[]) {
      expect({ kind: error.kind, sent: error.sent }).toEqual(
        error.sent === "no" ? { kind: "unreachable", sent: "no" } : { kind: "answer-lost", sent: "maybe" },
      );
    }
  });
});
