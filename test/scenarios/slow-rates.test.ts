// Limits of one request in two seconds: what takes several requests comes to its end all the same. A deletion reads its guard before, declared
// state its object, and a list has pages: none of them may begin anew, and take the turn of what it waits for, over and over.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { redisForTest } from "../support/redis.ts";
import { startWorld } from "../support/world.ts";

const redis = redisForTest();
let stops: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const stop of stops.reverse()) await stop();
  stops = [];
});

/** A service with sync jobs that take their name, and approvals of two on each of three pages. Notes the requests: method and base path. */
async function service() {
  const asked: { what: string; page: number; atMs: number }[] = [];
  let name = "Old";
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
    const page = Number(searchParams.get("$skip") ?? 0);
    asked.push({ what: `${request.method} ${pathname.split("/")[1]}`, page, atMs: performance.now() });
    const next = page < 4 ? { "@odata.nextLink": `${pathname}?$skip=${page + 2}` } : {};
    if (request.method === "PUT") name = "Contracts";
    const list = { value: [{ approvalId: page + 1 }, { approvalId: page + 2 }], ...next };
    const syncJob = { syncJobId: 7, name };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(
      request.method === "DELETE" ? "true" : JSON.stringify(pathname.includes("approvals") ? list : syncJob),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stops.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

const policies = `
  - { name: retired, service: deleting, delete: { syncJob: 7, name: Old } }
  - { name: declared, service: applying, apply: { syncJobs: { 7: { name: Contracts } } } }
  - { name: waiting, service: polling, poll: { list: approvals, expect: "size(items) == 6" } }`;

describe("a service that may be asked once in two seconds", () => {
  it("is deleted from, changed and read to the end of its lists, and never asked more often", async () => {
    const { url, asked } = await service();
    const moreServices = { deleting: `${url}/deleting`, applying: `${url}/applying`, polling: `${url}/polling` };
    const moreKeys = "limits: { requestsPerSecond: 0.5 }";
    const { run, stop } = await startWorld({ redis, policies, moreServices, moreKeys });
    stops.push(stop);
    const [retired, declared, waiting] = await Promise.all(["retired", "declared", "waiting"].map(run));
    expect(retired).toMatchObject({ status: "succeeded", reason: "deleted" });
    expect(declared).toMatchObject({ status: "succeeded", reason: "applied" });
    expect(waiting).toMatchObject({ status: "succeeded", count: 6 });
    const of = (name: string) => asked.filter(({ what }) => what.endsWith(name));
    expect(of("deleting").map(({ what }) => what)).toEqual(["GET deleting", "DELETE deleting"]);
    expect(of("applying").map(({ what }) => what)).toEqual(["GET applying", "PUT applying", "GET applying"]);
    const pages = of("polling").map(({ page }) => page);
    // A walk of the feed may follow.
    expect(pages.slice(0, 3)).toEqual([0, 2, 4]);
    for (const name of ["deleting", "applying", "polling"]) {
      const times = of(name).map(({ atMs }) => atMs);
      for (const [index, atMs] of times.slice(1).entries()) expect(atMs - (times[index] ?? 0)).toBeGreaterThan(1_800);
    }
  });
});
