import { describe, expect, it } from "vitest";
import { createItemMapper } from "../../../src/feeds/mapping.ts";
import { walkFeed } from "../../../src/feeds/walk-feed.ts";
import type { Verdict } from "../../../src/model/verdict.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import type { FeedStatus } from "../../../src/store/feed-store.ts";
import { TestLog } from "../../support/test-log.ts";

const nothingRead: FeedStatus = {
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

/**
 * One walk at 10,000,000 of a list that nobody can reach, by one who is in a hurry. Answers its
 * verdict and how often it failed.
 */
async function walkAfter(failedAtMs: number | undefined): Promise<{ verdict: Verdict; failures: number }> {
  let failures = 0;
  const service = new SyncService({ baseUrl: "http://127.0.0.1:1", token: staticToken("x") });
  const book = {
    beginAnew: async () => {},
    takeIn: async () => [],
    keepKnowledge: async () => {},
    markLogged: async () => {},
    denyWalk: async () => {},
    discoveredSince: async () => [],
    keepShape: async () => {},
    endWalk: async () => {},
    failWalk: async () => {
      failures += 1;
    },
    status: async () => ({ ...nothingRead, failedAtMs }),
    waiting: async () => 1,
  };
  const verdict = await walkFeed(
    { v: 1, kind: "feed-walk", service: "main", repository: null, list: "activities" },
    {
      feeds: book,
      nowMs: async () => 10_000_000,
      service: () => service,
      denialOf: async () => undefined,
      itemMapper: () => createItemMapper("activities"),
      pace: { gapMs: 1_000, fastestMs: 5_000, slowestMs: 60_000 },
      log: new TestLog(),
    },
    new AbortController().signal,
  );
  service.close();
  return { verdict, failures };
}

describe("a walk that failed", () => {
  it("is not repeated sooner than the fastest pace, however often it is asked for", async () => {
    expect(await walkAfter(9_995_001)).toEqual({ verdict: { verdict: "snooze", untilMs: 10_000_001 }, failures: 0 });
    expect(await walkAfter(9_995_000)).toMatchObject({ failures: 1 });
    expect(await walkAfter(undefined)).toMatchObject({ failures: 1 });
  });
});
