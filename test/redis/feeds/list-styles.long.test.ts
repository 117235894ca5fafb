// Lists as services write them: skip tokens, links, orders and page sizes of every kind. A steady
// walk of one that has an order costs two requests at most and one for each page of what is new;
// one without says that it is read whole, and why. Real HTTP, real Redis.
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { createItemMapper } from "../../../src/feeds/mapping.ts";
import { walkFeed } from "../../../src/feeds/walk-feed.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { FeedStore } from "../../../src/store/feed-store.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { storeForTest } from "../../support/redis.ts";
import { TestLog } from "../../support/test-log.ts";

const store = await storeForTest();

const listName = "synchronizationactivities";
const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64");
const guidOf = (id: number) =>
  createHash("md5")
    .update(`${id}`)
    .digest("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");

/** How the place after the first `count` items is written, of which `last` is the last one. */
const tokens = {
  skip: (count: number) => `$skip=${count}`,
  number: (count: number) => `$skiptoken=${count}`,
  json: (count: number) => `$skiptoken=${encodeURIComponent(base64({ r: [{ o: count }], c: 12 }))}`,
  key: (_: number, last: number) => `$skiptoken=Id-${last}`,
  guid: (_: number, last: number) => `$skiptoken=${guidOf(last)}`,
  encoded: (_: number, last: number) => `%24skiptoken=${encodeURIComponent(`a/b+c=${last}&d?`)}`,
  "plain key": (_: number, last: number) => `key=${guidOf(last)}`,
} as const;
type TokenStyle = keyof typeof tokens;

const links = ["absolute", "relative", "path", "query", "opaque", "opaque relative", "mixed", "wrong host"] as const;
type LinkStyle = (typeof links)[number];
type Order = "ascending" | "descending" | "none";

interface Style {
  readonly token: TokenStyle;
  readonly link: LinkStyle;
  readonly order: Order;
  readonly pageSize: number;
  /** A full last page carries a link to an empty one. */
  readonly emptyLast: boolean;
}

