import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import type { Clock } from "../../../src/core/clock.ts";
import { type ServiceError, type SyncService, TokenError, type TokenSource } from "../../../src/service/client.ts";
import { canary, connect, errorOf, json, startServer } from "./test-server.ts";

/** A clock that waits for nothing and notes what it was asked. */
function quickClock(): Clock & { readonly waits: number[] } {
  const waits: number[] = [];
  let nowMs = Date.parse("2026-11-21T12:00:00Z");
  return {
    waits,
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    sleep: async (durationMs) => {
      waits.push(durationMs);
      nowMs += durationMs;
    },
    every: () => () => {},
  };
}

const get = (service: SyncService) => service.getSyncJobById(1);
const post = (service: SyncService) => service.runSyncJob(1);

describe("the kind of a failure", () => {
  it.each([
    [400, "bad-request"],
    [401, "unauthorized"],
    [403, "forbidden"],
    [404, "not-found"],
    [405, "undocumented"],
    [408, "answer-lost"],
    [409, "undocumented"],
    [410, "undocumented"],
    [412, "undocumented"],
    [415, "undocumented"],
    [428, "undocumented"],
    [429, "throttled"],
    [500, "server"],
    [501, "server"],
    [502, "answer-lost"],
    [503, "server"],
    [504, "answer-lost"],
    [599, "server"],
    [300, "contract"],
    [301, "contract"],
    [304, "contract"],
    [307, "contract"],
  ] as const)("for status %i is %s, for GET and POST alike", async (status, kind) => {
    const server = await startServer((_, response) => {
      response.writeHead(status, { location: "/elsewhere" });
      response.end();
    });
    for (const call of [get, post]) {
      const error = await errorOf(call(connect(server.url)));
      expect(error).toMatchObject({ kind, status, sent: "maybe" });
      expect((error as Error).message).toContain(`status ${status}`);
    }
    expect(server.seen).toHaveLength(2);
  });

  it.each([
    ["7", 7_000],
    ["0", 0],
    ["99999999", 900_000],
    ["99999999999999999999", 900_000],
    ["Sat, 21 Nov 2026 12:00:30 GMT", 30_000],
    ["Sat, 21 Nov 2026 11:00:00 GMT", 0],
    ["Fri, 21 Nov 2036 11:00:00 GMT", 900_000],
    ["-1", undefined],
    ["soon", undefined],
    ["1.5", undefined],
    ["", undefined],
    ["2026-11-21T12:00:30Z", undefined],
  ])("reads Retry-After %j as %j ms", async (header, retryAfterMs) => {
    const server = await startServer((_, response) => {
      response.writeHead(503, { "retry-after": header });
      response.end();
    });
    const error = await errorOf(post(connect(server.url, { clock: quickClock() })));
    expect(error).toMatchObject({ kind: retryAfterMs === undefined ? "server" : "throttled", retryAfterMs });
  });

  it("counts a Retry-After date from the answer's Date, never from a later clock", async () => {
    const date = (seconds: number) => new Date(Date.UTC(2026, 10, 21, 12, 0, seconds)).toUTCString();
    let said = "";
    let untilS = 30;
    const server = await startServer((_, response) => {
      response.writeHead(429, { "retry-after": date(untilS), date: said }).end();
    });
    const waitBy = async (answeredAt: string) => {
      said = answeredAt;
      return errorOf(post(connect(server.url, { clock: quickClock() })));
    };
    // Our clock says 12:00:00.
    expect(await waitBy(date(-20))).toMatchObject({ retryAfterMs: 50_000 });
    expect(await waitBy(date(20))).toMatchObject({ retryAfterMs: 30_000 });
    expect(await waitBy("yesterday")).toMatchObject({ retryAfterMs: 30_000 });
    const hourS = 3_600;
    for (const aheadS of [2 * hourS, 61, -61, -2 * hourS]) {
      untilS = aheadS + 30;
      expect(await waitBy(date(aheadS))).toMatchObject({ retryAfterMs: 30_000 });
    }
    // The proxy's Date is 2 h ahead, the service's clock is right.
    untilS = 30;
    expect(await waitBy(date(2 * hourS))).toMatchObject({ retryAfterMs: 30_000 });
  });

  it("says what the interface documents, and nothing where it is silent", async () => {
    let status = 404;
    const server = await startServer((_, response) => json(response, {}, status));
    const service = connect(server.url);
    expect(await errorOf(service.deleteSyncJobById(1))).toMatchObject({
      documented: "no sync job with the id (service-interface §7)",
    });
    expect(await errorOf(service.getSyncJobById(1))).toMatchObject({ kind: "not-found", documented: undefined });
    status = 500;
    const error = await errorOf(service.runSyncJob(1));
    expect(error).toMatchObject({ documented: "starting the run failed on the server (service-interface §7)" });
    expect((error as Error).message).toBe(
      "RunSyncJob (POST /api/syncjobs/run(1)): the service answered with status 500; the interface says: starting the run failed on the server (service-interface §7)",
    );
  });

  it("is unreachable, surely not sent: refused connection, unknown name or TLS failure", async () => {
    const plain = await startServer((_, response) => response.end());
    const closed = createServer().listen(0, "127.0.0.1");
    await once(closed, "listening");
    const { port } = closed.address() as AddressInfo;
    closed.close();
    for (const url of [`http://127.0.0.1:${port}`, "http://nobody.invalid", plain.url.replace("http:", "https:")]) {
      for (const call of [get, post]) {
        expect(await errorOf(call(connect(url)))).toMatchObject({ kind: "unreachable", sent: "no", status: undefined });
      }
    }
    expect(plain.seen).toHaveLength(0);
  });

  it("is unknown when the connection resets or no answer comes after the request", async () => {
    const server = await startServer((request, _, raw) => {
      if (request.method === "GET") raw.socket.resetAndDestroy();
    });
    expect(await errorOf(get(connect(server.url)))).toMatchObject({
      kind: "answer-lost",
      sent: "maybe",
      code: "ECONNRESET",
    });
    const late = await errorOf(connect(server.url).runSyncJob(1, {}, { timeoutMs: 4_000 }));
    expect(late).toMatchObject({ kind: "answer-lost", sent: "maybe" });
    expect(server.seen).toHaveLength(2);
  });

  it("is cancelled when the caller aborts: before sending not sent, afterwards maybe", async () => {
    const stop = new AbortController();
    const server = await startServer(() => stop.abort());
    const service = connect(server.url);
    expect(await errorOf(service.runSyncJob(1, {}, { signal: stop.signal }))).toMatchObject({
      kind: "cancelled",
      sent: "maybe",
    });
    expect(await errorOf(service.runSyncJob(1, {}, { signal: stop.signal }))).toMatchObject({
      kind: "cancelled",
      sent: "no",
    });
    expect(server.seen).toHaveLength(1);
  });

  it("takes a run's 200 for a start even when its body is cut", async () => {
    const server = await startServer((_, response, raw) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("{", () => raw.socket.destroy());
    });
    await expect(post(connect(server.url))).resolves.toBeUndefined();
  });
});

