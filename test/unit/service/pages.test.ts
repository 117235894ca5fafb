import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import type { Clock } from "../../../src/core/clock.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { collect, connect, errorOf, json, startServer } from "./test-server.ts";

const list = "/odata/synchronizationactivities";

/**
 * A service that answers page after page: what the map says for the query, 404 for a query that it
 * does not know.
 */
async function serve(pages: Readonly<Record<string, readonly [items: unknown[], link?: string | null]>>) {
  return startServer((request, response) => {
    const page = pages[request.url.slice(list.length)];
    if (page === undefined) return json(response, { error: { code: "expired", message: "no such page" } }, 404);
    const [value, link] = page;
    return json(response, { value, ...(link === undefined ? {} : { "@odata.nextLink": link }) });
  });
}

/** A service that always has one more page. */
function endless(items: (n: number) => unknown[]) {
  let n = 0;
  return startServer((_, response) => {
    n += 1;
    json(response, { value: items(n), "@odata.nextLink": `?nonce=${n}` });
  });
}

describe("a walk over pages", () => {
  it("follows links to the end, page by page, with each link as a checkpoint", async () => {
    const server = await serve({
      "": [[1, 2].map((n) => ({ n })), "?p=2"],
      "?p=2": [[{ n: 3 }], "?p=3"],
      "?p=3": [[{ n: 4 }]],
    });
    const walk = connect(server.url).pages("GetActivities");
    const first = await walk.next();
    expect(server.seen).toHaveLength(1);
    expect(first.value).toEqual({
      items: [{ n: 1 }, { n: 2 }],
      url: server.url + list,
      nextLink: `${server.url}${list}?p=2`,
      linkProblem: undefined,
      pageNumber: 1,
    });
    const { pages, error } = await collect(walk);
    expect(error).toBeUndefined();
    expect(pages.map((page) => [page.items.length, page.pageNumber, page.nextLink])).toEqual([
      [1, 2, `${server.url}${list}?p=3`],
      [1, 3, undefined],
    ]);
  });

  it("sends repository, select and expand with the first page only: links are opaque", async () => {
    const server = await startServer((request, response) =>
      json(response, request.url.includes("p=2") ? { value: [] } : { value: [{}], "@nextLink": "?p=2&x=%24a" }),
    );
    await collect(connect(server.url).pages("GetActivities", { repository: "R", select: ["a"], expand: ["b"] }));
    expect(server.seen.map((one) => one.url)).toEqual([
      `${list}?repository=R&$select=a&$expand=b`,
      `${list}?p=2&x=%24a`,
    ]);
  });

  it("starts at a checkpoint, an absolute link or a relative one", async () => {
    const server = await serve({ "?p=2": [[{ n: 3 }]] });
    for (const from of [`${server.url}${list}?p=2`, "?p=2", `http://old-host${list}?p=2`]) {
      const { pages } = await collect(connect(server.url).pages("GetActivities", {}, { from }));
      expect(pages.map((page) => page.items)).toEqual([[{ n: 3 }]]);
    }
    const { error } = await collect(
      connect(server.url).pages("GetActivities", {}, { from: "http://old-host/odata/$next/T1" }),
    );
    expect(error).toMatchObject({ kind: "paging", reason: "link-other-origin", sent: "no" });
    expect(server.seen).toHaveLength(3);
  });

  it.each([null, undefined])("takes a link of %j for the end", async (link) => {
    const server = await startServer((_, response) => json(response, { value: [{}], "@odata.nextLink": link }));
    expect((await collect(connect(server.url).pages("GetActivities"))).pages).toHaveLength(1);
  });

  it("ends with an empty page, and follows empty pages that carry a link", async () => {
    const server = await serve({ "": [[], "?p=2"], "?p=2": [[], "?p=3"], "?p=3": [[{}], "?p=4"], "?p=4": [[]] });
    const { pages, error } = await collect(connect(server.url).pages("GetActivities"));
    expect(pages.map((page) => page.items.length)).toEqual([0, 0, 1, 0]);
    expect(error).toBeUndefined();
  });

  it("yields the items of a page whose link is bad, then says why it ends", async () => {
    const server = await serve({ "": [[{ n: 1 }], ""] });
    const { pages, error } = await collect(connect(server.url).pages("GetActivities"));
    expect(pages).toHaveLength(1);
    expect(pages[0]).toMatchObject({ items: [{ n: 1 }], nextLink: undefined, linkProblem: { reason: "empty-link" } });
    expect(error).toMatchObject({ kind: "paging", reason: "empty-link", operation: "GetActivities", path: list });
    expect((await connect(server.url).getActivities()).linkProblem).toMatchObject({ reason: "empty-link" });
  });

  it("refuses a link that is not a text as contract", async () => {
    const server = await startServer((_, response) => json(response, { value: [], "@odata.nextLink": 5 }));
    expect((await collect(connect(server.url).pages("GetActivities"))).error).toMatchObject({ kind: "contract" });
  });

  it("repeats the same link when the token runs out in the middle", async () => {
    let turn = 1;
    const token = { get: async () => `token-number-${turn}`, renew: async () => `token-number-${++turn}` };
    let refused = false;
    const server = await startServer((request, response) => {
      if (request.url.includes("p=2") && !refused) {
        refused = true;
        return json(response, {}, 401);
      }
      return json(response, { value: [{}], ...(request.url.includes("p=2") ? {} : { "@odata.nextLink": "?p=2" }) });
    });
    expect((await collect(connect(server.url, { token }).pages("GetActivities"))).pages).toHaveLength(2);
    expect(server.seen.map((one) => one.url)).toEqual([list, `${list}?p=2`, `${list}?p=2`]);
  });

  it("stops asking when the reader stops reading", async () => {
    const server = await endless((n) => [{ n }]);
    for await (const page of connect(server.url).pages("GetActivities")) if (page.pageNumber === 2) break;
    expect(server.seen).toHaveLength(2);
  });
});

