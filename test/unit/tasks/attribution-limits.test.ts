// The limits of what is attributed to a start (src/tasks/attribution.ts), each on both of its
// sides, to the millisecond.
import { describe, expect, it } from "vitest";
import type { SeenItem } from "../../../src/store/feed-mirror.ts";
import { attributeTo, type StartFacts } from "../../../src/tasks/attribution.ts";

const sentAtMs = 1_795_228_200_000;
/** Answered a second after it was sent. */
const start: StartFacts = { taskId: "ours", sentAtMs, acceptedByMs: sentAtMs + 1_000, isOnlyRequestAnswered: true };

/** An activity that began, or else was first seen, so many milliseconds after the start. */
function activity(id: string, { began, seen }: { began?: number; seen?: number } = {}): SeenItem {
  return {
    ...{ id, fingerprint: id, syncJobId: "42", finished: true, succeeded: true, label: undefined },
    ...{ firstSeq: 1, seq: 1 },
    startedAtMs: began === undefined ? undefined : sentAtMs + began,
    seenAtMs: seen === undefined ? undefined : sentAtMs + seen,
  };
}

interface Given {
  readonly activities: readonly SeenItem[];
  /** Whose each activity is; ours unless said, nobody's where it is "". */
  readonly owners?: Readonly<Record<string, string>>;
  /** When another start was sent, each time, in milliseconds after ours. */
  readonly rival?: number | readonly number[];
  /** When ours was sent again, in milliseconds after its first request. */
  readonly again?: number;
  readonly loss?: readonly [number, number];
  readonly isOnlyRequestAnswered?: boolean;
}

function attributed({ activities, owners = {}, rival, again, loss, isOnlyRequestAnswered = true }: Given) {
  const taskOf = new Map(activities.map(({ id }) => [id, owners[id] ?? "ours"] as const).filter(([, task]) => task));
  const inFlight = new Map([["ours", again === undefined ? [sentAtMs] : [sentAtMs, sentAtMs + again]]]);
  if (rival !== undefined)
    inFlight.set(
      "theirs",
      [rival].flat().map((afterMs) => sentAtMs + afterMs),
    );
  const losses = loss === undefined ? [] : [{ fromMs: sentAtMs + loss[0], untilMs: sentAtMs + loss[1] }];
  const facts = { ...start, acceptedByMs: start.acceptedByMs + (again ?? 0), isOnlyRequestAnswered };
  const result = attributeTo(facts, activities, { taskOf, inFlight, losses });
  return { ...result, ours: result.ours.map(({ id }) => id), mayBeOurs: result.mayBeOurs.map(({ id }) => id) };
}

const confidence = (given: Given) => attributed(given).confidence;

describe("an activity is surely of an answered start", () => {
  it.each([
    [-2_001, "ambiguous"],
    [-2_000, "certain"],
    [16_000, "certain"],
    [16_001, "ambiguous"],
  ] as const)("when it began from two seconds before it to fifteen after the answer: %i ms, %s", (began, becomes) => {
    expect(confidence({ activities: [activity("a", { began })] })).toBe(becomes);
  });

  it.each([
    [-19_001, "likely"],
    [-19_000, "ambiguous"],
    [3_000, "ambiguous"],
    [3_001, "likely"],
  ] as const)("when it is not as well of another one's that was sent %i ms after it: %s", (rival, becomes) => {
    expect(confidence({ activities: [activity("a", { began: 1_000 })], rival })).toBe(becomes);
  });

  it.each([
    [[-90_000, -19_001], "likely"],
    [[-90_000, -19_000], "ambiguous"],
    [[-90_000, 500, 90_000], "ambiguous"],
    [[-90_000, 90_000], "likely"],
    [[3_000, 90_000], "ambiguous"],
  ] as const)("when it is not of any request of one that was sent again: %j, %s", (rival, becomes) => {
    expect(confidence({ activities: [activity("a", { began: 1_000 })], rival })).toBe(becomes);
  });

  it.each([
    [[-90_000, -20_001], "certain"],
    [[-90_000, -20_000], "ambiguous"],
    [[21_000, 90_000], "ambiguous"],
    [[21_001, 90_000], "certain"],
  ] as const)("when Redis has lost nothing about it: %j, %s", (loss, becomes) => {
    expect(confidence({ activities: [activity("a", { began: 300 })], loss })).toBe(becomes);
  });

  it("when it is the only one: of two that began right then, one may be a trigger's", () => {
    const two = [activity("a", { began: 300 }), activity("b", { began: 400 })];
    expect(confidence({ activities: two })).toBe("likely");
  });

  it("without its beginning, only where no other start is in flight", () => {
    expect(confidence({ activities: [activity("a")] })).toBe("likely");
    expect(confidence({ activities: [activity("a")], rival: -3_600_000 })).toBe("ambiguous");
  });
});

