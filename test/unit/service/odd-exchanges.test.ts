// Ways in which an exchange fails to end, each over a real connection: every one ends in time,
// alone, and is told truly.
import { ClientRequest } from "node:http";
import { createServer, type Socket } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { withTimeLimit } from "../../../src/core/clock.ts";
import { type ServiceError, type SyncService, TlsFiles } from "../../../src/service/client.ts";
import { TestLog } from "../../support/test-log.ts";
import { connect, errorOf, json, listen, startServer } from "./test-server.ts";

const requestMs = 2_000;
const timeouts = { requestMs };

/** A server that does this with each connection once a request has arrived on it. */
async function oddServer(act: (socket: Socket) => void): Promise<{ url: string; arrived: () => number }> {
  let arrived = 0;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.once("data", () => {
      arrived += 1;
      act(socket);
    });
  });
  return { url: `http://127.0.0.1:${await listen(server)}`, arrived: () => arrived };
}

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const head = (lines = "") => `HTTP/1.1 200 OK\r\n${lines}\r\n`;
const chunked = head("transfer-encoding: chunked\r\n");

type Act = readonly [what: string, act: (socket: Socket) => void];

/** Drips forever; the socket's end ends it. */
function drip(socket: Socket, piece: string, first = ""): void {
  socket.write(first);
  const timer = setInterval(() => socket.write(piece), 5);
  socket.once("close", () => clearInterval(timer));
}

