// A walk of a list that stopped at a page and went on there later: what it says of the list.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import type { ItemMapping } from "../../../src/config/policy-set.ts";
import { healthOf, type Limiter, type Permit } from "../../../src/core/limiter.ts";
import { createItemMapper } from "../../../src/feeds/mapping.ts";
import type { GivenPage } from "../../../src/feeds/service-list.ts";
import { freshWalk, readKnowledge } from "../../../src/feeds/strategy/choose-walk.ts";
import { walkFeed } from "../../../src/feeds/walk-feed.ts";
import type { FeedWalk } from "../../../src/model/feed.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import type { FeedStatus, WalkSummary } from "../../../src/store/feed-store.ts";
import { TestLog } from "../../support/test-log.ts";

const walk: FeedWalk = { v: 1, kind: "feed-walk", service: "main", repository: null, list: "activities" };
const neverRead: FeedStatus = {
  seq: 0,
  generation: 0,
  knowledge: undefined,
  shape: undefined,
  count: 0,
  walks: 0,
  walkBeganAtMs: undefined,
  walkEndedAtMs: undefined,
  grewAtMs: undefined,
  wantedAtMs: undefined,
  failingSinceMs: undefined,
  failure: undefined,
};

let isThrottled = false;
/** How the server answers a link that it has forgotten; `isDown`: and all else. */
let [lostStatus, isDown] = [410, false];
const server = createServer((request, response) => {
  if (isDown || request.url?.includes("lost") === true) return void response.writeHead(lostStatus).end();
  const isSecond = request.url?.includes("skip=1") === true;
  if (isSecond && isThrottled) return void response.writeHead(429, { "retry-after": "900" }).end();
  const page = isSecond ? { value: [{ id: 2 }] } : { value: [{ id: 1 }], "@odata.nextLink": "?skip=1" };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(page));
});

afterEach(() => {
  server.close();
});

/** Walks the list of the server with what is kept of it between two walks. */
async function openWalks(
  kept: { knowledge?: (url: string) => string; mapping?: () => ItemMapping; limiter?: Limiter } = {},
) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const baseUrl = `http://127.0.0.1:${port}`;
  const service = new SyncService({ baseUrl, token: staticToken("x"), limiter: kept.limiter });
  onTestFinished(() => service.close());
  const ended: WalkSummary[] = [];
  let knowledge = kept.knowledge?.(baseUrl);
  let failingSinceMs: number | undefined;
  const failures: string[] = [];
  const walkAt = (nowMs: number, poll?: { readonly beganAtMs: number; readonly pages: readonly GivenPage[] }) =>
    walkFeed(
      walk,
      {
        feeds: {
          beginAnew: async () => {},
          takeIn: async (_feed, _status, page) => {
            knowledge = page.knowledge ?? knowledge;
            return page.items.map(() => "known");
          },
          keepKnowledge: async (_feed, text) => {
            knowledge = text;
          },
          keepShape: async () => {},
          markLogged: async () => {},
          denyWalk: async () => {},
          discoveredSince: async () => [],
          endWalk: async (_feed, one) => void ended.push(one),
          failWalk: async (_feed, failure) => {
            if (kept.limiter === undefined) expect(failure).toBe("");
            failures.push(failure);
            failingSinceMs = nowMs;
          },
          status: async () => ({ ...neverRead, knowledge, failingSinceMs }),
          waiting: async () => 1,
        },
        nowMs: async () => nowMs,
        service: () => service,
        denialOf: async () => undefined,
        itemMapper: () => createItemMapper("activities", kept.mapping?.()),
        readings: { newerThan: async () => poll },
        pace: { gapMs: 0, fastestMs: 0, slowestMs: 0 },
        log: new TestLog(),
      },
      new AbortController().signal,
    );
  return { walkAt, failures, ended };
}

