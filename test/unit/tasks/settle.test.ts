import { describe, expect, it } from "vitest";
import { readKnowledge } from "../../../src/feeds/strategy/choose-walk.ts";
import type { SeenItem } from "../../../src/store/feed-mirror.ts";
import type { FeedStatus } from "../../../src/store/feed-store.ts";
import { finishedActivities, type RunEvidence, settleRun } from "../../../src/tasks/settle.ts";
import { followWaits } from "../../support/policies.ts";

const status: FeedStatus = {
  generation: 0,
  knowledge: undefined,
  shape: undefined,
  seq: 1,
  count: 1,
  walks: 1,
  walkBeganAtMs: 2_000,
  walkEndedAtMs: 2_100,
  grewAtMs: 1_500,
  wantedAtMs: 0,
  failingSinceMs: undefined,
  failure: undefined,
};
const activity = (id: string, succeeded: boolean): SeenItem => ({
  id,
  fingerprint: id,
  syncJobId: "42",
  startedAtMs: undefined,
  finished: true,
  succeeded,
  label: undefined,
  firstSeq: 1,
  seenAtMs: undefined,
  seq: 1,
});

function evidenceOf(changes: Partial<RunEvidence>): RunEvidence {
  return {
    activities: status,
    conflictDetails: status,
    ours: [],
    mayBeOurs: [],
    mayBeginUntilMs: 0,
    confidence: "likely",
    others: 0,
    givenAway: 0,
    rivals: 0,
    attributable: true,
    endsMapped: true,
    possibleSeen: true,
    unnamed: [],
    hasBaseline: true,
    syncJobSeen: true,
    unjudgedSeen: false,
    newConflicts: 0,
    perhapsNewConflicts: 0,
    nowMs: 3_000,
    sentAtMs: 1_000,
    isAnswered: true,
    finishSeenAtMs: 1_600,
    approvals: undefined,
    ...changes,
  };
}

function settled(changes: Partial<RunEvidence>) {
  const follow = { ...followWaits, until: "settled", deadlineMs: 60_000, conflictsMax: undefined } as const;
  return settleRun(follow, evidenceOf(changes));
}

describe("a run of which only the growth of a list tells", () => {
  const readUntil = (walkBeganAtMs: number): Partial<RunEvidence> => {
    const read = { ...status, walkBeganAtMs };
    return { attributable: false, endsMapped: false, activities: read, conflictDetails: read, nowMs: 900_000 };
  };

  it("is over when a walk shows quiet for that long, not when the list was unread", () => {
    expect(settled({ ...readUntil(31_499), nowMs: 50_000 })).toBeUndefined();
    expect(settled({ ...readUntil(31_500), nowMs: 50_000 })).toMatchObject({
      status: "succeeded",
      evidence: "inferred",
    });
    expect(settled({ ...readUntil(31_499) })).toMatchObject({ status: "unknown" });
  });

  it("has not succeeded where one of its activities says so, unless that goes on", () => {
    const quiet = readUntil(31_500);
    const of = (changes: Partial<SeenItem>) => ({ ...quiet, ours: [{ ...activity("a", false), ...changes }] });
    const detail = "the activities stayed quiet, and a did not succeed";
    expect(settled(of({}))).toMatchObject({ status: "failed", evidence: "inferred", reason: "run-failed", detail });
    const unknown = { status: "unknown", evidence: "none", reason: "no-evidence", detail };
    expect(settled({ ...of({}), confidence: "ambiguous" })).toMatchObject(unknown);
    expect(settled(of({ finished: undefined }))).toMatchObject(unknown);
    expect(settled(of({ finished: false }))).toMatchObject({ status: "succeeded", evidence: "inferred" });
    // Of which sync job it is, the mapping does not say.
    expect(settled({ ...quiet, unnamed: [activity("a", false)] })).toMatchObject({
      ...unknown,
      detail: `${detail}, and of which sync job it is cannot be told`,
    });
    expect(settled({ ...quiet, unnamed: [activity("a", true)] })).toMatchObject({ status: "succeeded" });
    expect(settled(of({ succeeded: undefined, unread: ["succeeded"] }))).toMatchObject({
      ...unknown,
      detail: "the activities stayed quiet, and whether a succeeded cannot be read",
    });
  });
});

