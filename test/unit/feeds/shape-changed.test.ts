import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { createItemMapper } from "../../../src/feeds/mapping.ts";
import { walkFeed } from "../../../src/feeds/walk-feed.ts";
import type { FeedWalk } from "../../../src/model/feed.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import type { FeedStatus } from "../../../src/store/feed-store.ts";
import { TestLog } from "../../support/test-log.ts";

let value: readonly unknown[] = [];
const server = createServer((request, response) => {
  const isCount = request.url?.includes("$count") === true;
  response.writeHead(200, { "content-type": "application/json" }).end(isCount ? "0" : JSON.stringify({ value }));
});
const walk: FeedWalk = { v: 1, kind: "feed-walk", service: "main", repository: null, list: "activities" };

afterEach(() => {
  server.close();
});

describe("a feed whose items change their shape", () => {
  it("says so once, and in which fields", async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const service = new SyncService({ baseUrl: `http://127.0.0.1:${port}`, token: staticToken("x") });
    const log = new TestLog();
    const kept: { knowledge?: string; shape?: string } = {};
    const nothing: Omit<FeedStatus, "knowledge" | "shape"> = {
      seq: 0,
      generation: 0,
      count: 0,
      walks: 1,
      walkBeganAtMs: undefined,
      walkEndedAtMs: undefined,
      grewAtMs: undefined,
      wantedAtMs: undefined,
      failingSinceMs: undefined,
      failure: undefined,
    };
    const read = async (items: readonly unknown[]) => {
      value = items;
      await walkFeed(
        walk,
        {
          feeds: {
            beginAnew: async () => {},
            takeIn: async (_feed, _status, { items: taken }) => taken.map(() => "known"),
            keepKnowledge: async (_feed, knowledge) => void Object.assign(kept, { knowledge }),
            keepShape: async (_feed, shape) => void Object.assign(kept, { shape }),
            markLogged: async () => {},
            denyWalk: async () => {},
            discoveredSince: async () => [],
            endWalk: async () => {},
            failWalk: async (_feed, failure) => expect(failure).toBe(""),
            status: async () => ({ ...nothing, knowledge: kept.knowledge, shape: kept.shape }),
            waiting: async () => 1,
          },
          nowMs: async () => 10_000_000,
          service: () => service,
          denialOf: async () => undefined,
          itemMapper: () => createItemMapper("activities"),
          pace: { gapMs: 0, fastestMs: 0, slowestMs: 0 },
          log,
        },
        new AbortController().signal,
      );
    };
    const plain = Array.from({ length: 30 }, (_, id) => ({ id, state: "Finished" }));
    const other = plain.map(({ id }) => ({ id: `a${id}`, status: "Finished" }));
    await read(plain);
    await read(plain);
    await read([]);
    expect(log.named("feed.shape-changed")).toEqual([]);
    await read(other);
    await read(other);
    await read(plain);
    service.close();
    expect(log.named("feed.shape-changed")).toMatchObject([
      { list: "activities", changes: "id was number, now also string; state is gone; status is new" },
    ]);
  });
});
