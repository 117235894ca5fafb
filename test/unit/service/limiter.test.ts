import { describe, expect, it } from "vitest";
import {
  type Denial,
  type ExchangeEnding,
  healthOf,
  isDenied,
  type Limiter,
  type Permit,
} from "../../../src/core/limiter.ts";
import { TokenError } from "../../../src/service/token.ts";
import { connect, errorOf, json, startServer } from "./test-server.ts";

/**
 * A limiter that answers these denials first and lets everything in afterwards; it notes what it
 * was told.
 */
function scriptedLimiter(...denials: Denial[]) {
  const told: (string | number | undefined)[] = [];
  let inside = 0;
  const limiter: Limiter = {
    acquire: async () => {
      const denial = denials.shift();
      if (denial !== undefined) return denial;
      inside += 1;
      return {
        release: async ({ kind, retryAfterMs }: ExchangeEnding) => {
          inside -= 1;
          told.push(kind ?? "well", ...(retryAfterMs === undefined ? [] : [retryAfterMs]));
        },
      };
    },
  };
  return { limiter, told, inside: () => inside };
}

const throttled: Denial = { deniedBy: "throttle", waitMs: 900_000 };

describe("a client with a limiter", () => {
  it("sends nothing that is denied, and says by what and for how long", async () => {
    const server = await startServer((_, response) => json(response, {}));
    const service = connect(server.url, {
      limiter: scriptedLimiter(throttled, { deniedBy: "rate", waitMs: 3 }).limiter,
    });
    const long = await errorOf(service.getSyncJobById(1));
    expect(long).toMatchObject({ kind: "throttled", sent: "no", deniedBy: "throttle", retryAfterMs: 900_000 });
    expect(String(long)).toContain("held back for 15m: the service throttles");
    // A start waits for nothing in place.
    expect(await errorOf(service.runSyncJob(1))).toMatchObject({ kind: "throttled", sent: "no", deniedBy: "rate" });
    expect(server.seen).toEqual([]);
    await service.runSyncJob(1);
    expect(server.seen).toHaveLength(1);
  });

  it("lets a read wait in place for two seconds at most", async () => {
    const server = await startServer((_, response) => json(response, { value: [] }));
    const slept: number[] = [];
    const clock = {
      nowMs: () => 0,
      monotonicMs: () => 0,
      sleep: async (ms: number) => void slept.push(ms),
      every: () => () => {},
    };
    const rate = (waitMs: number): Denial => ({ deniedBy: "rate", waitMs });
    const behind = (...denials: Denial[]) =>
      connect(server.url, { limiter: scriptedLimiter(...denials).limiter, clock });
    await behind(rate(1_500), rate(500)).getActivities();
    expect(slept).toEqual([1_500, 500]);
    expect(await errorOf(behind(rate(1_500), rate(501)).getActivities())).toMatchObject({ deniedBy: "rate" });
    expect(slept).toEqual([1_500, 500, 1_500]);
    expect(server.seen).toHaveLength(1);
  });

  it("lets the next page and an update wait fifteen seconds for the rate, no other", async () => {
    const next = { "@odata.nextLink": "synchronizationactivities?$skip=1" };
    const server = await startServer(({ url = "" }, response) =>
      json(response, url.includes("$skip") ? { value: [] } : { value: [], ...next }),
    );
    const clock = { nowMs: () => 0, monotonicMs: () => 0, sleep: async () => {}, every: () => () => {} };
    const behind = (...answers: (Denial | "in")[]) => {
      const { limiter } = scriptedLimiter();
      const enter: Limiter["acquire"] = async (request) => {
        const answer = answers.shift() ?? "in";
        return answer === "in" ? limiter.acquire(request) : answer;
      };
      return connect(server.url, { limiter: { acquire: enter }, clock });
    };
    const pages = async (service: ReturnType<typeof connect>) => {
      let count = 0;
      for await (const _ of service.pages("GetActivities")) count += 1;
      return count;
    };
    const turn = (waitMs: number): Denial => ({ deniedBy: "rate", waitMs });
    expect(await pages(behind("in", turn(14_000), turn(1_000)))).toBe(2);
    expect(await errorOf(pages(behind("in", turn(14_000), turn(1_001))))).toMatchObject({ deniedBy: "rate" });
    expect(await errorOf(pages(behind("in", { deniedBy: "breaker", waitMs: 2_001 })))).toMatchObject({
      deniedBy: "breaker",
    });
    await behind(turn(15_000)).updateSyncJobById(1, { name: "New" });
    expect(await errorOf(behind(turn(15_001)).updateSyncJobById(1, { name: "New" }))).toMatchObject({
      deniedBy: "rate",
    });
    const down: Denial = { deniedBy: "breaker", waitMs: 1 };
    expect(await errorOf(behind(down).updateSyncJobById(1, { name: "New" }))).toMatchObject({ deniedBy: "breaker" });
  });

  it("goes on after a probe only when the limiter has been told of its answer", async () => {
    const server = await startServer((_, response) => json(response, { syncJobId: 1 }));
    const told: string[] = [];
    const leave = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      told.push("told");
    };
    const limiter: Limiter = { acquire: async () => ({ isProbe: true, release: leave }) };
    await connect(server.url, { limiter }).getSyncJobById(1);
    expect(told).toEqual(["told"]);
  });

  it("sends a probe again under its permit when its token was refused", async () => {
    const server = await startServer((request, response) =>
      json(response, { syncJobId: 1 }, request.headers.authorization === "Bearer new" ? 200 : 401),
    );
    const told: (string | undefined)[] = [];
    const probe = { isProbe: true, release: async ({ kind }: ExchangeEnding) => void told.push(kind) };
    const answers: (Permit | Denial)[] = [probe, { deniedBy: "breaker", waitMs: 30_000 }];
    const limiter: Limiter = { acquire: async () => answers.shift() ?? probe };
    const token = { get: async () => "old", renew: async () => "new" };
    await connect(server.url, { limiter, token }).getSyncJobById(1);
    expect(told).toEqual([undefined]);
  });

  it("tells the limiter once how each exchange ended", async () => {
    const statuses = [200, 404, 500, 200];
    const server = await startServer((_, response) => json(response, { syncJobId: 1, name: "a" }, statuses.shift()));
    const { limiter, told, inside } = scriptedLimiter();
    const service = connect(server.url, { limiter, retries: 1 });
    await service.getSyncJobById(1);
    await errorOf(service.getSyncJobById(1));
    await service.getSyncJobById(1);
    expect(told).toEqual(["well", "not-found", "server", "well"]);
    expect(inside()).toBe(0);
  });

  it.each([
    ["a page", "<html>Back soon</html>", "text/html; charset=utf-8", "server"],
    ["a page of no stated type", "\n<!DOCTYPE html><title>Back soon</title>", undefined, "server"],
    ["an XHTML page", '<?xml version="1.0"?><html/>', "application/xhtml+xml", "server"],
    ["JSON of another shape", '{"error":{"code":"1"}}', "application/json", "well"],
  ])("takes %s with status 200 for what it says of the service", async (_, body, type, ending) => {
    const server = await startServer((_request, response) => {
      response.writeHead(200, type === undefined ? {} : { "content-type": type }).end(body);
    });
    const { limiter, told, inside } = scriptedLimiter();
    const service = connect(server.url, { limiter });
    const wrong = { kind: "contract", status: 200, sent: "maybe" };
    expect(await errorOf(service.getSyncJobById(1))).toMatchObject(wrong);
    expect(await errorOf(service.count("GetJobMasks"))).toMatchObject(wrong);
    expect(await errorOf(service.runSyncJob(1))).toMatchObject(wrong);
    expect(told).toEqual([ending, ending, ending]);
    expect(inside()).toBe(0);
  });

  it("passes on what the service asked for, and releases its permit without an answer", async () => {
    const server = await startServer((_, response) => {
      response.writeHead(429, { "retry-after": "77" });
      response.end();
    });
    const { limiter, told, inside } = scriptedLimiter();
    await errorOf(connect(server.url, { limiter }).runSyncJob(1));
    await errorOf(connect("http://127.0.0.1:1", { limiter }).runSyncJob(1));
    expect(told).toEqual(["throttled", 77_000, "unreachable"]);
    expect(inside()).toBe(0);
  });

  it("takes a redirect for a failure: a proxy answers so for a service that is down", async () => {
    const server = await startServer((_, response) => void response.writeHead(302, { location: "/login" }).end());
    const { limiter, told } = scriptedLimiter();
    const service = connect(server.url, { limiter });
    expect(await errorOf(service.getSyncJobById(1))).toMatchObject({ kind: "contract", status: 302 });
    expect(await errorOf(service.runSyncJob(1))).toMatchObject({ kind: "contract", status: 302 });
    expect(told).toEqual(["server", "server"]);
  });

  it("does not count a 401 that a renewed token mends", async () => {
    const server = await startServer((request, response) =>
      json(response, {}, request.headers.authorization === "Bearer new" ? 200 : 401),
    );
    const { limiter, told } = scriptedLimiter();
    let token = "old";
    const tokens = { get: async () => token, renew: async () => (token = "new") };
    await connect(server.url, { limiter, token: tokens }).runSyncJob(1);
    expect(told).toEqual(["cancelled", "well"]);
    token = "old";
    const stuck = { get: async () => token, renew: async () => token };
    await errorOf(connect(server.url, { limiter, token: stuck }).runSyncJob(1));
    expect(told.at(-1)).toBe("unauthorized");
  });

  it("counts a missing token as a failure, also of a start's permit, and releases it", async () => {
    const { limiter, told, inside } = scriptedLimiter();
    const down = {
      get: async () => Promise.reject(new TokenError("the endpoint is down", true)),
      renew: async () => "",
    };
    const refused = { ...down, get: async () => Promise.reject(new TokenError("the client is refused")) };
    const given = await limiter.acquire({ isRead: false });
    if (isDenied(given)) throw new Error("denied");
    await errorOf(connect("http://127.0.0.1:1", { limiter, token: down }).runSyncJob(1, {}, { permit: given }));
    expect(told).toEqual(["unreachable"]);
    await errorOf(connect("http://127.0.0.1:1", { limiter, token: refused }).getApprovals());
    expect(told).toEqual(["unreachable", "unauthorized"]);
    expect(inside()).toBe(0);
  });

  it("is denied, without an attempt, when the breaker is open and the token missing", async () => {
    const { limiter } = scriptedLimiter({ deniedBy: "breaker", waitMs: 30_000 });
    const token = {
      get: async () => Promise.reject(new TokenError("the endpoint is down", true)),
      renew: async () => "",
    };
    const error = await errorOf(connect("http://127.0.0.1:1", { limiter, token }).runSyncJob(1));
    expect(error).toMatchObject({ kind: "throttled", sent: "no", deniedBy: "breaker", retryAfterMs: 30_000 });
  });

  it("says what failed, not that it may not be tried again now", async () => {
    const server = await startServer((_, response) => json(response, {}, 500));
    const { limiter } = scriptedLimiter();
    let first = true;
    const closing: Limiter = {
      acquire: async (request) => {
        if (!first) return { deniedBy: "breaker", waitMs: 30_000 };
        first = false;
        return limiter.acquire(request);
      },
    };
    const error = await errorOf(connect(server.url, { limiter: closing, retries: 2 }).getSyncJobById(1));
    expect(error).toMatchObject({ kind: "server", status: 500 });
    expect(error).not.toHaveProperty("deniedBy");
    expect(server.seen).toHaveLength(1);
  });
});

describe("what a failure says of its service", () => {
  it("counts towards the breaker when no request of any kind would have fared better", () => {
    const failing = Object.entries(healthOf).filter(([, health]) => health === "failing");
    expect(failing.map(([kind]) => kind)).toEqual([
      "unauthorized",
      "forbidden",
      "server",
      "unreachable",
      "answer-lost",
    ]);
    expect(healthOf["throttled"]).toBe("alive");
    expect(healthOf["cancelled"]).toBe("silent");
  });
});