describe("redirects", () => {
  it.each([301, 302, 303, 307, 308])(
    "with status %i are refused for GET, POST, PUT and DELETE, and nothing follows",
    async (status) => {
      const evil = await startServer((_, response) => response.end());
      for (const to of ["same", "cross"]) {
        const server = await startServer((_, response) => {
          response.writeHead(status, { location: to === "same" ? "/odata/trigger" : `${evil.url}/odata/trigger` });
          response.end();
        });
        const service = connect(server.url, { retries: 2 });
        for (const call of [
          get,
          post,
          (s: SyncService) => s.deleteSyncJobById(1),
          (s: SyncService) => s.updateSyncJobById(1, {}),
        ]) {
          expect(await errorOf(call(service))).toMatchObject({ kind: "contract", status });
        }
        expect(server.seen).toHaveLength(4);
      }
      expect(evil.seen).toHaveLength(0);
    },
  );
});

describe("retries inside a call", () => {
  it("repeat a GET twice on server, unknown and unreachable, and say so in the log", async () => {
    const clock = quickClock();
    const events: unknown[] = [];
    const server = await startServer((_, response) => {
      if (server.seen.length < 3) json(response, {}, server.seen.length === 1 ? 500 : 502);
      else json(response, { name: "x" });
    });
    const log = {
      info: () => {},
      error: () => {},
      warn: (event: string, fields?: object) => events.push({ event, ...fields }),
    };
    expect(await get(connect(server.url, { retries: 2, clock, log }))).toEqual({ name: "x" });
    expect(events).toEqual([
      {
        event: "request.retried",
        operation: "GetSyncJobById",
        path: "/odata/syncjobs(1)",
        kind: "server",
        status: 500,
        try: 1,
        waitMs: clock.waits[0],
      },
      {
        event: "request.retried",
        operation: "GetSyncJobById",
        path: "/odata/syncjobs(1)",
        kind: "answer-lost",
        status: 502,
        try: 2,
        waitMs: clock.waits[1],
      },
    ]);
    expect(clock.waits[0]).toBeLessThanOrEqual(500);
    expect(clock.waits[1]).toBeLessThanOrEqual(1_000);
  });

  it("end after the given number, with the last error", async () => {
    const server = await startServer((_, response) => json(response, {}, 500));
    expect(await errorOf(get(connect(server.url, { retries: 2, clock: quickClock() })))).toMatchObject({
      kind: "server",
    });
    expect(server.seen).toHaveLength(3);
  });

  it.each([500, 502, 503, 504, 429, 408])("never repeat POST, PUT or DELETE on status %i", async (status) => {
    const server = await startServer((_, response) => {
      response.writeHead(status, { "retry-after": "0" });
      response.end();
    });
    const service = connect(server.url, { retries: 5, clock: quickClock() });
    await errorOf(service.runSyncJob(1));
    await errorOf(service.enableSyncJobById(1));
    await errorOf(service.deleteSyncJobById(1));
    await errorOf(service.updateSyncJobById(1, { name: "x" }));
    expect(server.seen.map((one) => one.method)).toEqual(["POST", "POST", "DELETE", "PUT"]);
  });

  it("never repeat a POST whose connection is reset", async () => {
    const server = await startServer((_, __, raw) => raw.socket.resetAndDestroy());
    expect(await errorOf(post(connect(server.url, { retries: 5, clock: quickClock() })))).toMatchObject({
      kind: "answer-lost",
    });
    expect(server.seen).toHaveLength(1);
  });

  it("wait for Retry-After at least, and leave a long one to the queue", async () => {
    let header = "2";
    const server = await startServer((_, response) => {
      response.writeHead(429, { "retry-after": header });
      response.end();
    });
    const clock = quickClock();
    await errorOf(get(connect(server.url, { retries: 1, clock })));
    expect(clock.waits).toEqual([2_000]);
    header = "3";
    expect(await errorOf(get(connect(server.url, { retries: 1, clock })))).toMatchObject({
      kind: "throttled",
      retryAfterMs: 3_000,
    });
    expect(clock.waits).toHaveLength(1);
  });

  it("stop waiting when the caller aborts", async () => {
    const stop = new AbortController();
    const server = await startServer((_, response) => json(response, {}, 500));
    const clock = { ...quickClock(), sleep: async () => stop.abort() };
    const error = await errorOf(
      connect(server.url, { retries: 2, clock }).getSyncJobById(1, {}, { signal: stop.signal }),
    );
    expect(error).toMatchObject({ kind: "cancelled" });
    expect(String(error)).toContain("this process stopped it");
    expect(server.seen).toHaveLength(1);
  });
});