describe("a run of which an activity goes on while the lists are quiet", () => {
  const read = { ...status, walkBeganAtMs: 40_000 };
  const quiet = { activities: read, conflictDetails: read, nowMs: 50_000 };
  const running = { ...activity("a", false), finished: false };
  const until = { ...followWaits, until: "quiet", deadlineMs: 60_000, conflictsMax: undefined } as const;
  const by = (changes: Partial<RunEvidence>) => settleRun(until, evidenceOf({ ...quiet, ...changes }))?.status;

  it("is not over where the mapping says so of it, or of one that may be of it", () => {
    expect(by({ ours: [running] })).toBeUndefined();
    expect(by({ mayBeOurs: [running] })).toBeUndefined();
    expect(by({ ours: [activity("b", true)], mayBeOurs: [running], confidence: "ambiguous" })).toBeUndefined();
    expect(by({ attributable: false, unnamed: [running] })).toBeUndefined();
    const late = { ...read, walkBeganAtMs: 61_000 };
    expect(by({ ours: [running], activities: late, conflictDetails: late, nowMs: 61_000 })).toBe("timed-out");
  });

  it("is not over by what was given to another start, whatever is untold of older ones", () => {
    expect(by({ givenAway: 1, others: 1, unjudgedSeen: true })).toBeUndefined();
  });

  it("is over beside one that is of another start", () => {
    expect(by({ ours: [activity("b", true)], mayBeOurs: [running], confidence: "certain" })).toBe("succeeded");
  });
});

describe("a run whose lists cannot be read", () => {
  const [unreadableForMs, dayMs] = [300_000, 86_400_000];
  const failing = (unreadSinceMs: number, unreadUntilMs: number) =>
    ({ activities: { ...status, unreadSinceMs, unreadUntilMs, failure: "503" }, finishSeenAtMs: undefined }) as const;

  it("is unknown once they have failed for five minutes of its time", () => {
    const run = { sentAtMs: dayMs, possibleSeen: false, ...failing(dayMs - 60_000, dayMs + unreadableForMs) };
    expect(settled({ ...run, nowMs: dayMs + unreadableForMs - 1 })).toBeUndefined();
    expect(settled({ ...run, nowMs: dayMs + unreadableForMs })).toMatchObject({
      status: "unknown",
      detail: "the feeds cannot be read: 503",
    });
  });

  it("waits on where they failed once, and were not asked for since", () => {
    const run = { sentAtMs: dayMs, possibleSeen: false, ...failing(dayMs, dayMs + 5_000) };
    expect(settled({ ...run, nowMs: dayMs + unreadableForMs + 1 })).toBeUndefined();
  });

  it("has failed where its activity says so and only its conflicts are unread", () => {
    const { activities: conflictDetails } = failing(dayMs, dayMs + unreadableForMs);
    const run = { conflictDetails, sentAtMs: dayMs, finishSeenAtMs: dayMs + 1_000 };
    const of = (succeeded: boolean, afterMs: number) =>
      settled({ ...run, ours: [activity("a", succeeded)], nowMs: dayMs + afterMs });
    expect(of(false, unreadableForMs - 1)).toBeUndefined();
    expect(of(false, unreadableForMs)).toMatchObject({
      ...{ status: "failed", evidence: "direct", reason: "run-failed", newConflicts: undefined },
      detail: "activity a did not succeed; its conflicts could not be read",
    });
    expect(of(true, unreadableForMs)).toMatchObject({ status: "unknown", newConflicts: 0 });
  });

  it("waits for its own walks where they failed before it only", () => {
    const run = { sentAtMs: dayMs, possibleSeen: false, ...failing(0, 1_000) };
    expect(settled({ ...run, nowMs: dayMs + 1_000 })).toBeUndefined();
  });
});

