import { describe, expect, it } from "vitest";
import type { SeenItem } from "../../../src/store/feed-mirror.ts";
import { attributeTo, type StartFacts } from "../../../src/tasks/attribution.ts";

const sentAtMs = 1_795_228_200_000;
const start: StartFacts = { taskId: "ours", sentAtMs, acceptedByMs: sentAtMs + 1_000, isOnlyRequestAnswered: true };
const lost: StartFacts = { ...start, isOnlyRequestAnswered: false };

/**
 * An activity that began so many seconds after the start; without a number its mapping does not say
 * when.
 */
function activity(id: string, seconds?: number): SeenItem {
  return {
    id,
    fingerprint: id,
    syncJobId: "42",
    startedAtMs: seconds === undefined ? undefined : sentAtMs + seconds * 1_000,
    finished: true,
    succeeded: true,
    label: undefined,
    firstSeq: 1,
    seenAtMs: undefined,
    seq: 1,
  };
}

interface Given {
  readonly facts?: StartFacts;
  readonly activities: readonly SeenItem[];
  /** Whose each activity is by the journal; ours unless said. */
  readonly owners?: Readonly<Record<string, string>>;
  /** Other starts in flight: seconds after ours. */
  readonly rivals?: Readonly<Record<string, number>>;
  /** What Redis has forgotten: from and until, seconds after ours. */
  readonly losses?: readonly (readonly [number, number])[];
}

function attributed({ facts = start, activities, owners = {}, rivals = {}, losses = [] }: Given) {
  const others = Object.entries(rivals).map(([task, seconds]) => [task, [sentAtMs + seconds * 1_000]] as const);
  const result = attributeTo(facts, activities, {
    taskOf: new Map(activities.map(({ id }) => [id, owners[id] ?? "ours"])),
    inFlight: new Map([["ours", [sentAtMs]], ...others]),
    losses: losses.map(([from, until]) => ({ fromMs: sentAtMs + from * 1_000, untilMs: sentAtMs + until * 1_000 })),
  });
  return { ...result, ours: result.ours.map(({ id }) => id), mayBeOurs: result.mayBeOurs.map(({ id }) => id) };
}

