// Limits of one request in two seconds: what takes several requests comes to its end all the same.
// A deletion reads its guard before, declared state its object, and a list has pages: none of them
// may begin anew, and take the turn of what it waits for, over and over.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { worldForTest } from "../support/world.ts";

/**
 * A service with sync jobs that take their name, and approvals of two on each of three pages. Notes
 * the requests: method and base path.
 */
async function service() {
  const asked: { what: string; page: number; atMs: number }[] = [];
  const names: Record<string, string> = {};
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
    const page = Number(searchParams.get("$skip") ?? 0);
    asked.push({ what: `${request.method} ${pathname.split("/")[1]}`, page, atMs: performance.now() });
    const next = page < 4 ? { "@odata.nextLink": `${pathname}?$skip=${page + 2}` } : {};
    const base = pathname.split("/")[1] ?? "";
    if (request.method === "PUT" && base === "applying") names[base] = "Contracts";
    const list = { value: [{ approvalId: page + 1 }, { approvalId: page + 2 }], ...next };
    const syncJob = { syncJobId: 7, name: names[base] ?? "Old" };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(
      request.method === "DELETE" ? "true" : JSON.stringify(pathname.includes("approvals") ? list : syncJob),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

const policies = `
  - { name: retired, service: deleting, delete: { syncJob: 7, name: Old } }
  - { name: declared, service: applying, apply: { syncJobs: { 7: { name: Contracts } } } }
  - { name: kept, service: keeping, apply: { syncJobs: { 7: { name: Contracts } } } }
  - { name: waiting, service: polling, poll: { list: approvals, expect: "size(items) == 6" } }`;

describe("a service that may be asked once in two seconds", () => {
  it("is deleted from, changed and read whole, and never asked more often", async () => {
    const { url, asked } = await service();
    const bases = ["deleting", "applying", "keeping", "polling"];
    const moreServices = Object.fromEntries(bases.map((base) => [base, `${url}/${base}`]));
    const moreKeys = "limits: { requestsPerSecond: 0.5 }";
    const { run } = await worldForTest({ policies, moreServices, moreKeys });
    const stoodMs = watchStandstill();
    const beganMs = performance.now();
    const names = ["retired", "declared", "kept", "waiting"];
    const [retired, declared, kept, waiting] = await Promise.all(names.map(run));
    expect(retired).toMatchObject({ status: "succeeded", reason: "deleted" });
    expect(declared).toMatchObject({ status: "succeeded", reason: "applied" });
    // The value that was taken and is not there is seen by the look right after it, so it is not
    // sent again.
    expect(kept).toMatchObject({ status: "failed", reason: "read-only-field" });
    expect(waiting).toMatchObject({ status: "succeeded", count: 6 });
    const of = (name: string) => asked.filter(({ what }) => what.endsWith(name));
    expect(of("deleting").map(({ what }) => what)).toEqual(["GET deleting", "DELETE deleting"]);
    expect(of("applying").map(({ what }) => what)).toEqual(["GET applying", "PUT applying", "GET applying"]);
    expect(of("keeping").map(({ what }) => what)).toEqual(["GET keeping", "PUT keeping", "GET keeping"]);
    const pages = of("polling").map(({ page }) => page);
    // A walk of the feed may follow.
    expect(pages.slice(0, 3)).toEqual([0, 2, 4]);
    for (const name of bases) {
      const times = of(name).map(({ atMs }) => atMs);
      for (const [index, atMs] of times.entries()) {
        // A busy service notes a request late, never early: so each has its turn at least.
        expect(atMs - beganMs).toBeGreaterThan(2_000 * index - 10);
        if (index > 0) expect(atMs - (times[index - 1] ?? 0)).toBeGreaterThan(1_000 - stoodMs());
      }
    }
  });
});

/** For how long this process has stood still since: what comes meanwhile it notes late. */
function watchStandstill(): () => number {
  let [stoodMs, lookedMs] = [0, performance.now()];
  const timer = setInterval(() => {
    const nowMs = performance.now();
    stoodMs += Math.max(nowMs - lookedMs - 100, 0);
    lookedMs = nowMs;
  }, 50);
  onTestFinished(() => clearInterval(timer));
  return () => stoodMs;
}