describe("an activity is of a start at all", () => {
  it.each([
    [-300_001, []],
    [-300_000, ["a"]],
  ] as const)("when it began five minutes before it at most: %i ms", (began, ours) => {
    expect(attributed({ activities: [activity("a", { began })] }).ours).toEqual(ours);
  });

  it.each([
    [-2_001, ["b"]],
    [-2_000, ["a", "b"]],
  ] as const)("when it began at most two seconds before, beside a later one: %i ms", (began, ours) => {
    expect(attributed({ activities: [activity("a", { began }), activity("b", { began: 0 })] }).ours).toEqual(ours);
  });

  it("not when it was given to no start, where this one is known to be in flight", () => {
    const nobodys = { activities: [activity("a", { began: 300 })], owners: { a: "" } };
    expect(attributed(nobodys)).toMatchObject({ ours: [], mayBeOurs: [], confidence: undefined, others: 1 });
  });
});

describe("an activity that another start was given may be of this one", () => {
  const mayBe = (one: SeenItem) =>
    attributed({ activities: [activity("a", { began: 300 }), one], owners: { b: "theirs" }, rival: 1_000 }).mayBeOurs;

  it("when it was first seen at most twenty minutes after, with unknown beginning", () => {
    expect(mayBe(activity("b", { seen: 1_200_000 }))).toEqual(["b"]);
    expect(mayBe(activity("b", { seen: 1_200_001 }))).toEqual([]);
  });

  it("when it began right at it", () => {
    expect(mayBe(activity("b", { began: 16_000 }))).toEqual(["b"]);
    expect(mayBe(activity("b", { began: 16_001 }))).toEqual([]);
  });
});

it.each([
  [20_000, 40_000],
  [20_001, 0],
  [-20_000, 20_000],
  [-20_001, 0],
] as const)("its own may yet begin where a start followed within twenty seconds: %i ms", (rival, afterMs) => {
  const { mayBeginUntilMs } = attributed({ activities: [activity("a", { began: 300 })], rival });
  expect(mayBeginUntilMs).toBe(afterMs === 0 ? 0 : sentAtMs + afterMs);
});

it.each([
  [[-90_000, -20_000], 80_000],
  [[-90_000, -20_001], 0],
  [[-90_000, 70_000], 90_000],
  [[80_000], 100_000],
  [[80_001], 0],
] as const)("sent again, its own may yet begin after the newest request of both: %j", (rival, afterMs) => {
  const { mayBeginUntilMs } = attributed({ activities: [activity("a", { began: 300 })], rival, again: 60_000 });
  expect(mayBeginUntilMs).toBe(afterMs === 0 ? 0 : sentAtMs + afterMs);
});

it("its own may yet begin while each activity may be of another request of one start", () => {
  const activities = [activity("a", { began: 300 }), activity("b", { began: 60_300 })];
  const given = { activities, again: 60_010 };
  expect(attributed({ ...given, rival: [5, 60_005] }).mayBeginUntilMs).toBe(sentAtMs + 80_010);
  expect(attributed({ ...given, rival: 60_005 }).mayBeginUntilMs).toBe(0);
});
