import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { beginTotals } from "../../../src/feeds/list-totals.ts";
import { createItemMapper } from "../../../src/feeds/mapping.ts";
import { nothingRead, readKnowledge } from "../../../src/feeds/strategy/choose-walk.ts";
import { walkFeed } from "../../../src/feeds/walk-feed.ts";
import type { ItemFacts, ListName } from "../../../src/model/feed.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import type { FeedStatus, WalkSummary } from "../../../src/store/feed-store.ts";
import { TestLog } from "../../support/test-log.ts";

/** What the list holds, page by page, and what its `$count` says. */
let pages: readonly (readonly unknown[])[] = [];
let saidCount = 0;
const server = createServer((request, response) => {
  const url = new URL(request.url ?? "", "http://here");
  const page = Number(url.searchParams.get("$skip") ?? 0);
  const next = page + 1 < pages.length ? { "@odata.nextLink": `${url.pathname}?$skip=${page + 1}` } : {};
  const body = url.pathname.endsWith("$count") ? String(saidCount) : JSON.stringify({ value: pages[page], ...next });
  response.writeHead(200, { "content-type": "application/json" }).end(body);
});
let service: SyncService;
let origin = "";

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  origin = `http://127.0.0.1:${port}`;
  service = new SyncService({ baseUrl: origin, token: staticToken("x") });
});
afterAll(() => {
  service.close();
  server.close();
});
beforeEach(() => {
  saidCount = -1;
});

const nowMs = 20_000_000;
const nothing: FeedStatus = {
  seq: 0,
  generation: 0,
  knowledge: undefined,
  shape: undefined,
  count: 0,
  walks: 1,
  walkBeganAtMs: undefined,
  walkEndedAtMs: undefined,
  grewAtMs: undefined,
  wantedAtMs: undefined,
  failingSinceMs: undefined,
  failure: undefined,
};

let kept: string | undefined;
let log = new TestLog();

/** What the walk of a list tells the feed book at its end. */
async function walked(
  list: ListName,
  knowledge?: string,
  { startsWait = false, ...given }: Partial<FeedStatus> & { readonly startsWait?: boolean } = {},
): Promise<WalkSummary | undefined> {
  let ended: WalkSummary | undefined;
  const mapping = { id: "item.id", syncJobId: "item.job" };
  await walkFeed(
    { v: 1, kind: "feed-walk", service: "main", repository: null, list },
    {
      feeds: {
        beginAnew: async () => {},
        takeIn: async (_feed, _status, { items }) => items.map(() => "known"),
        keepKnowledge: async (_feed, text) => {
          kept = text;
        },
        markLogged: async () => {},
        denyWalk: async () => {},
        discoveredSince: async () => [],
        keepShape: async () => {},
        endWalk: async (_feed, walk) => {
          ended = walk;
        },
        failWalk: async (_feed, failure) => expect(failure).toBe(""),
        status: async () => ({ ...nothing, knowledge, ...given }),
        waiting: async () => 1,
      },
      nowMs: async () => nowMs,
      service: () => service,
      denialOf: async () => undefined,
      startsWait: async () => startsWait,
      itemMapper: () => createItemMapper(list, mapping),
      pace: { gapMs: 0, fastestMs: 0, slowestMs: 0 },
      log,
    },
    new AbortController().signal,
  );
  return ended;
}

const totalsOf = async (list: ListName) => Object.fromEntries((await walked(list))?.totals ?? []);
const conflict = (id: number, job: number | null) => ({ id, job });

