import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDeadline } from "../../../src/core/clock.ts";
import type { ServiceError } from "../../../src/service/client.ts";
import { connect, errorOf, startServer } from "./test-server.ts";

describe("the last look before a start goes out", () => {
  it("comes when the connection stands, and without consent not a byte leaves", async () => {
    let connections = 0;
    let bytes = 0;
    const server = createServer((socket) => {
      connections += 1;
      socket.on("data", (data) => {
        bytes += data.length;
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = typeof address === "object" ? address?.port : 0;
    const service = connect(`http://127.0.0.1:${port}`);
    const asked: number[] = [];
    const closed = once(server, "connection").then(([socket]) => once(socket, "close"));
    const beforeSend = () => {
      asked.push(1);
      return false;
    };
    const error = (await errorOf(service.runSyncJob(42, {}, { beforeSend }))) as ServiceError;
    expect({ kind: error.kind, sent: error.sent }).toEqual({ kind: "cancelled", sent: "no" });
    await closed;
    expect({ asked: asked.length, connections, bytes }).toEqual({ asked: 1, connections: 1, bytes: 0 });
  });

  it("takes the consent back where the call was aborted meanwhile", async () => {
    const stop = new AbortController();
    const server = await startServer((_request, response) => response.end());
    const beforeSend = () => {
      stop.abort();
      return true;
    };
    const start = errorOf(connect(server.url).runSyncJob(42, {}, { beforeSend, signal: stop.signal }));
    expect(await start).toMatchObject({ kind: "cancelled", sent: "no" });
    expect(server.seen).toHaveLength(0);
  });

  it("lets the request out with consent", async () => {
    const server = await startServer((_request, response) => response.end());
    await connect(server.url).runSyncJob(42, {}, { beforeSend: () => true });
    expect(server.seen).toHaveLength(1);
  });

  it("comes again before the repeat after a renewed token", async () => {
    const server = await startServer((_request, response) => response.writeHead(401).end());
    const token = { get: async () => "first", renew: async () => "second" };
    let asked = 0;
    const beforeSend = () => {
      asked += 1;
      return asked === 1;
    };
    const error = (await errorOf(connect(server.url, { token }).runSyncJob(42, {}, { beforeSend }))) as ServiceError;
    expect({ kind: error.kind, sent: error.sent, asked }).toEqual({ kind: "cancelled", sent: "no", asked: 2 });
    expect(server.seen).toHaveLength(1);
  });
});

describe("a start that waits for a token when it is told to stop", () => {
  const untilStopped = (signal?: AbortSignal) =>
    new Promise<string>((_, reject) => {
      if (signal?.aborted === true) reject(new Error("stopped"));
      signal?.addEventListener("abort", () => reject(new Error("stopped")));
    });

  it.each([
    ["has sent nothing", { get: untilStopped, renew: async () => "" }, 0],
    [
      "was refused with 401, which is not done",
      { get: async () => "first", renew: (_: string, signal?: AbortSignal) => untilStopped(signal) },
      1,
    ],
  ])("ends at once, and %s", async (_what, token, requests) => {
    const server = await startServer((_request, response) => response.writeHead(401).end());
    const told: (string | undefined)[] = [];
    const stop = new AbortController();
    const leave = async ({ kind }: { readonly kind: string | undefined }) => void told.push(kind);
    const service = connect(server.url, { token, limiter: { acquire: async () => ({ release: leave }) } });
    const start = errorOf(service.runSyncJob(42, {}, { abortBeforeSend: stop.signal }));
    await expect.poll(() => server.seen.length).toBe(requests);
    stop.abort();
    expect(await start).toMatchObject({ kind: "cancelled", sent: "no" });
    expect(server.seen).toHaveLength(requests);
    // Nothing is said of the service.
    expect(told).toEqual(requests === 0 ? [] : ["cancelled"]);
  });

  it("is not cut off once it is on its way", async () => {
    const stop = new AbortController();
    const server = await startServer((_request, response) => {
      stop.abort();
      setImmediate(() => response.end());
    });
    await connect(server.url).runSyncJob(42, {}, { abortBeforeSend: stop.signal });
    expect(server.seen).toHaveLength(1);
  });
});

describe("a start that waits for its connection when it is told to stop", () => {
  it("ends at once, and has sent nothing", async () => {
    const stop = new AbortController();
    const server = createServer(() => stop.abort());
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    // A handshake that nobody answers.
    const service = connect(`https://127.0.0.1:${port}`);
    const start = errorOf(service.runSyncJob(42, {}, { abortBeforeSend: stop.signal }));
    expect(await start).toMatchObject({ kind: "cancelled", sent: "no" });
  });

  it("opens none when it was told before", async () => {
    let connections = 0;
    const server = await startServer((_request, response) => response.end());
    server.server.on("connection", () => {
      connections += 1;
    });
    const start = errorOf(connect(server.url).runSyncJob(42, {}, { abortBeforeSend: AbortSignal.abort() }));
    expect(await start).toMatchObject({ kind: "cancelled", sent: "no" });
    expect(connections).toBe(0);
  });
});

describe("a deadline", () => {
  it("has passed when either clock says so: one may stand still, the other may step", () => {
    const clock = { wall: 0, monotonic: 0, nowMs: () => clock.wall, monotonicMs: () => clock.monotonic };
    const hasPassed = createDeadline(5_000, clock);
    expect(hasPassed()).toBe(false);
    clock.monotonic = 5_001;
    expect(hasPassed()).toBe(true);
    clock.monotonic = 0;
    clock.wall = 3_600_000;
    expect(hasPassed()).toBe(true);
    clock.wall = -3_600_000;
    expect(hasPassed()).toBe(false);
  });
});