describe("the token", () => {
  const changing = (): TokenSource => {
    let turn = 1;
    return {
      get: async () => `token-number-${turn}`,
      renew: async () => `token-number-${++turn}`,
    };
  };

  it("is renewed once after a 401 and the request is repeated, POST included", async () => {
    const server = await startServer((request, response) => {
      response.writeHead(request.headers.authorization === "Bearer token-number-2" ? 200 : 401);
      response.end();
    });
    await post(connect(server.url, { token: changing() }));
    expect(server.seen.map((one) => one.headers.authorization)).toEqual([
      "Bearer token-number-1",
      "Bearer token-number-2",
    ]);
  });

  it("is renewed once only: a second 401 stands, also for GET with retries", async () => {
    const server = await startServer((_, response) => json(response, {}, 401));
    const error = await errorOf(get(connect(server.url, { token: changing(), retries: 2, clock: quickClock() })));
    expect(error).toMatchObject({ kind: "unauthorized", status: 401 });
    expect(server.seen).toHaveLength(2);
  });

  it("that did not change is not tried again", async () => {
    const server = await startServer((_, response) => json(response, {}, 401));
    await errorOf(get(connect(server.url)));
    expect(server.seen).toHaveLength(1);
  });

  it("that is missing is unauthorized, or unreachable for a while; nothing is sent", async () => {
    const server = await startServer((_, response) => response.end());
    for (const [temporary, kind] of [
      [false, "unauthorized"],
      [true, "unreachable"],
    ] as const) {
      const fail = async () => Promise.reject(new TokenError("no file", temporary));
      expect(await errorOf(get(connect(server.url, { token: { get: fail, renew: fail } })))).toMatchObject({
        kind,
        sent: "no",
      });
    }
    expect(server.seen).toHaveLength(0);
  });
});

