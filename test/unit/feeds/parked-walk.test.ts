import { describe, expect, it } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import type { Gate, Hold } from "../../../src/core/gate.ts";
import { createItemReader } from "../../../src/feeds/mapping.ts";
import { type WalkParts, walkFeed } from "../../../src/feeds/walk-feed.ts";
import type { FeedStatus, ParkedWalk } from "../../../src/store/feed-book.ts";
import type { FeedWalk } from "../../../src/tasks/feed.ts";
import { connect, json, startServer } from "../service/test-server.ts";

const walk: FeedWalk = { v: 1, kind: "feed-walk", service: "main", repository: null, list: "activities" };
const nowMs = 1_000_000;

/** A list of three pages behind a gate, and a book that remembers what it is told. */
async function threePages() {
  const server = await startServer(({ url }, response) => {
    const page = Number(new URL(url, "http://x").searchParams.get("page") ?? 1);
    const more = page < 3 ? { "@odata.nextLink": `synchronizationactivities?page=${page + 1}` } : {};
    json(response, { value: [{ id: page }], ...more });
  });
  const state = { passes: 0, hold: undefined as Hold | undefined, now: nowMs };
  const gate: Gate = {
    enter: async () => {
      state.passes -= 1;
      return state.passes >= 0 ? { leave: async () => {} } : { heldBy: "throttle", waitMs: 60_000 };
    },
  };
  const noted: { parked: ParkedWalk | undefined; walked: unknown; failed: string[] } = {
    parked: undefined,
    walked: undefined,
    failed: [],
  };
  const status = (): FeedStatus => ({
    seq: 0,
    count: 0,
    walks: 0,
    walkStartedAtMs: undefined,
    walkEndedAtMs: undefined,
    grewAtMs: undefined,
    wantedAtMs: undefined,
    failingSinceMs: undefined,
    failure: undefined,
    parked: noted.parked,
  });
  const service = connect(server.url, { gate });
  const parts: WalkParts = {
    book: {
      takeIn: async (_, items) => items.map(({ id }) => id),
      walked: async (_, what) => void Object.assign(noted, { walked: what }),
      park: async (_, what) => void Object.assign(noted, { parked: what }),
      failed: async (_, failure) => void noted.failed.push(failure),
      status: async () => status(),
      waiting: async () => 1,
    },
    nowMs: async () => state.now,
    service: () => service,
    held: async () => state.hold,
    itemReader: () => createItemReader("activities", undefined),
    pace: { gapMs: 0, fastestMs: 1_000, slowestMs: 5_000 },
    log: silentLog,
  };
  const step = () => walkFeed(walk, parts, new AbortController().signal);
  return { server, state, noted, step };
}

describe("a walk that is held back between two pages", () => {
  it("goes on later at the page where it stopped, and is no failure of the list", async () => {
    const { server, state, noted, step } = await threePages();
    state.passes = 2;
    expect(await step()).toEqual({ verdict: "snooze", untilMs: nowMs + 60_000 });
    expect(noted.parked).toMatchObject({ count: 2, fresh: 2, startedAtMs: nowMs });
    expect(noted.failed).toEqual([]);
    state.passes = 5;
    state.now = nowMs + 60_000;
    await step();
    expect(server.seen.map(({ url }) => url.replace(/^.*\?/, ""))).toEqual([
      "/odata/synchronizationactivities",
      "page=2",
      "page=3",
    ]);
    expect(noted.walked).toEqual({ startedAtMs: nowMs, count: 3 });
  });

  it("begins anew when it stopped too long ago", async () => {
    const { server, state, noted, step } = await threePages();
    state.passes = 1;
    await step();
    state.passes = 5;
    state.now = nowMs + 600_000;
    await step();
    expect(server.seen).toHaveLength(4);
    expect(noted.walked).toEqual({ startedAtMs: nowMs + 600_000, count: 3 });
  });

  it("sends nothing and says nothing while the service is left alone", async () => {
    const { server, state, noted, step } = await threePages();
    state.hold = { heldBy: "breaker", waitMs: 7_000 };
    expect(await step()).toEqual({ verdict: "snooze", untilMs: nowMs + 7_000 });
    expect([server.seen.length, noted.failed.length]).toEqual([0, 0]);
  });
});
