import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Follow } from "../../../src/config/policy-set.ts";
import type { SeenItem } from "../../../src/store/feed-mirror.ts";
import type { FeedStatus } from "../../../src/store/feed-store.ts";
import type { WaitingApprovals } from "../../../src/tasks/evidence.ts";
import { type RunEvidence, settleRun } from "../../../src/tasks/settle.ts";

// Everything that the feeds can show of a run that was sent at 1,000,000; instants in milliseconds
// around it.
const sentAtMs = 1_000_000;
const instant = fc.integer({ min: 0, max: 2_000_000 });
const maybe = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined });

const status: fc.Arbitrary<FeedStatus> = fc.record({
  seq: fc.integer({ min: 0, max: 9 }),
  generation: fc.constant(0),
  knowledge: fc.constant(undefined),
  shape: fc.constant(undefined),
  count: fc.integer({ min: 0, max: 9 }),
  walks: fc.integer({ min: 0, max: 9 }),
  walkBeganAtMs: maybe(instant),
  walkEndedAtMs: maybe(instant),
  grewAtMs: maybe(instant),
  wantedAtMs: maybe(instant),
  failingSinceMs: maybe(instant),
  unreadSinceMs: maybe(instant),
  unreadUntilMs: maybe(instant),
  failure: maybe(fc.constant("server: 500")),
});

const item: fc.Arbitrary<SeenItem> = fc.record({
  id: fc.string({ minLength: 1, maxLength: 3 }),
  fingerprint: fc.constant("f"),
  syncJobId: fc.constant("42"),
  startedAtMs: maybe(instant),
  finished: maybe(fc.boolean()),
  succeeded: maybe(fc.boolean()),
  label: maybe(fc.constant("Release")),
  firstSeq: fc.integer({ min: 1, max: 9 }),
  seq: fc.integer({ min: 1, max: 9 }),
  seenAtMs: maybe(instant),
});

const approvals: fc.Arbitrary<WaitingApprovals> = fc.record({
  waiting: fc.array(item, { maxLength: 2 }),
  ofSyncJob: fc.boolean(),
  readAtMs: instant,
});

const evidences: fc.Arbitrary<RunEvidence> = fc.record({
  activities: status,
  conflictDetails: status,
  ours: fc.array(item, { maxLength: 3 }),
  mayBeOurs: fc.array(item, { maxLength: 2 }),
  mayBeginUntilMs: fc.constantFrom(0, 1_000_000),
  confidence: fc.constantFrom("certain", "likely", "ambiguous"),
  others: fc.integer({ min: 0, max: 2 }),
  givenAway: fc.integer({ min: 0, max: 2 }),
  rivals: fc.integer({ min: 0, max: 2 }),
  attributable: fc.boolean(),
  endsMapped: fc.boolean(),
  possibleSeen: fc.boolean(),
  unnamed: fc.array(item, { maxLength: 2 }),
  hasBaseline: fc.boolean(),
  syncJobSeen: fc.boolean(),
  unjudgedSeen: fc.boolean(),
  newConflicts: maybe(fc.integer({ min: 0, max: 3 })),
  perhapsNewConflicts: fc.integer({ min: 0, max: 3 }),
  nowMs: fc.integer({ min: sentAtMs, max: 2_000_000 }),
  sentAtMs: fc.constant(sentAtMs),
  isAnswered: fc.boolean(),
  finishSeenAtMs: maybe(instant),
  approvals: maybe(approvals),
});

const follows: fc.Arbitrary<Follow> = fc.record({
  until: fc.constantFrom("settled", "quiet"),
  deadlineMs: fc.integer({ min: 1_000, max: 900_000 }),
  quietForMs: fc.integer({ min: 1_000, max: 100_000 }),
  unreadableForMs: fc.integer({ min: 1_000, max: 500_000 }),
  blockedAfterMs: maybe(fc.integer({ min: 1_000, max: 500_000 })),
  conflictsMax: maybe(fc.integer({ min: 0, max: 2 })),
});

const runs = { numRuns: 3_000 };