/** A service with one list, in this style. */
async function startList(style: Style) {
  const items: number[] = [];
  let made = 0;
  let served = 0;
  const state = { requests: 0, extra: "", expiredStatus: 410, basePath: "/sync" };
  const pathOf = () => `${state.basePath}/odata/${listName}`;
  const opaque = new Map<string, string>();
  let epoch = 1;
  const startOf = (query: string): number => {
    if (query === "") return 0;
    const after = (id: number) => items.indexOf(id) + 1;
    const value = decodeURIComponent(query.slice(query.indexOf("=") + 1));
    if (style.token === "skip" || style.token === "number") return Number(value);
    if (style.token === "json") return JSON.parse(Buffer.from(value, "base64").toString()).r[0].o;
    if (style.token === "key") return after(Number(value.slice(3)));
    if (style.token === "encoded") return after(Number(/c=(\d+)/.exec(value)?.[1]));
    return items.findIndex((id) => guidOf(id) === value) + 1;
  };
  const server = createServer((request, response) => {
    const asked = new URL(request.url ?? "", "http://x");
    const isCount = asked.pathname.endsWith("/$count");
    state.requests += 1;
    const send = (status: number, type: string, body: string) =>
      response.writeHead(status, { "content-type": type }).end(body);
    if (isCount) return void send(200, "text/plain", `${items.length}`);
    const known = opaque.get(asked.pathname);
    const path = pathOf();
    const asksFirst = asked.search === "" || asked.search.startsWith("?repository=");
    const isOpaque = asked.pathname !== path;
    const isLost = isOpaque ? known === undefined : !asksFirst && !asked.search.includes(`&limit=${epoch}`);
    if (isLost) return void send(state.expiredStatus, "application/json", "{}");
    const query = (known ?? (asksFirst ? "" : asked.search.slice(1))).split("&limit=")[0] ?? "";
    const start = startOf(query);
    const page = items.slice(start, start + style.pageSize);
    const end = start + page.length;
    const isMore = end < items.length || (style.emptyLast && page.length === style.pageSize);
    const next = isMore
      ? linkTo(`${tokens[style.token](end, page.at(-1) ?? 0)}&limit=${epoch}${state.extra}`)
      : undefined;
    const value = page.map((id) => ({ activityId: guidOf(id) }));
    const context = `http://${request.headers.host}${state.basePath}/odata/$metadata#${listName}`;
    send(200, "application/json", JSON.stringify({ "@odata.context": context, value, "@odata.nextLink": next }));
  });
  const linkTo = (query: string): string => {
    served += 1;
    const plain = ["absolute", "relative", "path", "query", "wrong host"] as const;
    const link = style.link === "mixed" ? (plain[served % plain.length] ?? "path") : style.link;
    const own = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    if (link === "opaque" || link === "opaque relative") {
      const place = `${state.basePath}/odata/$next/${randomUUID()}`;
      opaque.set(place, query);
      return link === "opaque" ? `${own}${place}` : place.slice(`${state.basePath}/odata/`.length);
    }
    const path = pathOf();
    const forms = {
      absolute: `${own}${path}?${query}`,
      relative: `${listName}?${query}`,
      path: `${path}?${query}`,
      query: `?${query}`,
      "wrong host": `https://internal.example:8443${path}?${query}`,
    };
    return forms[link];
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const insert = (count: number) => {
    for (let index = 0; index < count; index += 1) {
      made += 1;
      const place = { ascending: items.length, descending: 0, none: Math.floor(items.length / 2) }[style.order];
      items.splice(place, 0, made);
    }
  };
  /** Whatever links were followed so far are known no more. */
  const expire = () => {
    opaque.clear();
    epoch += 1;
  };
  return { expire, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, insert, items, state };
}

/** Follows such a list; `read` does one walk and answers its requests. */
async function follow(style: Style, pages = 12) {
  const list = await startList(style);
  list.insert(pages * style.pageSize);
  const log = new TestLog();
  const book = new FeedStore(store);
  const feed = { service: "styles", repository: randomUUID(), list: "activities" } as const;
  const connect = () => new SyncService({ baseUrl: `${list.origin}${list.state.basePath}`, token: staticToken("x") });
  let service = connect();
  onTestFinished(() => service.close());
  /** The service moves, and the operator with it. */
  const move = (basePath: string) => {
    list.state.basePath = basePath;
    service.close();
    service = connect();
  };
  await book.addWaiter(feed, "test", { nowMs: 1, untilMs: 9e15 });
  const read = async () => {
    list.state.requests = 0;
    await walkFeed(
      { v: 1, kind: "feed-walk", ...feed },
      {
        feeds: book,
        nowMs: async () => (await redisTimeMs(store)) + 60_000,
        service: (name) => (name === "styles" ? service : undefined),
        denialOf: async () => undefined,
        itemMapper: () => createItemMapper("activities", { id: "item.activityId" }),
        pace: { gapMs: 0, fastestMs: 0, slowestMs: 0 },
        log,
      },
      new AbortController().signal,
    );
    return list.state.requests;
  };
  const known = async () => (await book.discoveredSince(feed, 0)).map(({ id }) => id).toSorted();
  const all = () => list.items.map(guidOf).toSorted();
  return { ...list, move, read, log, known, all, status: () => book.status(feed) };
}

/** The first walk, and two that show where the list grows; then what a steady walk costs. */
async function settle(style: Style, pages?: number) {
  const list = await follow(style, pages);
  await list.read();
  for (let round = 0; round < 2; round += 1) {
    list.insert(1);
    await list.read();
  }
  return list;
}

const cells = (Object.keys(tokens) as TokenStyle[]).flatMap((token, row) =>
  links.flatMap((link, column) =>
    (["ascending", "descending"] as const).map((order) => {
      const emptyLast = (row + column) % 2 === 0;
      return { token, link, order, emptyLast, pageSize: emptyLast ? 3 : 2 };
    }),
  ),
);

/** The machine may do other things, too. */
describe("a steady walk of a list that has an order", () => {
  it.each(cells)("costs two requests at most: $token, $link, $order", async (cell) => {
    const list = await settle(cell, 3);
    expect(await list.read()).toBeLessThanOrEqual(2);
    list.insert(2 * cell.pageSize);
    expect(await list.read()).toBeLessThanOrEqual(2 + 2);
    expect(list.log.named("feed.unreadable")).toEqual([]);
    expect(await list.known()).toEqual(list.all());
    expect(list.log.named("feed.read-whole")).toEqual([]);
    expect(list.log.named("feed.links-not-kept")).toEqual([]);
  });

  it.each(["ascending", "descending"] as const)("of 50 pages of 100 costs no more: %s", async (order) => {
    const list = await settle({ token: "json", link: "opaque", order, pageSize: 100, emptyLast: true }, 50);
    expect(await list.read()).toBeLessThanOrEqual(2);
    list.insert(100);
    expect(await list.read()).toBeLessThanOrEqual(3);
    expect(await list.known()).toEqual(list.all());
  });
});

const plain = { token: "json", link: "absolute", order: "ascending", pageSize: 2, emptyLast: false } as const;

/** Walks so often, each time with something new. */
async function readTimes(list: Awaited<ReturnType<typeof follow>>, times: number): Promise<number[]> {
  const costs: number[] = [];
  for (let round = 0; round < times; round += 1) {
    list.insert(1);
    costs.push(await list.read());
  }
  return costs;
}

describe("a list that is read whole again and again", () => {
  it("without an order says so and why, the first, second, fourth and eighth time", async () => {
    const list = await settle({ ...plain, order: "none" }, 6);
    await readTimes(list, 9);
    const told = list.log.named("feed.read-whole");
    expect(told.map(({ reason }) => reason)).toEqual(["count-differs", "no-order", "no-order", "no-order"]);
    expect(told.map(({ inARow }) => inARow)).toEqual([1, 2, 4, 8]);
    expect(list.log.named("feed.order-found")).toEqual([]);
    expect(list.log.named("feed.order-lost")).toHaveLength(1);
    expect(await list.status()).toMatchObject({ costlyReason: "no-order", costlyWalks: 11 });
  });

  it("names the credential in its links once, and is still read whole", async () => {
    const list = await follow(plain, 6);
    list.state.extra = "&sig=canary-sig";
    await list.read();
    await readTimes(list, 6);
    expect(list.log.named("feed.links-not-kept")).toMatchObject([{ carries: "sig" }]);
    expect(list.log.named("feed.order-found")).toMatchObject([{ order: "tail", readFrom: "whole" }]);
    expect(await list.status()).toMatchObject({ costlyReason: "links-not-kept", costlyWalks: 6 });
    expect(JSON.stringify(await list.status())).not.toContain("canary-sig");
    expect(await list.known()).toEqual(list.all());
    // The service has learned.
    list.state.extra = "";
    await readTimes(list, 1);
    expect(list.log.named("feed.links-kept")).toHaveLength(1);
    expect(Math.max(...(await readTimes(list, 3)))).toBe(2);
    expect(list.log.named("feed.read-in-part")).toMatchObject([{ after: 7 }]);
    expect((await list.status()).costlyWalks).toBeUndefined();
  });

  it.each(["opaque", "absolute"] as const)("once, when the link that it went on from has expired: %s", async (link) => {
    const list = await settle({ ...plain, link }, 6);
    list.expire();
    list.insert(1);
    const cost = await list.read();
    expect(cost).toBeLessThanOrEqual(1 + Math.ceil(list.items.length / 2));
    expect(list.log.named("feed.read-whole")).toMatchObject([{ reason: "link-expired", inARow: 1 }]);
    expect(await list.known()).toEqual(list.all());
    expect(await list.read()).toBeLessThanOrEqual(2);
  });

  it.each(["opaque", "absolute"] as const)(
    "once, when the service has moved to another base path: %s",
    async (link) => {
      const list = await settle({ ...plain, link }, 6);
      list.move("/moved");
      list.insert(1);
      await list.read();
      expect(list.log.named("feed.unreadable")).toEqual([]);
      expect(list.log.named("feed.read-whole")).toMatchObject([{ reason: "link-expired", inARow: 1 }]);
      expect(await list.known()).toEqual(list.all());
      expect(await list.read()).toBeLessThanOrEqual(2);
    },
  );

  it.each([500, 401, 403, 422])(
    "once, when the service answers an old link with %i and its first page well",
    async (status) => {
      const list = await settle(plain, 6);
      list.expire();
      list.state.expiredStatus = status;
      list.insert(1);
      await list.read();
      expect(list.log.named("feed.read-whole")).toMatchObject([{ reason: "link-expired", inARow: 1 }]);
      expect(list.log.named("feed.unreadable")).toEqual([]);
      expect(await list.known()).toEqual(list.all());
    },
  );
});