describe("a walk that a throttling service stopped at a page", () => {
  it("says since when the list was read whole: from before it stopped", async () => {
    const { walkAt, ended } = await openWalks();
    isThrottled = true;
    await walkAt(1_000);
    expect(ended).toEqual([]);
    isThrottled = false;
    await walkAt(901_000);
    await walkAt(960_000);
    expect(ended).toMatchObject([
      { sinceMs: 1_000, startedAtMs: 901_000 },
      { sinceMs: 960_000, startedAtMs: 960_000 },
    ]);
  });

  it("says an earlier instant where a poll that began before it has read the rest", async () => {
    const { walkAt, ended } = await openWalks();
    isThrottled = true;
    await walkAt(10_000);
    const url = "http://service.test/odata/synchronizationactivities";
    await walkAt(12_000, { beganAtMs: 5_000, pages: [{ url, items: [{ id: 1 }, { id: 2 }] }] });
    isThrottled = false;
    expect(ended).toMatchObject([{ sinceMs: 5_000, whole: true, because: "resumed" }]);
  });
});

describe("a walk whose stored link is refused", () => {
  /** As after an outage: the list rests after each failure until a request for it goes well. */
  function watched() {
    const rest = { isWatched: true, isOn: false };
    const limiter: Limiter = {
      acquire: async () => {
        if (rest.isOn) return { deniedBy: "breaker", waitMs: 30_000 };
        const release: Permit["release"] = async ({ kind }) => {
          if (kind === undefined) rest.isWatched = false;
          else rest.isOn = rest.isWatched && healthOf[kind] === "failing";
        };
        return { release };
      },
    };
    const known = readKnowledge(null);
    const next = (url: string) => `${url}/odata/synchronizationactivities?lost`;
    const knowledge = (url: string) =>
      JSON.stringify({ ...known, underway: { ...freshWalk(1_000, 0), next: next(url), pages: 9, items: 900 } });
    return { rest, limiter, knowledge };
  }

  it.each([401, 403, 422])("for ever begins anew, also while a failing list rests: %i", async (status) => {
    const { rest, ...kept } = watched();
    lostStatus = status;
    const { walkAt, ended } = await openWalks(kept);
    await walkAt(2_000);
    rest.isOn = false;
    await walkAt(32_000);
    expect(ended.at(-1)).toMatchObject({ whole: true, count: 2 });
  });

  it("as all else is told as failed each time", async () => {
    const { rest, ...kept } = watched();
    [lostStatus, isDown] = [500, true];
    const { walkAt, failures } = await openWalks(kept);
    for (const nowMs of [2_000, 32_000, 62_000]) {
      await walkAt(nowMs);
      rest.isOn = false;
    }
    isDown = false;
    expect(failures).toHaveLength(3);
  });
});

describe("a list of which an older version keeps a placeholder for a forbidden link", () => {
  it("is read from its first page: no link leads on from there", async () => {
    const lastPage = "not-kept:sig:0123456789abcdef0123456789abcdef";
    const known = { ...readKnowledge(null), order: "tail", wholeAtMs: 1_000, pages: 9, items: 900, lastPage } as const;
    const { walkAt, ended } = await openWalks({ knowledge: () => JSON.stringify(known) });
    await walkAt(2_000);
    expect(ended).toMatchObject([{ startedAtMs: 2_000, whole: true, count: 2 }]);
  });
});

describe("a list whose mapping was corrected", () => {
  it("is read whole once, for the new facts of what stands on earlier pages", async () => {
    const known = { ...readKnowledge(null), order: "tail", wholeAtMs: 1_000, pages: 9, items: 900 } as const;
    let mapping: ItemMapping = { id: "item.id" };
    const { walkAt, ended } = await openWalks({
      knowledge: (url) => JSON.stringify({ ...known, lastPage: `${url}/odata/synchronizationactivities?skip=1` }),
      mapping: () => mapping,
    });
    await walkAt(2_000);
    mapping = { ...mapping, label: "item.id" };
    for (const atMs of [3_000, 4_000]) await walkAt(atMs);
    expect(ended.map(({ because }) => because)).toEqual([undefined, "first", "short"]);
  });
});