describe("whatever the feeds show of a run", () => {
  it("it succeeds only with evidence: final activities, or growth and then quiet", () => {
    fc.assert(
      fc.property(follows, evidences, (follow, evidence) => {
        const ending = settleRun(follow, evidence);
        if (ending?.status !== "succeeded" && ending?.status !== "conflicts") return;
        const isFinal = evidence.ours.length > 0 && evidence.ours.every(({ finished }) => finished === true);
        const lists = [evidence.activities, evidence.conflictDetails];
        const readUntilMs = Math.min(...lists.map(({ walkBeganAtMs = 0 }) => walkBeganAtMs));
        const stayedQuiet = evidence.possibleSeen && readUntilMs - sentAtMs >= follow.quietForMs;
        expect(isFinal || stayedQuiet).toBe(true);
        const isSure = evidence.ours.length > 0 && evidence.confidence !== "ambiguous";
        const own = isSure ? evidence.ours : [...evidence.ours, ...evidence.mayBeOurs, ...evidence.unnamed];
        if (evidence.endsMapped && !isFinal) expect(own.some(({ finished }) => finished === false)).toBe(false);
        expect(ending.evidence).not.toBe("none");
      }),
      runs,
    );
  });

  it("it fails only by an activity of its own, never by something unreadable", () => {
    fc.assert(
      fc.property(follows, evidences, (follow, evidence) => {
        const ending = settleRun(follow, evidence);
        if (ending?.status !== "failed") return;
        expect(evidence.ours.some(({ succeeded }) => succeeded === false)).toBe(true);
        const seen = { ...evidence, ours: evidence.ours.map((one) => ({ ...one, succeeded: undefined })) };
        expect(settleRun(follow, seen)?.status).not.toBe("failed");
      }),
      runs,
    );
  });

  it("it is blocked only by a new approval that still waits while nothing finishes", () => {
    fc.assert(
      fc.property(follows, evidences, (follow, evidence) => {
        const ending = settleRun(follow, evidence);
        if (ending?.status !== "blocked") return;
        const { waiting = [], readAtMs = 0, ofSyncJob = false } = evidence.approvals ?? {};
        const [first] = waiting;
        expect(waiting.length).toBeGreaterThan(0);
        expect(evidence.ours.some(({ finished }) => finished === true)).toBe(false);
        const readUntilMs = Math.min(readAtMs, evidence.activities.walkBeganAtMs ?? 0);
        const sinceMs = Math.max(sentAtMs, first?.seenAtMs ?? 0);
        expect(readUntilMs - sinceMs).toBeGreaterThanOrEqual(follow.blockedAfterMs ?? Number.POSITIVE_INFINITY);
        expect(ending.detail).toContain(first?.label ?? first?.id);
        const isDirect = ofSyncJob && evidence.attributable && evidence.isAnswered;
        expect(ending.evidence).toBe(isDirect ? "direct" : "inferred");
        expect(settleRun(follow, { ...evidence, approvals: undefined })?.status).not.toBe("blocked");
      }),
      runs,
    );
  });

  it("its approvals change only whether it is blocked, and a timed-out run's text", () => {
    fc.assert(
      fc.property(follows, evidences, (follow, evidence) => {
        const ending = settleRun(follow, evidence);
        if (ending?.status === "blocked") return;
        const without = settleRun(follow, { ...evidence, approvals: undefined });
        expect({ ...ending, detail: "" }).toEqual({ ...without, detail: "" });
      }),
      runs,
    );
  });

  it("it stays settled when time passes and the feeds show nothing else", () => {
    fc.assert(
      fc.property(follows, evidences, fc.integer({ min: 0, max: 900_000 }), (follow, evidence, laterMs) => {
        const ending = settleRun(follow, evidence);
        if (ending === undefined) return;
        const later = settleRun(follow, { ...evidence, nowMs: evidence.nowMs + laterMs });
        expect(later).toBeDefined();
        // What was not known may get known by quiet alone, also of a run that seemed blocked; what
        // was known is not taken back.
        if (ending.evidence !== "none" && ending.status !== "blocked") expect(later).toEqual(ending);
      }),
      runs,
    );
  });

  it("it is settled at the latest that long unread after its deadline", () => {
    fc.assert(
      fc.property(follows, evidences, (follow, evidence) => {
        const nowMs = sentAtMs + follow.deadlineMs + follow.unreadableForMs;
        expect(settleRun(follow, { ...evidence, nowMs })).toBeDefined();
      }),
      runs,
    );
  });

  it("it is timed out only where no end was seen that may be its own", () => {
    fc.assert(
      fc.property(follows, evidences, (follow, evidence) => {
        if (settleRun(follow, evidence)?.status !== "timed-out" || !evidence.attributable) return;
        const { ours, mayBeOurs, confidence } = evidence;
        const isEnded = ({ finished }: SeenItem) => finished === true;
        if (ours.length > 0) expect(ours.every(isEnded)).toBe(false);
        if (confidence === "ambiguous") expect([...ours, ...mayBeOurs].some(isEnded)).toBe(false);
      }),
      runs,
    );
  });

  it("it is timed out only when both lists were read from its deadline on", () => {
    fc.assert(
      fc.property(follows, evidences, (follow, evidence) => {
        if (settleRun(follow, evidence)?.status !== "timed-out") return;
        for (const { walkBeganAtMs } of [evidence.activities, evidence.conflictDetails])
          expect(walkBeganAtMs).toBeGreaterThanOrEqual(sentAtMs + follow.deadlineMs);
      }),
      runs,
    );
  });
});