describe("a run whose activities may be of another start too", () => {
  const confidence = "ambiguous";

  it("succeeds by inference only, when all of them succeeded", () => {
    const ours = [activity("a", true), activity("b", true)];
    expect(settled({ ours, confidence })).toMatchObject({ status: "succeeded", evidence: "inferred", confidence });
    expect(settled({ ours })).toMatchObject({ status: "succeeded", evidence: "direct", confidence: "likely" });
  });

  it("failed by inference only, when all of them failed", () => {
    const ours = [activity("a", false), activity("b", false)];
    expect(settled({ ours, confidence })).toMatchObject({ status: "failed", evidence: "inferred" });
    expect(settled({ ours })).toMatchObject({ status: "failed", evidence: "direct" });
  });

  it("is unknown when some failed and some did not", () => {
    const ours = [activity("a", true), activity("b", false)];
    expect(settled({ ours, confidence })).toMatchObject({ status: "unknown", evidence: "none", reason: "no-evidence" });
    expect(settled({ ours })).toMatchObject({ status: "failed", evidence: "inferred" });
  });

  // The two may be the other way round.
  it("is unknown when its own succeeded and a simultaneous start's did not", () => {
    const [ours, mayBeOurs] = [[activity("a", true)], [activity("b", false)]];
    expect(settled({ ours, mayBeOurs, confidence })).toMatchObject({ status: "unknown", evidence: "none" });
    expect(settled({ ours: mayBeOurs, mayBeOurs: ours, confidence })).toMatchObject({ status: "unknown" });
    expect(settled({ ours, mayBeOurs: ours, confidence })).toMatchObject({ status: "succeeded", evidence: "inferred" });
    expect(settled({ ours, mayBeOurs })).toMatchObject({ status: "succeeded", evidence: "direct" });
  });

  // That one may have been started by hand.
  it("has failed by inference only, when one of several likely ones did not succeed", () => {
    const ours = [activity("a", true), activity("b", false)];
    expect(settled({ ours })).toMatchObject({
      status: "failed",
      evidence: "inferred",
      detail: "1 of 2 activities did not succeed: b",
    });
    expect(settled({ ours: [activity("a", false), activity("b", false)] })).toMatchObject({
      evidence: "direct",
      detail: "activity a did not succeed",
    });
  });

  it("waits for those, too, until its deadline; then it is unknown whose end was seen", () => {
    const running = { ...activity("b", true), finished: false, succeeded: undefined };
    const both = { ours: [activity("a", true)], mayBeOurs: [running], confidence } as const;
    expect(settled(both)).toBeUndefined();
    const read = { ...status, walkBeganAtMs: 61_000 };
    const overdue = { ...both, nowMs: 61_001, activities: read, conflictDetails: read };
    const unknown = {
      status: "unknown",
      reason: "no-evidence",
      detail: "not settled within its deadline: an activity finished that may be of it or of another start",
    };
    expect(settled(overdue)).toMatchObject(unknown);
    expect(settled({ ...overdue, ours: [running], mayBeOurs: [activity("a", true)] })).toMatchObject(unknown);
    // Each start leaves an activity, and the one that was seen may have been given to the wrong
    // one.
    const none = { ...overdue, ours: [], confidence: undefined };
    expect(settled({ ...none, mayBeOurs: [activity("a", true)] })).toMatchObject(unknown);
    const timedOut = { status: "timed-out", reason: "deadline" };
    expect(settled({ ...none, mayBeOurs: [running] })).toMatchObject(timedOut);
    expect(settled({ ...overdue, ours: [running], mayBeOurs: [] })).toMatchObject(timedOut);
    // Several that are likely its own: the run has ended when the last of them has.
    const likely = { ...overdue, ours: [activity("a", true), running], mayBeOurs: [], confidence: "likely" } as const;
    expect(settled(likely)).toMatchObject(timedOut);
  });

  it("is finished when the last of them is: what it left behind is read after that", () => {
    const running = { ...activity("b", true), finished: false, succeeded: undefined };
    const both = { attributable: true, ours: [activity("a", true)], mayBeOurs: [running] } as const;
    expect(finishedActivities({ ...both, confidence })).toBeUndefined();
    expect(finishedActivities({ ...both, mayBeOurs: [activity("b", true)], confidence })).toBeDefined();
    expect(finishedActivities({ ...both, confidence: "likely" })).toBeDefined();
  });

  it("says how many activities are of others", () => {
    expect(settled({ ours: [activity("a", true)], others: 2 })?.detail).toBe(
      "1 activity finished; 2 more are of others",
    );
  });
});