const contracts: readonly Act[] = [
  ["101, left open", (socket) => socket.write(switching)],
  ["101 and a half-close", (socket) => socket.end(switching)],
  ["101 and a reset", (socket) => socket.write(switching, () => socket.resetAndDestroy())],
  ["101 and a reset later", (socket) => socket.write(switching, () => setTimeout(() => socket.resetAndDestroy(), 50))],
  ["101 and frames of another protocol", (socket) => drip(socket, `${switching}\u0081\u0005hello`)],
  ["101 without the headers of one", (socket) => socket.write("HTTP/1.1 101 Go\r\n\r\n")],
  ["104, which nothing names", (socket) => socket.write("HTTP/1.1 104 Upload\r\n\r\n")],
  ["199, then 200", (socket) => socket.write(`HTTP/1.1 199 Odd\r\n\r\n${head("content-length: 0\r\n")}`)],
  ["103 without end", (socket) => drip(socket, "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(20))],
];

const unfinished: readonly Act[] = [
  ["nothing at all", () => {}],
  ["a half-close before the head", (socket) => socket.end()],
  ["a half-close in the head", (socket) => socket.end("HTTP/1.1 500 Inter")],
  ["one 102, then silence", (socket) => socket.write("HTTP/1.1 102 Processing\r\n\r\n")],
  ["a head that drips", (socket) => drip(socket, "x")],
  ["two heads that name other lengths", (socket) => socket.write(head("content-length: 1\r\ncontent-length: 2\r\n"))],
  ["a negative length", (socket) => socket.write(head("content-length: -1\r\n"))],
];

const bodies: readonly Act[] = [
  ["a body without end", (socket) => socket.write(`${head("content-length: 100\r\n")}half`)],
  ["a half-close in the body", (socket) => socket.end(`${head("content-length: 100\r\n")}half`)],
  ["a body until the connection ends, which it never does", (socket) => socket.write(`${head()}{}`)],
  ["a broken chunk", (socket) => socket.write(`${chunked}zz\r\n`)],
  ["chunks that drip", (socket) => drip(socket, "1\r\n \r\n", chunked)],
  ["trailers without end", (socket) => drip(socket, "a: b\r\n", `${chunked}0\r\n`)],
  ["bytes that are no gzip", (socket) => socket.end(`${head("content-encoding: gzip\r\ncontent-length: 4\r\n")}nope`)],
];

const read = (service: SyncService) => service.getSyncJobById(1);
const start = (service: SyncService) => service.runSyncJob(1);

/**
 * The error of a call, which comes within the time that every exchange has. The promise is for a
 * process that runs: as in the watchdog, a time in which this one stood still does not count.
 */
async function failureOf(call: Promise<unknown>): Promise<ServiceError> {
  const held = () => new Error(`not over ${requestMs + 5_000} ms after its begin`);
  return (await withTimeLimit(errorOf(call), requestMs + 5_000, held)) as ServiceError;
}

describe("an answer that is none", () => {
  it.each(contracts)("is refused at once: %s", async (_what, act) => {
    const server = await oddServer(act);
    // Long enough that nothing but the answer itself can end it in time.
    const failures = await Promise.all([read, start].map((call) => errorOf(call(connect(server.url)))));
    for (const error of failures) expect(error).toMatchObject({ kind: "contract", sent: "maybe" });
    expect(server.arrived()).toBe(2);
  });

  it.each(unfinished)("is waited for no longer than the time-out: %s", async (_what, act) => {
    const server = await oddServer(act);
    const failures = await Promise.all([read, start].map((call) => failureOf(call(connect(server.url, { timeouts })))));
    for (const error of failures) expect(error).toMatchObject({ kind: "answer-lost", sent: "maybe" });
    expect(server.arrived()).toBe(2);
  });

  it.each(bodies)("has a head that counts for a start alone: %s", async (_what, act) => {
    const server = await oddServer(act);
    const started = start(connect(server.url, { timeouts: { requestMs: 6_000 } }));
    expect(await failureOf(read(connect(server.url, { timeouts })))).toMatchObject({ sent: "maybe" });
    await started;
    expect(server.arrived()).toBe(2);
  });

  it.each([
    ["garbage behind a whole answer", "nonsense\r\n\r\n"],
    ["a second answer that was not asked for", head("content-length: 2\r\n")],
    ["101 that was not asked for", switching],
  ])("spoils nothing that comes after it: %s", async (_what, more) => {
    const job = '{"syncJobId":1}';
    const server = await oddServer((socket) => {
      socket.on("data", () => socket.write(`${head(`content-length: ${job.length}\r\n`)}${job}`));
      socket.write(`${head(`content-length: ${job.length}\r\n`)}${job}`);
      // The connection is in the list of free ones by then.
      setTimeout(() => socket.write(more, () => socket.resetAndDestroy()), 10);
    });
    const service = connect(server.url, { retries: 2 });
    for (let round = 0; round < 5; round += 1) {
      expect(await read(service)).toMatchObject({ syncJobId: 1 });
      await new Promise((resolve) => setTimeout(resolve, 10 + round));
    }
  });

  it("lets 100, 102 and 103 pass", async () => {
    const passing = [100, 102, 103].map((status) => `HTTP/1.1 ${status} Go on\r\n\r\n`).join("");
    const server = await oddServer((socket) => socket.end(`${passing}${head("content-length: 2\r\n")}{}`));
    await start(connect(server.url));
  });

  it("frees its kept connection for the next read", async () => {
    let isOdd = true;
    const server = await startServer((_, response, raw) => {
      if (isOdd) raw.socket.write(switching);
      else json(response, { syncJobId: 1 });
    });
    const service = connect(server.url, { maxSockets: 1 });
    for (let round = 0; round < 3; round += 1) expect(await errorOf(read(service))).toMatchObject({ kind: "contract" });
    isOdd = false;
    expect(await read(service)).toMatchObject({ syncJobId: 1 });
  });
});

describe("the watchdog over an exchange", () => {
  it("ends one that a library never settles, tells, and lets nothing out afterwards", async () => {
    const server = await oddServer(() => {});
    const log = new TestLog();
    const deaf = vi.spyOn(ClientRequest.prototype, "emit").mockImplementation(function (this: ClientRequest, ...given) {
      const [event] = given as unknown as [string];
      if (["response", "error", "close", "timeout"].includes(event)) return false;
      return Object.getPrototypeOf(ClientRequest.prototype).emit.apply(this, given);
    });
    onTestFinished(() => deaf.mockRestore());
    const never = new TlsFiles({});
    let goOn = () => {};
    vi.spyOn(never, "current").mockImplementation(async () => {
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
      return {};
    });
    const service = connect(server.url, { timeouts, log });
    const unsent = connect(server.url.replace("http:", "https:"), { timeouts, log, tls: never });
    const failures = await Promise.all([read(service), start(service), start(unsent)].map(failureOf));
    const code = "EXCHANGE_STUCK";
    const lost = { kind: "answer-lost", sent: "maybe", code };
    expect(failures).toMatchObject([lost, lost, { kind: "unreachable", sent: "no", code }]);
    expect(log.named("request.stuck").map(({ sent }) => sent)).toEqual(["maybe", "maybe", "no"]);
    goOn();
    await new Promise((resolve) => setImmediate(resolve));
    expect(server.arrived()).toBe(2);
  }, 60_000);
});
