import { describe, expect, it } from "vitest";
import type { FeedWalk } from "../../../src/model/feed.ts";
import { WalkDebouncer } from "../../../src/queue/walk-debouncer.ts";

const activities: FeedWalk = { v: 1, kind: "feed-walk", service: "main", repository: "HR", list: "activities" };
const approvals: FeedWalk = { ...activities, list: "approvals" };

function setUp(fails: () => boolean = () => false) {
  const asked: string[] = [];
  const failures: unknown[] = [];
  const sleeping: (() => void)[] = [];
  const requests = new WalkDebouncer({
    ask: async (walk, { hurry }) => {
      if (fails()) throw new Error("Redis is away");
      asked.push(`${walk.list}${hurry ? " in a hurry" : ""}`);
    },
    clock: {
      sleep: (_durationMs, signal) =>
        new Promise((resolve) => {
          sleeping.push(resolve);
          signal?.addEventListener("abort", () => resolve());
        }),
    },
    onFailure: (error) => failures.push(error),
  });
  const passTime = async () => {
    for (const wake of sleeping.splice(0)) wake();
    await new Promise(setImmediate);
  };
  return { requests, asked, failures, passTime };
}

describe("requests for walks", () => {
  it("pass the first one on at once, and those that follow soon as one", async () => {
    const { requests, asked, passTime } = setUp();
    await requests.walk(activities, { hurry: false });
    expect(asked).toEqual(["activities"]);
    await requests.walk(activities, { hurry: false });
    await requests.walk(activities, { hurry: true });
    await requests.walk(activities, { hurry: false });
    expect(asked).toEqual(["activities"]);
    await passTime();
    expect(asked).toEqual(["activities", "activities in a hurry"]);
    await passTime();
    await passTime();
    expect(asked).toEqual(["activities", "activities in a hurry"]);
    await requests.walk(activities, { hurry: false });
    expect(asked).toEqual(["activities", "activities in a hurry", "activities"]);
  });

  it("keep feeds apart", async () => {
    const { requests, asked } = setUp();
    await requests.walk(activities, { hurry: false });
    await requests.walk(approvals, { hurry: true });
    expect(asked).toEqual(["activities", "approvals in a hurry"]);
  });

  it("fail for the one who asked, and are reported when they were for several", async () => {
    let isAway = true;
    const { requests, asked, failures, passTime } = setUp(() => isAway);
    await expect(requests.walk(activities, { hurry: true })).rejects.toThrow("Redis is away");
    await requests.walk(activities, { hurry: true });
    await passTime();
    expect(failures).toHaveLength(1);
    isAway = false;
    await requests.walk(activities, { hurry: true });
    await passTime();
    expect(asked).toEqual(["activities in a hurry"]);
  });

  it("are let go of when closed", async () => {
    const { requests, asked, failures, passTime } = setUp();
    await requests.walk(activities, { hurry: false });
    await requests.walk(activities, { hurry: true });
    requests.close();
    await passTime();
    expect(asked).toEqual(["activities"]);
    expect(failures).toEqual([]);
  });
});