describe("the activities of a start", () => {
  it("are certain when it was answered and one began right then", () => {
    expect(attributed({ activities: [activity("a", 0.3)] })).toEqual({
      ours: ["a"],
      confidence: "certain",
      others: 0,
      givenAway: 0,
      rivals: 0,
      mayBeOurs: [],
      mayBeginUntilMs: 0,
    });
  });

  it("are likely when the answer got lost and one began right then", () => {
    expect(attributed({ facts: lost, activities: [activity("a", 0.3)] }).confidence).toBe("likely");
  });

  it.each([
    [[-30, -21], "certain"],
    [[-30, -19], "ambiguous"],
    [[-5, 5], "ambiguous"],
    [[19, 40], "ambiguous"],
    [[22, 40], "certain"],
  ] as const)(
    "are ambiguous when Redis forgot the starts beside it: from, until %j s after, %s",
    (loss, confidence) => {
      expect(attributed({ activities: [activity("a", 0.3)], losses: [loss] }).confidence).toBe(confidence);
    },
  );

  it("are likely when there is only one with unknown beginning", () => {
    expect(attributed({ activities: [activity("a")] }).confidence).toBe("likely");
    expect(attributed({ facts: lost, activities: [activity("a")] }).confidence).toBe("likely");
  });

  it("are ambiguous for a lost start when first seen long after, beginning unknown", () => {
    const seen = (minutes: number) => ({ ...activity("a"), seenAtMs: sentAtMs + minutes * 60_000 });
    expect(attributed({ facts: lost, activities: [seen(20)] }).confidence).toBe("likely");
    expect(attributed({ facts: lost, activities: [seen(21)] }).confidence).toBe("ambiguous");
    expect(attributed({ activities: [seen(21)] }).confidence).toBe("likely");
  });

  it("are ambiguous when several have no known beginning: a trigger may have begun one", () => {
    expect(attributed({ activities: [activity("a"), activity("b")] })).toMatchObject({
      ours: ["a", "b"],
      confidence: "ambiguous",
    });
  });

  it("are ambiguous when one began long after the answer: perhaps by hand", () => {
    expect(attributed({ activities: [activity("a", 40)] }).confidence).toBe("ambiguous");
    expect(attributed({ activities: [activity("a", 0.3), activity("b", 40)] })).toMatchObject({
      ours: ["a", "b"],
      confidence: "ambiguous",
    });
  });

  it("are without those that began before it, once one began right at it", () => {
    expect(attributed({ activities: [activity("by-hand", -20), activity("a", 0.3)] })).toEqual({
      ours: ["a"],
      confidence: "certain",
      others: 1,
      givenAway: 0,
      rivals: 0,
      mayBeOurs: [],
      mayBeginUntilMs: 0,
    });
  });

  it("may yet begin while fewer are seen than starts of the same seconds are in flight", () => {
    const rivals = { theirs: 4 };
    const untilMs = sentAtMs + 24_000;
    expect(attributed({ activities: [activity("a", 0.3)], rivals }).mayBeginUntilMs).toBe(untilMs);
    const both = [activity("a", 0.3), activity("b", 4.2)];
    expect(attributed({ activities: both, owners: { b: "theirs" }, rivals }).mayBeginUntilMs).toBe(0);
    expect(attributed({ activities: [activity("a", 0.3)], rivals: { long_ago: -60 } }).mayBeginUntilMs).toBe(0);
  });

  it("may be another start's, but not for ever where their beginning is unknown", () => {
    const seen = (id: string, minutes: number) => ({ ...activity(id), seenAtMs: sentAtMs + minutes * 60_000 });
    const activities = [activity("a"), seen("soon", 5), seen("much-later", 60)];
    const owners = { soon: "theirs", "much-later": "theirs" };
    expect(attributed({ activities, owners, rivals: { theirs: 1 } })).toMatchObject({ mayBeOurs: ["soon"] });
  });

  it("may begin a little before it by the service's clock, which is ambiguous", () => {
    expect(attributed({ activities: [activity("a", -20)] })).toMatchObject({ ours: ["a"], confidence: "ambiguous" });
    expect(attributed({ activities: [activity("a", -301)] })).toMatchObject({ ours: [], confidence: undefined });
  });

  it("are without those of other starts", () => {
    const activities = [activity("a", 0.3), activity("b", 60.2)];
    expect(attributed({ activities, owners: { b: "other" }, rivals: { other: 60 } })).toEqual({
      ours: ["a"],
      confidence: "likely",
      others: 1,
      givenAway: 1,
      rivals: 1,
      mayBeOurs: [],
      mayBeginUntilMs: 0,
    });
  });

  it("are ambiguous when another start went out within the same seconds", () => {
    const activities = [activity("a", 0.3), activity("b", 2.3)];
    expect(attributed({ activities, owners: { b: "other" }, rivals: { other: 2 } })).toMatchObject({
      ours: ["a"],
      confidence: "ambiguous",
      mayBeOurs: ["b"],
    });
    const timeless = [activity("a"), activity("b")];
    expect(attributed({ activities: timeless, owners: { b: "other" }, rivals: { other: 2 } })).toMatchObject({
      mayBeOurs: ["b"],
    });
  });

  // That request may have gone out at the end of its 5 s.
  it("are ambiguous after a lost start whose late request may still begin a run", () => {
    // The other one was permitted 5.1 s before ours, sent 4.9 s later and began then: nearer to our
    // permission than to its own.
    const lateOne = activity("late", -0.2);
    expect(attributed({ facts: lost, activities: [lateOne], rivals: { other: -5.1 } })).toMatchObject({
      ours: ["late"],
      confidence: "ambiguous",
    });
    expect(attributed({ facts: lost, activities: [activity("a", 0.3)], rivals: { other: -19 } }).confidence).toBe(
      "ambiguous",
    );
    expect(attributed({ facts: lost, activities: [activity("a", 0.3)], rivals: { other: -20 } }).confidence).toBe(
      "likely",
    );
  });

  it("are not those of a start that was permitted only after they began", () => {
    expect(attributed({ facts: lost, activities: [activity("a", 0.3)], rivals: { later: 2.4 } }).confidence).toBe(
      "likely",
    );
    expect(attributed({ facts: lost, activities: [activity("a", 0.3)], rivals: { later: 2.2 } }).confidence).toBe(
      "ambiguous",
    );
  });

  it("are all that no other start has, for a start that is no longer in flight", () => {
    const taskOf = new Map([["b", "other"]]);
    const inFlight = new Map([["other", [sentAtMs - 60_000]]]);
    const { ours } = attributeTo(start, [activity("a", 0.3), activity("b", -60)], { taskOf, inFlight, losses: [] });
    expect(ours.map(({ id }) => id)).toEqual(["a"]);
  });
});
