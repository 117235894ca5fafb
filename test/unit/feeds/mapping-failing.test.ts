import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { createItemMapper } from "../../../src/feeds/mapping.ts";
import { walkFeed } from "../../../src/feeds/walk-feed.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import type { FeedStatus } from "../../../src/store/feed-store.ts";
import type { Novelty } from "../../../src/store/known-items.ts";
import { TestLog } from "../../support/test-log.ts";

describe("an expression that fails on an item", () => {
  const reader = () =>
    createItemMapper("activities", { id: "item.id", syncJobId: "item.job", finished: "item.state == 'Done'" });

  it("leaves that fact of that item unknown, and nothing else", () => {
    const { read } = reader();
    expect(read({ id: 1, job: 42 })).toMatchObject({ id: "1", syncJobId: "42", finished: undefined });
    expect(read({ id: 2, job: 42, state: "Done" })).toMatchObject({ id: "2", finished: true });
  });

  it("is not one that gives none: the item names the facts that could not be read", () => {
    const { read } = createItemMapper("conflictDetails", { id: "item.id", syncJobId: "item.job.id" });
    expect(read({ id: 1, job: { id: null } }).unread).toBeUndefined();
    expect(read({ id: 2, job: null }).unread).toEqual(["syncJobId"]);
    expect(read({ id: 3, job: { id: [42] } }).unread).toEqual(["syncJobId"]);
    expect(read({ id: 4, job: { id: 42 } }).unread).toBeUndefined();
  });

  it("is counted, and the item is named by its id", () => {
    const { read, failures } = reader();
    read({ id: 1, job: 42, state: "Done" });
    expect(failures()).toEqual({ count: 0, last: "", item: "" });
    read({ id: 2, state: "Done" });
    read({ id: 3, job: 42 });
    expect(failures()).toEqual({ count: 2, last: "finished: No such key: state", item: "3" });
  });

  it.each([
    [
      { startedAt: "2026-11-21 08:00:00" },
      "startedAt: gives a text, and a time with its zone, or seconds or milliseconds since 1970 is wanted",
    ],
    [{ done: "yes" }, "finished: gives a text, and true or false is wanted"],
    [{ done: null }, "finished: gives null, and true or false is wanted"],
    [{ job: [42] }, "syncJobId: gives a list, and a text or a number is wanted"],
  ])("is the same as one that gives a wrong kind of value: %j", (changed, last) => {
    const mapping = { id: "item.id", syncJobId: "item.job", startedAt: "item.startedAt", finished: "item.done" };
    const { read, failures } = createItemMapper("activities", mapping);
    read({ id: 1, job: null, startedAt: null, done: true });
    read({ id: 2, job: "", startedAt: "2026-11-21T08:00:00Z", done: false });
    expect(failures().count).toBe(0);
    read({ id: 3, job: 42, startedAt: null, done: true, ...changed });
    expect(failures()).toEqual({ count: 1, last, item: "3" });
  });

  it("names an item without an id by a hash", () => {
    const { read, failures } = reader();
    const { id } = read({ job: 42, state: "Done" });
    expect(id).toMatch(/^#[0-9a-f]+$/);
    expect(failures()).toMatchObject({ count: 1, item: id });
  });

  it("knows an approval by its documented fields", () => {
    const read = createItemMapper("approvals").read({ approvalId: 7, itemName: "Release", itemId: "x" });
    expect(read).toMatchObject({ id: "7", label: "Release" });
  });
});

describe("a walk of a list on which the mapping fails", () => {
  it("reads on, and says so when something is new or another expression fails", async () => {
    let value: readonly unknown[] = [];
    const server = createServer((_, response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ value }));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const service = new SyncService({ baseUrl: `http://127.0.0.1:${port}`, token: staticToken("x") });
    onTestFinished(() => {
      service.close();
      server.close();
    });
    const log = new TestLog();
    const reader = createItemMapper("activities", {
      id: "item.id",
      finished: "item.state == 'Done'",
      label: "item.name",
    });
    const status = { seq: 0, generation: 0, count: 0, walks: 1 } as const;
    let walks = 0;
    const walk = async (items: readonly unknown[], novelty: Novelty) => {
      value = items;
      await walkFeed(
        { v: 1, kind: "feed-walk", service: "main", repository: null, list: "activities" },
        {
          feeds: {
            beginAnew: async () => {},
            takeIn: async (_feed, _status, { items: taken }) => taken.map(() => novelty),
            keepKnowledge: async () => {},
            markLogged: async () => {},
            denyWalk: async () => {},
            discoveredSince: async () => [],
            keepShape: async () => {},
            endWalk: async () => {
              walks += 1;
            },
            failWalk: async (_feed, failure) => expect(failure).toBe(""),
            status: async () => ({ ...nothingRead, ...status }),
            waiting: async () => 1,
          },
          nowMs: async () => 10_000_000,
          service: () => service,
          denialOf: async () => undefined,
          itemMapper: () => reader,
          pace: { gapMs: 0, fastestMs: 0, slowestMs: 0 },
          log,
        },
        new AbortController().signal,
      );
    };
    await walk([{ id: 1, state: "Done", name: "a" }], "new");
    expect(log.named("feed.mapping-failing")).toEqual([]);
    await walk(
      [
        { id: 1, name: "a" },
        { id: 2, name: "b" },
      ],
      "new",
    );
    await walk(
      [
        { id: 1, name: "a" },
        { id: 2, name: "b" },
      ],
      "known",
    );
    await walk(
      [
        { id: 1, state: "Done" },
        { id: 2, state: "Done", name: "b" },
      ],
      "known",
    );
    expect(log.named("feed.mapping-failing")).toMatchObject([
      { list: "activities", failures: 2, item: "2", last: "finished: No such key: state" },
      { list: "activities", failures: 1, item: "1", last: "label: No such key: name" },
    ]);
    expect(walks).toBe(4);
  });
});

const nothingRead: Omit<FeedStatus, "seq" | "generation" | "count" | "walks"> = {
  knowledge: undefined,
  shape: undefined,
  walkBeganAtMs: undefined,
  walkEndedAtMs: undefined,
  grewAtMs: undefined,
  wantedAtMs: undefined,
  failingSinceMs: undefined,
  failure: undefined,
};
