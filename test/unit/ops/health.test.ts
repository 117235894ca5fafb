import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { UsageError } from "../../../src/core/errors.ts";
import type { HttpServer } from "../../../src/core/http-server.ts";
import { type Readiness, startHealthServer } from "../../../src/ops/health.ts";

let server: HttpServer | undefined;
afterEach(() => server?.stop());

const ready: Readiness = { ready: true, reasons: [], facts: { roles: ["worker"] } };

const long = 'syncline_slots_total{policy="nightly",outcome="missed"} 0\n'.repeat(1_000);

async function start(readiness: () => Readiness = () => ready): Promise<string> {
  server = await startHealthServer({
    port: 0,
    host: "127.0.0.1",
    readiness,
    routes: {
      "/metrics": () => ({ status: 200, contentType: "text/plain", body: "up 1\n" }),
      "/long": () => ({ status: 200, contentType: "text/plain", body: long }),
      "/broken": () => Promise.reject(new Error("canary")),
    },
  });
  return `http://127.0.0.1:${server.port}`;
}

/** Sends bytes as they are; answers what came back until the other side closed. */
function raw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect({ port, host: "127.0.0.1" }, () => socket.write(text));
    socket.setEncoding("utf8").on("data", (part) => {
      answer += part;
    });
    socket.on("close", () => resolve(answer)).on("error", reject);
  });
}

describe("the health server", () => {
  it("says that the process lives, also when it is not ready", async () => {
    const base = await start(() => ({ ...ready, ready: false, reasons: [{ part: "redis", reason: "gone" }] }));
    const answer = await fetch(`${base}/livez`);
    expect([answer.status, await answer.text()]).toEqual([200, "ok\n"]);
  });

  it("says that it is ready, or why not, as JSON", async () => {
    let now = ready;
    const base = await start(() => now);
    const answer = await fetch(`${base}/readyz`);
    expect([answer.status, await answer.json()]).toEqual([200, { ready: true, reasons: [], roles: ["worker"] }]);
    now = { ...ready, ready: false, reasons: [{ part: "redis", reason: "gone" }] };
    const bad = await fetch(`${base}/readyz?verbose`);
    expect([bad.status, await bad.json()]).toEqual([
      503,
      { ready: false, reasons: [{ part: "redis", reason: "gone" }], roles: ["worker"] },
    ]);
    expect(bad.headers.get("cache-control")).toBe("no-store");
  });

  it("answers HEAD without a body, and further routes", async () => {
    const base = await start();
    const head = await fetch(`${base}/readyz`, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    expect(await (await fetch(`${base}/metrics`)).text()).toBe("up 1\n");
  });

  it("compresses what is long for clients that take gzip, and for no others", async () => {
    const base = await start();
    const get = (path: string, accepted: string, method = "GET") =>
      fetch(base + path, { method, headers: { "accept-encoding": accepted } });
    for (const accepted of ["gzip", "deflate, gzip;q=0.8", "*", "*;q=0, GZIP ; q=0.001"]) {
      const answer = await get("/long", accepted);
      expect([answer.headers.get("content-encoding"), answer.headers.get("vary")]).toEqual(["gzip", "accept-encoding"]);
      expect(Number(answer.headers.get("content-length"))).toBeLessThan(long.length / 20);
      expect(await answer.text()).toBe(long);
    }
    for (const accepted of ["identity", "deflate", "gzip;q=0", "gzip;q=0.0, br", "gzip;q=0, *", "gzipped"]) {
      const answer = await get("/long", accepted);
      expect([accepted, answer.headers.get("content-encoding")]).toEqual([accepted, null]);
      expect(await answer.text()).toBe(long);
    }
    expect((await get("/metrics", "gzip")).headers.get("content-encoding")).toBeNull();
    expect(await (await get("/long", "gzip", "HEAD")).text()).toBe("");
  });

  it("refuses other methods and other paths", async () => {
    const base = await start();
    const post = await fetch(`${base}/livez`, { method: "POST", body: "x".repeat(100_000) });
    expect([post.status, post.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    for (const path of ["/", "/__proto__", "/livez/", "/constructor"])
      expect((await fetch(base + path)).status).toBe(404);
  });

  it("says nothing of what went wrong inside", async () => {
    const answer = await fetch(`${await start()}/broken`);
    expect([answer.status, await answer.text()]).toEqual([500, "this failed\n"]);
  });

  it("refuses large headers and what is no HTTP", async () => {
    await start();
    const port = server?.port ?? 0;
    expect(await raw(port, `GET /livez HTTP/1.1\r\nhost: a\r\nx: ${"a".repeat(20_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 431/,
    );
    expect(await raw(port, "nonsense\r\n\r\n")).toMatch(/^HTTP\/1.1 400/);
  });

  it("says so when its port is taken", async () => {
    await start();
    const again = startHealthServer({ port: server?.port ?? 0, host: "127.0.0.1", readiness: () => ready });
    await expect(again).rejects.toThrow(UsageError);
  });
});