describe("a walk that would not end", () => {
  it.each([
    ["A → A", { "": [[{}], list] }, 1],
    ["A → B → A", { "": [[{ a: 1 }], "?b"], "?b": [[{ b: 1 }], list] }, 2],
    ["B → B", { "": [[{ a: 1 }], "?b"], "?b": [[{ b: 1 }], "?b"] }, 2],
    ["B → C → B", { "": [[{ a: 1 }], "?b"], "?b": [[{ b: 1 }], "?c"], "?c": [[{ c: 1 }], "?b"] }, 3],
  ] as const)("over links that repeat (%s) ends as a loop", async (_, pages, count) => {
    const server = await serve(pages as unknown as Parameters<typeof serve>[0]);
    const { pages: read, error } = await collect(connect(server.url).pages("GetActivities"));
    expect(error).toMatchObject({ kind: "paging", reason: "repeated-link" });
    expect(read).toHaveLength(count);
    expect(server.seen).toHaveLength(count);
  });

  it("over fresh links to the same page ends at its third time, also in alternation", async () => {
    const same = await endless(() => [{ a: 1 }]);
    const { pages, error } = await collect(connect(same.url).pages("GetActivities"));
    expect(error).toMatchObject({ kind: "paging", reason: "repeated-items" });
    expect(pages).toHaveLength(2);
    const twoInTurn = await endless((n) => [{ a: n % 2 }]);
    const second = await collect(connect(twoInTurn.url).pages("GetActivities"));
    expect(second.error).toMatchObject({ reason: "repeated-items" });
    expect(second.pages).toHaveLength(4);
  });

  it("may repeat short items when properties were selected, up to the page limit", async () => {
    const server = await endless(() => [{ isActive: true }]);
    const walk = connect(server.url).pages("GetTriggers", { select: ["isActive"] }, { pagesMax: 7 });
    const { pages, error } = await collect(walk);
    expect(pages).toHaveLength(7);
    expect(error).toMatchObject({ reason: "pages-max" });
  });

  it("ends at the limits of pages, items and empty pages", async () => {
    const fresh = await endless((n) => [{ n }, { m: n }]);
    const service = connect(fresh.url);
    const walk = async (options: object) => {
      const { pages, error } = await collect(service.pages("GetActivities", {}, options));
      return [pages.length, (error as { reason: string }).reason];
    };
    expect(await walk({ pagesMax: 3 })).toEqual([3, "pages-max"]);
    expect(await walk({ itemsMax: 4 })).toEqual([2, "items-max"]);
    const empty = await endless(() => []);
    const { pages, error } = await collect(connect(empty.url).pages("GetActivities"));
    expect([pages.length, (error as { reason: string }).reason]).toEqual([100, "empty-pages-max"]);
  });

  it("ends at its deadline, in the middle of a request too", async () => {
    const server = await startServer((request, response) => {
      if (request.url === list) json(response, { value: [{}], "@odata.nextLink": "?hang" });
    });
    let pass: () => void = () => {};
    const clock: Clock = {
      ...systemClock,
      sleep: (_, signal) =>
        new Promise((done) => {
          pass = done;
          signal?.addEventListener("abort", () => done());
        }),
    };
    const walk = connect(server.url, { clock }).pages("GetActivities", {}, { deadlineMs: 5_000 });
    await walk.next();
    const rest = errorOf(walk.next());
    await expect.poll(() => server.seen.length).toBe(2);
    pass();
    expect(await rest).toMatchObject({ kind: "paging", reason: "deadline" });
  });

  it("is cancelled, not late, when the caller aborts", async () => {
    const stop = new AbortController();
    const server = await startServer(() => stop.abort());
    const { error } = await collect(
      connect(server.url).pages("GetActivities", {}, { signal: stop.signal, deadlineMs: 60_000 }),
    );
    expect(error).toMatchObject({ kind: "cancelled" });
  });
});

