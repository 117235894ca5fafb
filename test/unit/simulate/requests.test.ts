import { describe, expect, it } from "vitest";
import { FeedWalks, RequestMeter } from "../../../src/simulate/request-meter.ts";
import { followWaits } from "../../support/policies.ts";
import { everyMinutes, simulateMinutes } from "../../support/simulation.ts";

describe("the walks of a followed repository", () => {
  const walksOf = (runs: readonly (readonly [number, number | undefined])[], walkMs = 0) => {
    const walks = new FeedWalks(walkMs);
    for (const [beginSeconds, endSeconds] of runs)
      walks.begin(beginSeconds * 1_000, endSeconds === undefined ? undefined : endSeconds * 1_000);
    walks.advance(Number.MAX_SAFE_INTEGER);
    return walks.walks;
  };

  it("one before the start, then the reader's pace, one at the end, one for conflicts", () => {
    // At 0, 5, 10, 15 (shows the end), 16.
    expect(walksOf([[0, 12]])).toBe(5);
    // At 0, 5, 10, 15, 20, 25 s, then waits of a quarter of the quiet: 31.25, 39.06 (shows the
    // end), 40.06.
    expect(walksOf([[0, 35]])).toBe(9);
  });

  it("one for a run that is not followed", () => {
    expect(walksOf([[0, undefined]])).toBe(1);
  });

  it("are shared by the runs of a repository, and a new one brings the pace back", () => {
    expect(
      walksOf([
        [0, 12],
        [0, 12],
      ]),
    ).toBe(5);
    // 0, 5, then a fresh one at 7 for the second run, 12 (shows the first one's end), 13, 18, 23
    // (shows the second one's), 24.
    expect(
      walksOf([
        [0, 12],
        [7, 20],
      ]),
    ).toBe(8);
  });

  it("take at most a fifth of the time where a list is long", () => {
    // Walks of 10 s: 0–10, 60–70 (shows the end), and one more not before 120.
    expect(walksOf([[0, 55]], 10_000)).toBe(3);
  });
});

describe("requests a service gets", () => {
  it("counts starts, pages of feeds, polls by what they read, and masks", () => {
    const meter = new RequestMeter({ pages: 3, requestMs: 0, showsActive: () => false });
    const accepted = { ...followWaits, until: "accepted", deadlineMs: 60_000, conflictsMax: undefined } as const;
    const until = { ...accepted, appearsWithinMs: 1_000 };
    const policies = [
      everyMinutes(30, { name: "starts", action: { kind: "run", syncJobs: [1, 2] }, follow: until }),
      everyMinutes(60, { name: "unread", action: { kind: "run", syncJobs: [9] }, follow: accepted, repository: "FI" }),
      everyMinutes(60, { name: "wakes", action: { kind: "activate", syncJobs: [3] } }),
      everyMinutes(60, { name: "masks", action: { kind: "run", fromMasks: {} }, follow: until, repository: "Sales" }),
      everyMinutes(10, { name: "counts", action: { kind: "poll", list: "approvals", expect: "count <= 20" } }),
      everyMinutes(20, { name: "reads", action: { kind: "poll", list: "triggers", expect: "items.size() > 0" } }),
    ];
    for (const event of simulateMinutes({ policies, to: 60 })) meter.add(event);
    // Feeds: HR at minute 30 and 60, Sales at 60, FI never; two lists of three pages each.
    expect(Object.fromEntries(meter.requests())).toEqual({
      main: { starts: 2 * 2 + 1 + 1 + 1, feeds: 3 * 2 * 3, polls: 6 + 3 * 3, masks: 2 * 3 },
    });
  });

  it("counts one reading of masks that stand on one page: nothing can shift there", () => {
    const meter = new RequestMeter({ pages: 1, requestMs: 0, showsActive: () => false });
    const policies = [everyMinutes(30, { action: { kind: "run", fromMasks: {} } })];
    for (const event of simulateMinutes({ policies, to: 60 })) meter.add(event);
    expect(meter.requests().get("main")).toMatchObject({ masks: 2 });
  });

  it("counts a read per activation where the mapping knows an active sync job", () => {
    const meter = new RequestMeter({ pages: 3, requestMs: 0, showsActive: (service) => service === "main" });
    const policies = [everyMinutes(30, { name: "wakes", action: { kind: "activate", syncJobs: [3] } })];
    for (const event of simulateMinutes({ policies, to: 60 })) meter.add(event);
    expect(meter.requests().get("main")).toMatchObject({ starts: 2 * 2, polls: 0 });
  });

  it("counts approvals once before a short run, and during a long one, unless `off`", () => {
    const feedsOf = (blockedAfterMs: number | undefined, run: number) => {
      const meter = new RequestMeter({ pages: 3, requestMs: 0, showsActive: () => false });
      const follow = { ...followWaits, until: "settled", deadlineMs: 3_600_000, conflictsMax: undefined } as const;
      const policies = [everyMinutes(30, { follow: { ...follow, blockedAfterMs } })];
      for (const event of simulateMinutes({ policies, to: 60, run })) meter.add(event);
      return meter.requests().get("main")?.feeds ?? 0;
    };
    // Two runs, at minute 30 and 60: a walk of three pages before each. The others keep their two
    // lists.
    expect(feedsOf(300_000, 0.5)).toBe(feedsOf(undefined, 0.5) + 2 * 3);
    // Followed as the two lists are: half as many again.
    expect(feedsOf(300_000, 10)).toBe(feedsOf(undefined, 10) * 1.5);
  });
});
