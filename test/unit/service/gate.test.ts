import { describe, expect, it } from "vitest";
import { type ExchangeEnding, type Gate, type Hold, healthOf, isHold } from "../../../src/core/gate.ts";
import { TokenError } from "../../../src/service/token.ts";
import { connect, errorOf, json, startServer } from "./test-server.ts";

/** A gate that answers these holds first and lets everything in afterwards; it notes what it was told. */
function scriptedGate(...holds: Hold[]) {
  const told: (string | number | undefined)[] = [];
  let inside = 0;
  const gate: Gate = {
    enter: async () => {
      const hold = holds.shift();
      if (hold !== undefined) return hold;
      inside += 1;
      return {
        leave: async ({ kind, retryAfterMs }: ExchangeEnding) => {
          inside -= 1;
          told.push(kind ?? "well", ...(retryAfterMs === undefined ? [] : [retryAfterMs]));
        },
      };
    },
  };
  return { gate, told, inside: () => inside };
}

const throttled: Hold = { heldBy: "throttle", waitMs: 900_000 };

describe("a client with a gate", () => {
  it("sends nothing that is held back, and says what holds it and for how long", async () => {
    const server = await startServer((_, response) => json(response, {}));
    const service = connect(server.url, { gate: scriptedGate(throttled, { heldBy: "rate", waitMs: 3 }).gate });
    const long = await errorOf(service.getSyncJobById(1));
    expect(long).toMatchObject({ kind: "throttled", sent: "no", heldBy: "throttle", retryAfterMs: 900_000 });
    expect(String(long)).toContain("held back for 15m: the service asked for patience");
    // A start waits for nothing in place.
    expect(await errorOf(service.runSyncJob(1))).toMatchObject({ kind: "throttled", sent: "no", heldBy: "rate" });
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
    const rate = (waitMs: number): Hold => ({ heldBy: "rate", waitMs });
    const behind = (...holds: Hold[]) => connect(server.url, { gate: scriptedGate(...holds).gate, clock });
    await behind(rate(1_500), rate(500)).getActivities();
    expect(slept).toEqual([1_500, 500]);
    expect(await errorOf(behind(rate(1_500), rate(501)).getActivities())).toMatchObject({ heldBy: "rate" });
    expect(slept).toEqual([1_500, 500, 1_500]);
    expect(server.seen).toHaveLength(1);
  });

  it("lets the next page and an update wait for their turn for fifteen seconds, and for the service no longer than others", async () => {
    const next = { "@odata.nextLink": "synchronizationactivities?$skip=1" };
    const server = await startServer(({ url = "" }, response) =>
      json(response, url.includes("$skip") ? { value: [] } : { value: [], ...next }),
    );
    const clock = { nowMs: () => 0, monotonicMs: () => 0, sleep: async () => {}, every: () => () => {} };
    const behind = (...answers: (Hold | "in")[]) => {
      const { gate } = scriptedGate();
      const enter: Gate["enter"] = async (request) => {
        const answer = answers.shift() ?? "in";
        return answer === "in" ? gate.enter(request) : answer;
      };
      return connect(server.url, { gate: { enter }, clock });
    };
    const pages = async (service: ReturnType<typeof connect>) => {
      let count = 0;
      for await (const _ of service.pages("GetActivities")) count += 1;
      return count;
    };
    const turn = (waitMs: number): Hold => ({ heldBy: "rate", waitMs });
    expect(await pages(behind("in", turn(14_000), turn(1_000)))).toBe(2);
    expect(await errorOf(pages(behind("in", turn(14_000), turn(1_001))))).toMatchObject({ heldBy: "rate" });
    expect(await errorOf(pages(behind("in", { heldBy: "breaker", waitMs: 2_001 })))).toMatchObject({
      heldBy: "breaker",
    });
    await behind(turn(15_000)).updateSyncJobById(1, { name: "New" });
    expect(await errorOf(behind(turn(15_001)).updateSyncJobById(1, { name: "New" }))).toMatchObject({ heldBy: "rate" });
    const down: Hold = { heldBy: "breaker", waitMs: 1 };
    expect(await errorOf(behind(down).updateSyncJobById(1, { name: "New" }))).toMatchObject({ heldBy: "breaker" });
  });

  it("goes on after a probe only when the gate has been told of its answer", async () => {
    const server = await startServer((_, response) => json(response, { syncJobId: 1 }));
    const told: string[] = [];
    const leave = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      told.push("told");
    };
    const gate: Gate = { enter: async () => ({ isProbe: true, leave }) };
    await connect(server.url, { gate }).getSyncJobById(1);
    expect(told).toEqual(["told"]);
  });

  it("tells the gate once how each exchange ended", async () => {
    const statuses = [200, 404, 500, 200];
    const server = await startServer((_, response) => json(response, { syncJobId: 1, name: "a" }, statuses.shift()));
    const { gate, told, inside } = scriptedGate();
    const service = connect(server.url, { gate, retries: 1 });
    await service.getSyncJobById(1);
    await errorOf(service.getSyncJobById(1));
    await service.getSyncJobById(1);
    expect(told).toEqual(["well", "not-found", "server", "well"]);
    expect(inside()).toBe(0);
  });

  it("passes on what the service asked for, and gives its pass back when nobody answers", async () => {
    const server = await startServer((_, response) => {
      response.writeHead(429, { "retry-after": "77" });
      response.end();
    });
    const { gate, told, inside } = scriptedGate();
    await errorOf(connect(server.url, { gate }).runSyncJob(1));
    await errorOf(connect("http://127.0.0.1:1", { gate }).runSyncJob(1));
    expect(told).toEqual(["throttled", 77_000, "unreachable"]);
    expect(inside()).toBe(0);
  });

  it("does not count a 401 that a renewed token mends", async () => {
    const server = await startServer((request, response) =>
      json(response, {}, request.headers.authorization === "Bearer new" ? 200 : 401),
    );
    const { gate, told } = scriptedGate();
    let token = "old";
    const tokens = { get: async () => token, renew: async () => (token = "new") };
    await connect(server.url, { gate, token: tokens }).runSyncJob(1);
    expect(told).toEqual(["cancelled", "well"]);
    token = "old";
    const stuck = { get: async () => token, renew: async () => token };
    await errorOf(connect(server.url, { gate, token: stuck }).runSyncJob(1));
    expect(told.at(-1)).toBe("unauthorized");
  });

  it("counts it as a failure when there is no token, of the pass that a start brings along too, and gives the pass back", async () => {
    const { gate, told, inside } = scriptedGate();
    const down = {
      get: async () => Promise.reject(new TokenError("the endpoint is down", true)),
      renew: async () => "",
    };
    const refused = { ...down, get: async () => Promise.reject(new TokenError("the client is refused")) };
    const given = await gate.enter({ isRead: false });
    if (isHold(given)) throw new Error("held");
    await errorOf(connect("http://127.0.0.1:1", { gate, token: down }).runSyncJob(1, {}, { pass: given }));
    expect(told).toEqual(["unreachable"]);
    await errorOf(connect("http://127.0.0.1:1", { gate, token: refused }).getApprovals());
    expect(told).toEqual(["unreachable", "unauthorized"]);
    expect(inside()).toBe(0);
  });

  it("is held back, and no attempt is spent, where the breaker is open and there is no token either", async () => {
    const { gate } = scriptedGate({ heldBy: "breaker", waitMs: 30_000 });
    const token = {
      get: async () => Promise.reject(new TokenError("the endpoint is down", true)),
      renew: async () => "",
    };
    const error = await errorOf(connect("http://127.0.0.1:1", { gate, token }).runSyncJob(1));
    expect(error).toMatchObject({ kind: "throttled", sent: "no", heldBy: "breaker", retryAfterMs: 30_000 });
  });

  it("says what failed, not that it may not be tried again now", async () => {
    const server = await startServer((_, response) => json(response, {}, 500));
    const { gate } = scriptedGate();
    let first = true;
    const closing: Gate = {
      enter: async (request) => {
        if (!first) return { heldBy: "breaker", waitMs: 30_000 };
        first = false;
        return gate.enter(request);
      },
    };
    const error = await errorOf(connect(server.url, { gate: closing, retries: 2 }).getSyncJobById(1));
    expect(error).toMatchObject({ kind: "server", status: 500, heldBy: undefined });
    expect(server.seen).toHaveLength(1);
  });
});

describe("what a failure says of its service", () => {
  it("counts towards the breaker when no request of any kind would have fared better", () => {
    const failing = Object.entries(healthOf).filter(([, health]) => health === "failing");
    expect(failing.map(([kind]) => kind)).toEqual(["unauthorized", "forbidden", "server", "unreachable", "unknown"]);
    expect(healthOf["throttled"]).toBe("alive");
    expect(healthOf["cancelled"]).toBe("silent");
  });
});