describe("a link that runs out", () => {
  it.each([400, 404, 410])(
    "in the middle (status %i) is paging, reason expired; what was read is kept",
    async (status) => {
      const server = await startServer((request, response) => {
        if (request.url === list) json(response, { value: [{}], "@odata.nextLink": "?old" });
        else json(response, { error: { code: "Directory_ExpiredPageToken", message: "expired" } }, status);
      });
      const { pages, error } = await collect(connect(server.url).pages("GetActivities"));
      expect(pages).toHaveLength(1);
      expect(error).toMatchObject({
        kind: "paging",
        reason: "expired",
        status,
        answer: "Directory_ExpiredPageToken: expired",
      });
      const resumed = await collect(connect(server.url).pages("GetActivities", {}, { from: "?old" }));
      expect(resumed.error).toMatchObject({ kind: "paging", reason: "expired", status });
    },
  );

  it("is not what a first page that is not there means", async () => {
    const server = await startServer((_, response: ServerResponse) => json(response, {}, 404));
    expect((await collect(connect(server.url).pages("GetActivities"))).error).toMatchObject({ kind: "not-found" });
  });
});

describe("links in the style of real servers", () => {
  const total = 250;
  const pageOf = (skip: number) =>
    Array.from({ length: Math.min(100, total - skip) }, (_, n) => ({ activityId: skip + n }));
  const styles = {
    "ASP.NET, absolute, $skip": (next: number) => `http://internal:8080${list}?repository=R&$skip=${next}`,
    "CAP, relative to the service root, encoded dollar": (next: number) =>
      `${list.slice(7)}?repository=R&%24skiptoken=${next}`,
    "Olingo, absolute, encoded token": (next: number) => `http://internal:8080${list}?%24skiptoken=${next}%2A10`,
  };

  it.each(Object.entries(styles))("%s: every item once, then an empty last page", async (_, style) => {
    const server = await startServer((request, response) => {
      const skip = Number(/(?:skip|skiptoken)=(\d+)/.exec(request.url)?.[1] ?? 0);
      const more = skip < 300 ? { "@odata.nextLink": style(skip + 100) } : {};
      const value = skip < total ? pageOf(skip) : [];
      json(response, { "@odata.context": "$metadata#synchronizationactivities", value, ...more });
    });
    const { pages, error } = await collect(connect(server.url).pages("GetActivities", { repository: "R" }));
    expect(error).toBeUndefined();
    expect(pages.flatMap((page) => page.items.map((item) => item["activityId"]))).toEqual(
      Array.from({ length: total }, (_, n) => n),
    );
    expect(pages.map((page) => page.items.length)).toEqual([100, 100, 50, 0]);
  });
});