describe("a run that only an activity confirms, since no good answer came", () => {
  it("ends by inference: a start by hand looks the same", () => {
    const of = (succeeded: boolean) => settled({ ours: [activity("a", succeeded)], isAnswered: false });
    expect(of(true)).toMatchObject({ status: "succeeded", evidence: "inferred", confidence: "likely" });
    expect(of(false)).toMatchObject({ status: "failed", evidence: "inferred" });
  });
});

describe("a run whose deadline has passed", () => {
  const running = { ...activity("a", true), finished: false, succeeded: undefined };
  const readAt = (walkBeganAtMs: number | undefined, more: Partial<FeedStatus> = {}) => {
    const read = { ...status, walkBeganAtMs, ...more };
    return { ours: [running], activities: read, conflictDetails: read };
  };

  it("is timed out when both lists were read from then on: else it may be over", () => {
    expect(settled({ ...readAt(61_000), nowMs: 62_000 })).toMatchObject({ status: "timed-out", reason: "deadline" });
    expect(settled({ ...readAt(60_999), nowMs: 62_000 })).toBeUndefined();
    expect(settled({ ...readAt(61_000), conflictDetails: status, nowMs: 62_000 })).toBeUndefined();
    expect(settled({ ...readAt(undefined), nowMs: 62_000 })).toBeUndefined();
  });

  it("says where a waiting approval would not have been seen", () => {
    const approvals = { waiting: [], ofSyncJob: false, readAtMs: 0, unseenWhy: "were not read before it" };
    expect(settled({ ...readAt(61_000), approvals, nowMs: 62_000 })?.detail).toBe(
      "not settled within its deadline: 1 activity appeared, not all finished; approvals were not read before it, so a waiting one is not seen",
    );
  });

  it("is not timed out once it was seen finished: its conflicts are waited for", () => {
    const finished = { ...readAt(61_000), ours: [activity("a", true)], finishSeenAtMs: 61_500 };
    expect(settled({ ...finished, nowMs: 62_000 })).toBeUndefined();
    const conflictDetails = { ...status, walkBeganAtMs: 61_500 };
    expect(settled({ ...finished, conflictDetails, nowMs: 62_000 })).toMatchObject({ status: "succeeded" });
    expect(settled({ ...finished, nowMs: 361_000 })).toMatchObject({ status: "unknown" });
  });

  it("waits once it was seen finished beside starts whose activities may yet begin", () => {
    const beside = { confidence: "ambiguous", mayBeginUntilMs: 80_000, finishSeenAtMs: 61_500 } as const;
    const finished = { ...readAt(61_600), ours: [activity("a", true)], ...beside };
    expect(settled({ ...finished, nowMs: 62_000 })).toBeUndefined();
    // By the walk, not by the clock: what began since the last one is not seen yet.
    expect(settled({ ...finished, nowMs: 80_000 })).toBeUndefined();
    const read = { ...finished, ...readAt(80_000), ours: finished.ours, nowMs: 80_100 };
    expect(settled(read)).toMatchObject({ status: "succeeded", evidence: "inferred" });
    expect(settled({ ...finished, nowMs: 361_000 })).toMatchObject({ status: "unknown", reason: "no-evidence" });
  });

  it("is unknown when the lists were unread for that long, and says since when", () => {
    expect(settled({ ...readAt(31_000), nowMs: 360_999 })).toBeUndefined();
    expect(settled({ ...readAt(31_000), nowMs: 361_000 })).toMatchObject({
      status: "unknown",
      evidence: "none",
      reason: "no-evidence",
      detail:
        "not settled within its deadline, and the feeds have not been read completely since 1970-01-01T00:00:31.000Z",
    });
    expect(settled({ ...readAt(undefined), nowMs: 361_000 })?.detail).toBe(
      "not settled within its deadline, and the feeds have never been read completely",
    );
    // A walk that left open items out has read less.
    const knowledge = JSON.stringify({ ...readKnowledge(undefined), order: "tail", openToEnd: 11 });
    const partly = { ...readAt(360_000, { wholeWalkBeganAtMs: 31_000, knowledge }), nowMs: 361_000 };
    expect(settled(partly)?.detail).toContain("have not been read completely since 1970-01-01T00:00:31.000Z");
  });

  it("is looked for as long from its first check on, where all were away before", () => {
    const hourMs = 3_600_000;
    const late = { ...readAt(31_000), overdueSinceMs: hourMs };
    expect(settled({ ...late, nowMs: hourMs })).toBeUndefined();
    expect(settled({ ...late, nowMs: hourMs + 299_999 })).toBeUndefined();
    expect(settled({ ...late, nowMs: hourMs + 300_000 })).toMatchObject({ status: "unknown" });
  });

  it("waits longer for a list that takes long to read, since that is read less often", () => {
    const slow = readAt(31_000, { walkTookMs: 60_000 });
    expect(settled({ ...slow, nowMs: 780_999 })).toBeUndefined();
    expect(settled({ ...slow, nowMs: 781_000 })).toMatchObject({ status: "unknown" });
  });

  it("is unknown where the service's clock alone keeps activities from being its own", () => {
    const none = { ...readAt(61_000), ours: [], confidence: undefined, nowMs: 62_000 };
    expect(settled({ ...none, others: 2 })).toMatchObject({
      ...{ status: "unknown", evidence: "none", reason: "no-evidence" },
      detail:
        "not settled within its deadline: 2 activities of the sync job appeared, and by the service's clock none is its own: compare it with Redis's",
    });
    const unseen = { status: "timed-out", detail: "not settled within its deadline: no new activity of it was seen" };
    expect(settled(none)).toMatchObject(unseen);
    expect(settled({ ...none, others: 1, rivals: 1 })).toMatchObject(unseen);
  });

  it("is unknown where it cannot be read whether its activity finished", () => {
    const untold = { ...running, id: "b", finished: undefined, unread: ["finished"] };
    const of = (more: Partial<RunEvidence>) => settled({ ...readAt(61_000), nowMs: 62_000, ...more });
    const unknown = {
      ...{ status: "unknown", evidence: "none", reason: "no-evidence" },
      detail: "not settled within its deadline: whether b finished cannot be read",
    };
    expect(of({ ours: [untold] })).toMatchObject(unknown);
    expect(of({ ours: [untold, activity("a", true)] })).toMatchObject(unknown);
    expect(of({ ours: [running], mayBeOurs: [untold], confidence: "ambiguous" })).toMatchObject(unknown);
    // Another one that is surely its own goes on.
    expect(of({ ours: [untold, running] })).toMatchObject({ status: "timed-out" });
  });

  it("is unknown where one appeared that may be its own, and none is known to be", () => {
    const of = (ours: readonly SeenItem[]) =>
      settled({ ...readAt(61_000), ours, others: 1, rivals: 1, unjudgedSeen: true, nowMs: 62_000 });
    expect(of([])).toMatchObject({
      status: "unknown",
      detail: "not settled within its deadline: an activity appeared, and whether it is its own cannot be told",
    });
    expect(of([running])).toMatchObject({ status: "timed-out" });
    const undated = { ours: [], attributable: false, possibleSeen: false, unjudgedSeen: true, nowMs: 62_000 };
    expect(settled({ ...readAt(61_000), ...undated })).toMatchObject({ status: "unknown" });
    const ended = { ...undated, unjudgedSeen: false };
    for (const more of [{ unnamed: [activity("b", true)] }, { ours: [running, activity("c", true)] }])
      expect(settled({ ...readAt(61_000), ...ended, ...more })).toMatchObject({ status: "unknown" });
  });

  it("says that nothing tells of it where nothing was read, not a missing mapping", () => {
    expect(
      settled({ ...readAt(61_000), ours: [], attributable: false, possibleSeen: false, nowMs: 62_000 })?.detail,
    ).toBe("not settled within its deadline: nothing in the feeds shows whether it ended");
  });
});