describe("a walk of the whole list", () => {
  it("counts conflicts by sync job", async () => {
    pages = [[conflict(1, 42), conflict(2, 42), conflict(3, 43), conflict(4, null)]];
    expect(await totalsOf("conflictDetails")).toEqual({ all: 4, "job 42": 2, "job 43": 1 });
  });

  it("notes which approvals are there", async () => {
    pages = [[conflict(7, 42), conflict(8, 42)]];
    expect(await totalsOf("approvals")).toEqual({ all: 2, "item 7": 1, "item 8": 1 });
  });

  it("counts an empty list as empty", async () => {
    pages = [[]];
    expect(await totalsOf("conflictDetails")).toEqual({ all: 0 });
  });

  it("counts what pages show twice once, if the service's own count agrees", async () => {
    pages = [
      [conflict(1, 42), conflict(2, 42)],
      [conflict(2, 42), conflict(3, 42)],
    ];
    saidCount = 3;
    expect(await totalsOf("conflictDetails")).toEqual({ all: 3, "job 42": 3 });
  });

  it("counts nothing where the service's count differs: the list changed meanwhile", async () => {
    pages = [[conflict(1, 42), conflict(2, 42)], [conflict(3, 42)]];
    saidCount = 4;
    expect((await walked("conflictDetails"))?.totals).toBeUndefined();
  });

  it("says once when the service does not count, and when the list is too long", async () => {
    log = new TestLog();
    pages = [[conflict(1, 42), conflict(2, 42)], [conflict(3, 42)]];
    saidCount = Number.NaN;
    expect((await walked("conflictDetails"))?.totals).toBeUndefined();
    // With the second such walk in a row goes what was counted before.
    expect((await walked("conflictDetails", kept))?.totals).toBeNull();
    expect(log.named("feed.not-counted")).toMatchObject([{ reason: "count-unreadable" }]);
    pages = [Array.from({ length: 1_001 }, (_, id) => conflict(id, 42))];
    await walked("approvals");
    expect(log.named("feed.not-counted").at(-1)).toMatchObject({ list: "approvals", reason: "too-long" });
    pages = [[conflict(1, 42), conflict(2, 42)], [conflict(3, 42)]];
    saidCount = 3;
    await walked("conflictDetails", kept);
    expect(JSON.parse(kept ?? "")).toMatchObject({ uncounted: null });
  });

  it("counts nothing where it went on from a page on which another walk had stopped", async () => {
    pages = [[conflict(1, 42)], [conflict(2, 42), conflict(3, 42)]];
    saidCount = 2;
    const next = `${origin}/odata/syncconflictdetails?$skip=1`;
    const page = { ...nothingRead, pages: 1, items: 1, trail: "known" };
    const underway = { ...page, startedAtMs: 1, sinceSeq: 0, next, restarts: 0 };
    const known = { ...readKnowledge(null), ...page, underway };
    const ended = await walked("conflictDetails", JSON.stringify(known));
    expect([ended?.whole, ended?.totals]).toEqual([true, undefined]);
    // Begun anew it has seen all of it.
    saidCount = 3;
    const anew = await walked("conflictDetails", JSON.stringify({ ...known, underway: { ...underway, next: null } }));
    expect(anew?.totals?.get("all")).toBe(3);
  });

  it("counts nothing in lists where gone items are not asked for", async () => {
    pages = [[conflict(1, 42)]];
    expect((await walked("activities"))?.totals).toBeUndefined();
  });
});

describe("a list that is too long to count", () => {
  it("is not counted, and costs no more memory", () => {
    const totals = beginTotals("approvals");
    const item = (id: number): ItemFacts => ({
      id: String(id),
      fingerprint: "",
      syncJobId: undefined,
      startedAtMs: undefined,
      finished: undefined,
      succeeded: undefined,
      label: undefined,
    });
    totals?.add(Array.from({ length: 1_000 }, (_, id) => item(id)));
    expect(totals?.counts()?.size).toBe(1_001);
    totals?.add(Array.from({ length: 5_000 }, (_, id) => item(id + 1_000)));
    expect(totals?.counts()).toBeUndefined();
    expect(totals?.seen().items).toBe(1_001);
  });
});

describe("the audit of a list that is read from its end", () => {
  const hourMs = 3_600_000;
  /** Whether a list whose last audit was so long ago is read whole now. */
  const isAudited = async (agoMs: number, startsWait: boolean, given: Partial<FeedStatus> = {}) => {
    pages = [[conflict(1, 42)], [conflict(2, 42)], [conflict(3, 42)], [conflict(4, 42)]];
    const known = { ...readKnowledge(null), order: "tail", forTail: 2, wholeAtMs: nowMs - agoMs };
    const lastPage = `${origin}/odata/synchronizationactivities?$skip=3`;
    const read = { pages: 4, items: 4, lastPage };
    return (await walked("activities", JSON.stringify({ ...known, ...read }), { startsWait, ...given }))?.whole;
  };

  it("comes every hour, and up to three hours late while starts wait for the service", async () => {
    expect(await isAudited(hourMs - 1, false)).toBe(false);
    expect(await isAudited(hourMs, false)).toBe(true);
    expect(await isAudited(hourMs, true)).toBe(false);
    expect(await isAudited(4 * hourMs - 1, true)).toBe(false);
    expect(await isAudited(4 * hourMs, true)).toBe(true);
  });

  it("comes at once where absence must be known, unless a whole walk has begun since", async () => {
    const wholeWantedAtMs = nowMs - 1_000;
    expect(await isAudited(60_000, true, { wholeWantedAtMs })).toBe(true);
    expect(await isAudited(60_000, false, { wholeWantedAtMs, wholeWalkBeganAtMs: wholeWantedAtMs - 1 })).toBe(true);
    expect(await isAudited(60_000, false, { wholeWantedAtMs, wholeWalkBeganAtMs: wholeWantedAtMs })).toBe(false);
    expect(await isAudited(60_000, false, { wholeWantedAtMs: nowMs + 1 })).toBe(false);
  });
});
