import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { discoverService } from "../../../../src/feeds/discover/discover-service.ts";
import { SyncService, staticToken } from "../../../../src/service/client.ts";

/** How the server answers, and what it was asked. */
let items = 0;
let isClever = false;
/** The page from this item on is answered with an error. */
let breaksAt = -1;
let canCount = true;
/** Newest first, with one more after each page. */
let growsAtFront = false;
let asked: { method: string; path: string; query: URLSearchParams }[] = [];

const server = createServer((request, response): unknown => {
  const { pathname, searchParams: query } = new URL(request.url ?? "", "http://x");
  asked.push({ method: request.method ?? "", path: pathname, query });
  const json = (body: unknown) =>
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  if (pathname.endsWith("/$count")) return canCount ? json(items) : response.writeHead(400).end();
  if (!pathname.endsWith("/synchronizationactivities")) return json({ value: [] });
  const from = Number(query.get("page") ?? (isClever ? query.get("$skip") : null) ?? 0);
  if (from === breaksAt) return response.writeHead(500).end();
  const length = Math.min(10, items - from);
  const idAt = (place: number) => (growsAtFront ? items - place : place + 1);
  const value = Array.from({ length }, (_, index) => ({ id: idAt(from + index), syncJobId: 3 }));
  const end = from + value.length;
  const isMore = end < items;
  if (growsAtFront) items += 1;
  return json({ value, ...(isMore ? { "@odata.nextLink": `${pathname}?page=${end}&secret=hush` } : {}) });
});

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => server.close());
beforeEach(() => {
  asked = [];
  canCount = true;
  growsAtFront = false;
  isClever = false;
  breaksAt = -1;
});

async function discover() {
  const { port } = server.address() as AddressInfo;
  const service = new SyncService({ baseUrl: `http://127.0.0.1:${port}`, token: staticToken("x"), retries: 0 });
  const notes: string[] = [];
  const parts = { repository: "HR", pages: 2, syncJobIds: ["3"], signal: AbortSignal.timeout(20_000) };
  const { found, unreadable } = await discoverService({
    ...parts,
    service,
    lists: ["activities"],
    note: (what, outcome) => notes.push(`${what}: ${outcome}`),
  });
  service.close();
  return { found: found[0], unreadable, notes };
}

describe("a discovery", () => {
  it("shows what it has read where a later page cannot be had", async () => {
    items = 100;
    breaksAt = 10;
    const { found, unreadable, notes } = await discover();
    expect([found?.sample.items, found?.sample.seen, unreadable]).toEqual([10, "front", []]);
    expect(notes.join("\n")).toContain("page 2");
  });

  it("reads the end of a long list by an offset, where the service honours it", async () => {
    items = 100_000;
    isClever = true;
    const { found } = await discover();
    expect(found?.sample).toEqual({ count: 100_000, pageSize: 10, seen: "ends", items: 40 });
    expect(found?.proposal.grows).toBe("at its end");
  });

  it("says so where the offset is ignored and the end is too far", async () => {
    items = 100_000;
    const { found } = await discover();
    expect(found?.sample.seen).toBe("front");
  });

  it("makes a bounded number of GET requests, and names each without its query", async () => {
    items = 100_000;
    canCount = false;
    const { notes } = await discover();
    // Masks, the count, 2 + 30 pages.
    expect(asked).toHaveLength(1 + 1 + 32);
    expect(notes).toHaveLength(asked.length);
    expect(new Set(asked.map(({ method }) => method))).toEqual(new Set(["GET"]));
    expect(notes.join()).not.toContain("hush");
  });

  it("walks to the end of a list that is not long", async () => {
    items = 95;
    const { found } = await discover();
    expect(found?.sample).toEqual({ count: 95, pageSize: 10, seen: "ends", items: 35 });
  });

  it("counts an item once that comes again at the next page, since the list grew", async () => {
    items = 95;
    growsAtFront = true;
    const { found } = await discover();
    expect(found?.sample.items).toBe(33);
    expect(found?.proposal.lines[0]).toMatchObject({ fact: "id", expression: "item.id", certainty: "high" });
  });

  it("has nothing to propose for an empty list", async () => {
    items = 0;
    const { found } = await discover();
    expect(found?.proposal.lines.every(({ expression }) => expression === undefined)).toBe(true);
  });
});