describe("a run before which the conflicts were unreadable", () => {
  const ours = { ours: [activity("1", true)], newConflicts: undefined };

  it("has not succeeded when conflicts were seen since the last read: maybe its own", () => {
    const ending = settled({ ...ours, perhapsNewConflicts: 2 });
    expect(ending).toMatchObject({ status: "unknown", evidence: "none" });
    expect(ending?.detail).toContain("2 conflicts may be of it or older");
  });

  it("has succeeded when there are none", () => {
    expect(settled({ ...ours, newConflicts: 0, perhapsNewConflicts: 0 })).toMatchObject({ status: "succeeded" });
  });
});

describe("a run by quiet", () => {
  const read = { ...status, grewAtMs: 2_000, walkBeganAtMs: 59_000 };
  const quiet = { attributable: false, activities: read, conflictDetails: read, nowMs: 59_500, newConflicts: 0 };

  it("says with its new conflicts how it ended, which nothing told", () => {
    expect(settled({ ...quiet, newConflicts: 3 })?.detail).toMatch(
      /^the activities grew and then stayed quiet with 3 new conflicts \(at most/,
    );
  });

  it("is not told by an activity of another start", () => {
    expect(settled(quiet)).toMatchObject({ status: "succeeded", evidence: "inferred" });
    expect(settled({ ...quiet, others: 1, givenAway: 1 })).toBeUndefined();
    // By a clock that lags no other start is known.
    expect(settled({ ...quiet, others: 1 })).toMatchObject({ status: "succeeded" });
    const near = { others: 1, givenAway: 1, mayBeOurs: [activity("a", false)], confidence: undefined };
    expect(settled({ ...quiet, ...near })).toMatchObject({ status: "unknown", evidence: "none" });
  });
});

describe("a run of whose activity it cannot be read whether it succeeded", () => {
  const untold = { ...activity("a", true), succeeded: undefined, unread: ["succeeded"] };

  it("is unknown, also with conflicts, unless another one of it failed", () => {
    for (const newConflicts of [0, 3])
      expect(settled({ ours: [untold, activity("b", true)], newConflicts })).toMatchObject({
        ...{ status: "unknown", evidence: "none", reason: "no-evidence" },
        detail: "2 activities finished, and whether a succeeded cannot be read",
      });
    expect(settled({ ours: [untold, activity("b", false)] })).toMatchObject({ status: "failed" });
  });

  it("has succeeded by inference where the mapping says nothing of it", () => {
    expect(settled({ ours: [{ ...untold, unread: undefined }] })).toMatchObject({
      ...{ status: "succeeded", evidence: "inferred" },
      detail: "1 activity finished, success is assumed",
    });
    // Conflicts are seen, and not assumed.
    expect(settled({ ours: [{ ...untold, unread: undefined }], newConflicts: 3 })).toMatchObject({
      ...{ status: "conflicts", evidence: "direct" },
    });
  });
});

describe("a run during which conflicts appeared whose sync job cannot be read", () => {
  it("has not succeeded where with them there may be more than allowed", () => {
    const ending = settled({ ours: [activity("1", true)], newConflicts: 0, perhapsNewConflicts: 2 });
    expect(ending).toMatchObject({
      ...{ status: "unknown", evidence: "none" },
      detail: "finished; 2 conflicts may be of it: of a sync job that cannot be read, or back under a known id",
    });
  });
});

describe("a run beside another one of the same seconds", () => {
  const ambiguous = { confidence: "ambiguous", ours: [activity("1", false)], mayBeginUntilMs: 20_000 } as const;

  it("is not judged by its first activity while another may begin, maybe its own", () => {
    const walkedAt = (walkBeganAtMs: number) => ({ activities: { ...status, walkBeganAtMs }, nowMs: 30_000 });
    expect(settled({ ...ambiguous, ...walkedAt(19_999) })).toBeUndefined();
    expect(settled({ ...ambiguous, ...walkedAt(20_000) })).toMatchObject({ status: "failed", evidence: "inferred" });
  });
});
