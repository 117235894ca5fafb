import { describe, expect, it } from "vitest";
import { readKnowledge } from "../../../src/feeds/strategy/choose-walk.ts";
import type { SeenItem } from "../../../src/store/feed-mirror.ts";
import type { FeedStatus } from "../../../src/store/feed-store.ts";
import { compareConflicts } from "../../../src/tasks/evidence.ts";
import { type BlockingEvidence, judgeBlocked } from "../../../src/tasks/settle.ts";
import { followWaits } from "../../support/policies.ts";

const minute = 60_000;
const activities: FeedStatus = {
  generation: 0,
  knowledge: undefined,
  shape: undefined,
  seq: 1,
  count: 1,
  walks: 5,
  walkBeganAtMs: 20 * minute,
  walkEndedAtMs: 20 * minute,
  grewAtMs: 11 * minute,
  wantedAtMs: 0,
  failingSinceMs: undefined,
  failure: undefined,
};
const item = (changes: Partial<SeenItem>): SeenItem => ({
  id: "7",
  fingerprint: "f",
  syncJobId: "42",
  startedAtMs: undefined,
  finished: undefined,
  succeeded: undefined,
  label: "Release of Contracts",
  firstSeq: 1,
  seq: 1,
  seenAtMs: 12 * minute,
  ...changes,
});

/**
 * Sent at minute 10; the approval appeared at 12, and both lists were last read at 20. Blocked
 * after 5 minutes.
 */
function judged(changes: Partial<BlockingEvidence>, blockedAfterMs: number | undefined = 5 * minute) {
  const evidence: BlockingEvidence = {
    activities,
    ours: [item({ finished: false, seenAtMs: 11 * minute })],
    attributable: true,
    newConflicts: 0,
    sentAtMs: 10 * minute,
    approvals: { waiting: [item({})], ofSyncJob: true, readAtMs: 20 * minute },
    ...changes,
  };
  const follow = { ...followWaits, blockedAfterMs, until: "settled", deadlineMs: 1, conflictsMax: undefined } as const;
  return judgeBlocked(follow, evidence);
}

const approvals = (changes: Partial<NonNullable<BlockingEvidence["approvals"]>>) => ({
  approvals: { waiting: [item({})], ofSyncJob: true, readAtMs: 20 * minute, ...changes },
});

describe("a run of which nothing has finished while an approval waits", () => {
  it("is blocked, and names the approval", () => {
    expect(judged({})).toEqual({
      status: "blocked",
      evidence: "direct",
      reason: "approval-waiting",
      detail: "approval Release of Contracts (7) waits, and nothing has finished since",
      newConflicts: 0,
    });
  });

  it("is blocked, inferred, where the approval's owner is unknown, and says so", () => {
    expect(judged(approvals({ ofSyncJob: false }))).toMatchObject({
      evidence: "inferred",
      detail: "approval Release of Contracts (7) waits, and nothing has finished since; it may be of another sync job",
    });
  });

  it("names the first approval and counts the others", () => {
    const waiting = [item({ id: "7", label: undefined }), item({ id: "8" }), item({ id: "9" })];
    expect(judged(approvals({ waiting }))?.detail).toMatch(/^approval 7 waits, and 2 more,/);
  });

  it("is not blocked before the approval has waited that long in what was read", () => {
    expect(judged({}, 8 * minute)).toBeDefined();
    expect(judged({}, 8 * minute + 1)).toBeUndefined();
    expect(judged(approvals({ readAtMs: 17 * minute }))).toBeDefined();
    expect(judged(approvals({ readAtMs: 17 * minute - 1 }))).toBeUndefined();
    expect(judged({ activities: { ...activities, walkBeganAtMs: 17 * minute - 1 } })).toBeUndefined();
  });

  it("is not blocked by a walk that left pages out where its activity may have ended", () => {
    const knowledge = JSON.stringify({ ...readKnowledge(undefined), order: "tail", openToEnd: 11 });
    const inPart = { ...activities, knowledge };
    expect(judged({ activities: { ...inPart, wholeWalkBeganAtMs: 17 * minute - 1 } })).toBeUndefined();
    expect(judged({ activities: { ...inPart, wholeWalkBeganAtMs: 17 * minute } })).toBeDefined();
  });

  it("is not blocked while its own activities appear; others' count if unattributed", () => {
    expect(judged({ ours: [item({ finished: false, seenAtMs: 16 * minute })] })).toBeUndefined();
    const busy = { activities: { ...activities, grewAtMs: 19 * minute } };
    expect(judged(busy)).toBeDefined();
    expect(judged({ ...busy, ...approvals({ ofSyncJob: false }) })).toBeUndefined();
    expect(judged({ ...busy, attributable: false })).toBeUndefined();
  });

  it("is not blocked by a final own activity, nor while activities are unreadable", () => {
    expect(judged({ ours: [item({ finished: false }), item({ finished: true })] })).toBeUndefined();
    expect(judged({ activities: { ...activities, failingSinceMs: 19 * minute } })).toBeUndefined();
  });

  it("goes on when no approval waits any more, or approvals are not read", () => {
    expect(judged(approvals({ waiting: [] }))).toBeUndefined();
    expect(judged({ approvals: undefined })).toBeUndefined();
  });
});

describe("the conflicts from before a run", () => {
  it.each([
    { before: 5, after: 5, appeared: 0, goneConflicts: 0, stillConflicts: 5 },
    { before: 5, after: 4, appeared: 2, goneConflicts: 3, stillConflicts: 2 },
    { before: 0, after: 3, appeared: 3, goneConflicts: 0, stillConflicts: 0 },
    { before: 2, after: 0, appeared: 0, goneConflicts: 2, stillConflicts: 0 },
  ])("$before then $after, $appeared new: $goneConflicts gone, $stillConflicts still", (counts) => {
    const { before, after, appeared, ...change } = counts;
    expect(compareConflicts(before, after, appeared)).toEqual(change);
  });

  it("are not spoken of when the numbers contradict each other", () => {
    expect(compareConflicts(0, 1, 2)).toBeUndefined();
    expect(compareConflicts(2, 3, 0)).toBeUndefined();
  });
});