describe("what an error shows", () => {
  const shown = (error: unknown) =>
    [
      JSON.stringify(error),
      inspect(error, { depth: 20, showHidden: true }),
      String(error),
      (error as Error).stack,
    ].join("\n");

  it.each([
    ["an OData error", 400, { error: { code: "X", message: `bad ${canary}` } }],
    ["a piece of the token", 500, { error: { code: "", message: `tail ${canary.slice(5, 22)}` } }],
    ["a problem document", 404, { title: "gone", detail: `Authorization: Bearer ${canary}` }],
    ["a URL with a query", 500, { message: `see https://h/p?sig=${canary}` }],
    ["a redirect", 302, {}],
    ["a 401", 401, {}],
    ["a wrong shape", 200, [canary]],
  ])("never holds the token: %s", async (_, status, body) => {
    const server = await startServer((_, response) => {
      response.writeHead(status, { "x-correlation-id": `id-${canary}`, location: `/${canary}` });
      response.end(JSON.stringify(body));
    });
    for (const error of [
      await errorOf(get(connect(server.url))),
      await errorOf(connect(server.url).updateSyncJobById(1, { a: 1 })),
    ]) {
      expect((error as ServiceError).name).toBe("ServiceError");
      expect(shown(error)).not.toContain(canary);
      expect(shown(error)).not.toContain(canary.slice(6, 20));
      expect(Object.keys(error as object)).not.toContain("options");
      expect((error as Error).cause).toBeUndefined();
    }
  });

  it("never holds the token when the connection fails", async () => {
    const server = await startServer((_, __, raw) => raw.socket.destroy());
    for (const url of [server.url, "http://127.0.0.1:1", "http://nobody.invalid"]) {
      expect(shown(await errorOf(post(connect(url))))).not.toContain(canary);
    }
  });

  it("quotes code and message escaped, at most 200 characters, without our query", async () => {
    let message = "line\n\u001b[31mred\u202e";
    const server = await startServer((_, response) => json(response, { error: { code: "E1", message } }, 400));
    const service = connect(server.url);
    const error = await errorOf(service.getTriggers({ repository: "SECRET-REPO" }));
    expect(error).toMatchObject({ answer: "E1: line\\u000a\\u001b[31mred\\u202e", path: "/odata/trigger" });
    expect(shown(error)).not.toContain("SECRET-REPO");
    message = "x".repeat(5_000);
    expect(((await errorOf(service.getTriggers())) as ServiceError).answer).toHaveLength(200);
  });

  it.each(["<html>Bad gateway</html>", "", "null", "[]", '"text"', '{"error":', '{"error":"x"}', "\u0000"])(
    "quotes nothing of the body %j",
    async (body) => {
      const server = await startServer((_, response) => {
        response.writeHead(500);
        response.end(body);
      });
      expect(await errorOf(get(connect(server.url)))).toMatchObject({ kind: "server", answer: undefined });
    },
  );

  it("holds the service's correlation id", async () => {
    const server = await startServer((_, response) => {
      response.writeHead(500, { "request-id": "abc-1" });
      response.end();
    });
    expect(await errorOf(get(connect(server.url)))).toMatchObject({ correlationId: "abc-1" });
  });
});
