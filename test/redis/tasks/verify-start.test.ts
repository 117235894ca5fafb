// A start without an answer (src/tasks/verify.ts), condition by condition, on a real journal and
// feed book, at any time that a test wants: how long it is looked for, what confirms it, what shows
// that it did not happen, and when it is sent again.
import { describe, expect, it, vi } from "vitest";
import type { Follow, Policy } from "../../../src/config/policy-set.ts";
import type { ItemMapper } from "../../../src/feeds/mapping.ts";
import type { ItemFacts } from "../../../src/model/feed.ts";
import type { Task } from "../../../src/model/task.ts";
import type { StartDoubt } from "../../../src/store/start-entry.ts";
import { writeBaseline } from "../../../src/tasks/baseline.ts";
import { feedOf } from "../../../src/tasks/followed-lists.ts";
import { sendNow } from "../../../src/tasks/send-start.ts";
import { defaultTiming } from "../../../src/tasks/timing.ts";
import { verifyStart } from "../../../src/tasks/verify.ts";
import { type Answer, answeringService, reset, status } from "../../support/answering-service.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { told } from "../../support/stepped-task.ts";
import { testDeps } from "../../support/task-deps.ts";

const target = redisForTest();
let tasks = 0;

const store = await storeForTest(target);

interface Given {
  /** Of the missing answer; nobody has noted one where it is "silent". */
  readonly lost?: StartDoubt["kind"] | "silent";
  readonly follow?: Partial<Follow>;
  readonly onUnknown?: Policy["onUnknown"];
  /** What the mapping does not say. */
  readonly unknown?: string;
  readonly posts?: readonly Answer[];
  /** For how long from the first look on the service asks for patience. */
  readonly throttledForMs?: number;
  /** After so long the answer was lost, and the time-out is as long. */
  readonly requestMs?: number;
  /** Whether the lists were read right before the start. */
  readonly hasBaseline?: boolean;
  /** Whether an activity of the sync job was seen before it, under the id that comes again. */
  readonly isIdKnown?: boolean;
}

/** One activity that began at `began`, and what else it says. */
interface Found extends Partial<Pick<ItemFacts, "syncJobId" | "unread">> {
  readonly began?: number;
  readonly whole?: boolean;
}

const unread = "unknown none answer-lost";
const activity = { id: "a", fingerprint: "f", syncJobId: "42", finished: true, succeeded: true, label: undefined };
const verifyForMs = 30_000;
/** Where the operator vouches for 60 s: they run from when the request had left at the latest. */
const vouched = { appearsWithinMs: 60_000 };
const vouchedMs = 65_000;

/** A start that went out at instant 0; all times are milliseconds after it. */
async function fixture({
  lost = "answer-lost",
  follow,
  onUnknown = "verify",
  unknown,
  posts,
  throttledForMs,
  requestMs,
  hasBaseline = follow?.appearsWithinMs !== undefined,
  isIdKnown = false,
}: Given = {}) {
  tasks += 1;
  const id = `lost-${tasks}`;
  const task: Task = {
    ...{ v: 1, id, kind: "run", policy: "nightly", service: id, repository: null, target: "42" },
    ...{ slotMs: 0, origin: "manual", covers: [], startByMs: 9_999_999_999_999 },
  };
  const { asked, service } = await answeringService({ reads: [], writes: posts ?? [status(200)] });
  const reader: ItemMapper = {
    read: (): never => expect.fail("nothing is read here"),
    keyedBy: "",
    mappedBy: "",
    knows: (fact) => fact !== unknown,
    failures: () => ({ count: 0, last: "", item: "" }),
  };
  const requestWalk = vi.fn(async () => {});
  let nowMs = 0;
  let heldUntilMs: number | undefined;
  const deps = testDeps(store, {
    ...{ service: () => Object.assign(service, requestMs && { requestTimeoutMs: requestMs }) },
    ...{ itemMapper: () => reader, requestWalk },
    timing: { ...defaultTiming, verifyForMs },
    nowMs: async () => nowMs,
    denialOf: async () => {
      if (throttledForMs === undefined) return undefined;
      heldUntilMs ??= nowMs + throttledForMs;
      return heldUntilMs > nowMs ? { deniedBy: "throttle", waitMs: heldUntilMs - nowMs } : undefined;
    },
  });
  const { journal, feeds: book } = deps;
  const feed = feedOf(task, "activities");
  const { startByMs } = task;
  const before = isIdKnown ? [{ ...activity, fingerprint: "before", startedAtMs: 1 }] : [];
  await book.takeIn(feed, await book.status(feed), { items: before, sinceSeq: 0 });
  if (hasBaseline) {
    await journal.claim(id, "me");
    const baseline = writeBaseline({ activities: before.length, conflictDetails: 0 });
    await journal.beginSending(task, "me", { startByMs, baseline });
  } else await journal.tryBeginSending(task, "me", { startByMs, takesLease: false, notesFeed: true });
  const { sentAtMs = 0 } = (await journal.entry(id)) ?? {};
  if (lost !== "silent")
    await journal.noteDoubt(id, { kind: lost, detail: "lost", atMs: sentAtMs + (requestMs ?? 50) });
  const policy = testPolicy({ onUnknown, follow: { ...testPolicy().follow, ...follow } });
  return {
    ...{ asked, requestWalk },
    /** What a look at that time comes to. */
    at: async (afterMs: number) => {
      nowMs = sentAtMs + afterMs;
      const claim = { claimant: `at ${afterMs}`, entry: await journal.claim(id, `at ${afterMs}`) };
      const step = await verifyStart(task, policy, { deps, claim });
      return { short: told(step), ending: "ending" in step ? step.ending : undefined };
    },
    /** A walk that begins at that time, and finds one activity that began at `began`. */
    walk: async (afterMs: number, { began, whole = true, ...of }: Found = {}) => {
      const found = began === undefined ? [] : [{ ...activity, startedAtMs: sentAtMs + began, ...of } as ItemFacts];
      await book.takeIn(feed, await book.status(feed), { items: found, sinceSeq: 0 });
      await book.endWalk(feed, { startedAtMs: sentAtMs + afterMs, count: found.length, whole });
    },
    state: async () => (await journal.entry(id))?.state,
    /** The sender wakes: it has slept for too long to send. */
    wake: async () => {
      const sending = { service, isTooLate: () => true, nth: 1, sentAtMs, startedAtMs: sentAtMs };
      return told(await sendNow(task, { deps, claimant: "me", isEndedByAnswer: false }, sending));
    },
    /** From when on somebody wants a whole walk; NaN where nobody does. */
    wholeWantedMs: async () => ((await book.status(feed)).wholeWantedAtMs ?? Number.NaN) - sentAtMs,
  };
}

describe("a start whose worker may only be held up", () => {
  it("is confirmed at once by its activity, without waiting for its worker", async () => {
    const { at, walk, state, requestWalk } = await fixture({ lost: "silent" });
    await walk(100, { began: 50 });
    expect((await at(1_000)).short).toBe("snooze");
    expect(await state()).toBe("confirmed");
    expect(requestWalk).toHaveBeenCalledWith(expect.objectContaining({ list: "activities" }), { hurry: true });
  });

  it("has no activity once its worker wakes and has not sent it: that was another's", async () => {
    const { at, walk, state, wake, asked } = await fixture({ lost: "silent" });
    await walk(100, { began: 50 });
    expect((await at(40_000)).short).toBe("snooze");
    expect(await state()).toBe("confirmed");
    expect(await wake()).toBe("snooze");
    expect([await state(), asked]).toEqual(["claimed", []]);
  });
});

describe("a start without an answer is looked for", () => {
  it("until an activity can have appeared, whatever proves nothing is seen", async () => {
    const seen = await fixture();
    await seen.walk(verifyForMs, { began: 20_000 });
    expect((await seen.at(verifyForMs - 1)).short).toBe("snooze");
    expect((await seen.at(verifyForMs)).ending).toMatchObject({ status: "unknown", confidence: "ambiguous" });
    const untold = await fixture({ unknown: "finished" });
    expect((await untold.at(verifyForMs - 1)).short).toBe("snooze");
    expect((await untold.at(verifyForMs)).short).toBe(unread);
  });

  it("by a walk that began when that time was over, to the millisecond", async () => {
    for (const [early, becomes] of [
      [1, "snooze"],
      [0, unread],
    ] as const) {
      const { at, walk, asked } = await fixture();
      await walk(verifyForMs - early);
      expect((await at(verifyForMs + 10)).short).toBe(becomes);
      expect(asked).toEqual([]);
    }
  });

  // A sender that fell silent may have the answer, and wait for Redis to note it.
  it.each([
    ["answer-lost", 120_000, 0],
    ["crash", 125_000, 140_000],
    ["silent", 125_000, 140_000],
  ] as const)(
    "for as long as the service may still take it, or its sender bring it: %s",
    async (lost, untilMs, keptMs) => {
      const { at, walk, asked } = await fixture({ lost, requestMs: 120_000, onUnknown: "retry", posts: [reset] });
      await walk(untilMs - 1);
      expect((await at(untilMs)).short).toBe("snooze");
      await walk(untilMs);
      expect((await at(untilMs + keptMs - 1)).short).toBe("snooze");
      expect(asked).toEqual([]);
      expect((await at(untilMs + keptMs)).short).toBe("snooze");
      expect(asked).toEqual(["POST"]);
    },
  );

  it("no longer where an activity was seen that may be of it", async () => {
    const { at, walk } = await fixture();
    await walk(100, { began: 20_000 });
    expect((await at(verifyForMs + 10)).ending).toMatchObject({ status: "unknown", confidence: "ambiguous" });
  });

  it("for five minutes from the first late look on, however early the first one was", async () => {
    const { at } = await fixture();
    expect((await at(1_000)).short).toBe("snooze");
    expect((await at(3_600_000)).short).toBe("snooze");
    expect((await at(3_600_000 + 299_999)).short).toBe("snooze");
    expect((await at(3_600_000 + 300_000)).short).toBe(unread);
  });

  it("for as long after limits denied the look, up to the run's deadline", async () => {
    const patient = await fixture({ throttledForMs: 720_000, follow: { deadlineMs: 3_600_000 } });
    expect((await patient.at(verifyForMs)).short).toBe("snooze");
    expect((await patient.at(verifyForMs + 720_000 + 299_999)).short).toBe("snooze");
    expect((await patient.at(verifyForMs + 720_000 + 300_000)).short).toBe(unread);
    const bounded = await fixture({ throttledForMs: 720_000, follow: { deadlineMs: 100_000 } });
    expect((await bounded.at(verifyForMs)).short).toBe("snooze");
    expect((await bounded.at(100_000 + 299_999)).short).toBe("snooze");
    expect((await bounded.at(100_000 + 300_000)).short).toBe(unread);
  });

  it("in the whole list only where its absence would show something, and not before", async () => {
    const plain = await fixture();
    await plain.at(verifyForMs);
    expect(await plain.wholeWantedMs()).toBeNaN();
    const whole = await fixture({ follow: vouched });
    await whole.at(vouchedMs - 1);
    expect(await whole.wholeWantedMs()).toBeNaN();
    await whole.at(vouchedMs);
    expect(await whole.wholeWantedMs()).toBe(vouchedMs);
  });
});

describe("a start of which nothing appears", () => {
  it("is unknown, and not resent, without follow.appearsWithin", async () => {
    const { at, walk, asked } = await fixture();
    await walk(verifyForMs);
    const { ending } = await at(verifyForMs);
    expect(ending).toMatchObject({ status: "unknown", answerLost: true, detail: expect.stringContaining(" 30 s") });
    expect(asked).toEqual([]);
  });

  it.each([
    ["answer-lost", "answer-lost", true],
    ["crash", "answer-lost", true],
    ["server", "server-error", false],
    ["contract", "bad-answer", false],
  ] as const)("says why there is no good answer: %s", async (lost, reason, answerLost) => {
    const { at, walk } = await fixture({ lost });
    await walk(verifyForMs);
    expect((await at(verifyForMs)).ending).toMatchObject({ status: "unknown", evidence: "none", reason, answerLost });
  });

  it("did not happen when follow.appearsWithin passes: resent once, then not-started", async () => {
    const { at, walk, asked } = await fixture({ follow: vouched, posts: [reset] });
    await walk(vouchedMs);
    expect((await at(vouchedMs - 1)).short).toBe("snooze");
    expect(asked).toEqual([]);
    expect((await at(vouchedMs)).short).toBe("snooze");
    expect(asked).toEqual(["POST"]);
    // What is noted of the missing answer is of the first request: this one may be under way for as
    // long as it may take.
    await walk(vouchedMs + 10_000);
    expect((await at(vouchedMs + 399)).short).toBe("snooze");
    expect((await at(vouchedMs + 10_000)).ending).toMatchObject({
      ...{ status: "not-started", evidence: "inferred", sends: 2 },
      startedAtMs: undefined,
    });
    expect(asked).toEqual(["POST"]);
  });

  it("is accepted by the second answer, which is the end only without follow", async () => {
    for (const [until, becomes] of [
      ["accepted", "accepted direct answered"],
      ["settled", "snooze"],
    ] as const) {
      const { at, walk, asked } = await fixture({ follow: { ...vouched, until } });
      await walk(vouchedMs);
      expect((await at(vouchedMs)).short).toBe(becomes);
      expect(asked).toEqual(["POST"]);
    }
  });

  it("is no shorter vouched for than other starts are looked for", async () => {
    const { at, walk, asked } = await fixture({ follow: { appearsWithinMs: 0 } });
    await walk(verifyForMs);
    expect((await at(verifyForMs - 1)).short).toBe("snooze");
    expect(asked).toEqual([]);
  });

  it("is unknown, and not resent, when the list could not be read whole in time", async () => {
    const { at, walk, asked } = await fixture({ follow: vouched });
    await walk(vouchedMs, { whole: false });
    expect((await at(vouchedMs)).short).toBe("snooze");
    expect((await at(vouchedMs + 300_000)).short).toBe(unread);
    expect(asked).toEqual([]);
  });

  it.each([
    ["began hours before it, by a service's clock that lies behind", { began: -7_200_000 }, {}],
    ["is not seen, and the list was not read before it", {}, { hasBaseline: false }],
    ["does not tell its sync job yet", { began: 50, syncJobId: undefined, unread: ["syncJobId"] }, {}],
    ["cannot be told from another's", {}, { unknown: "finished" }],
    ["comes under a known id", { began: 50 }, { isIdKnown: true }],
  ])("is unknown, and not sent again, where an activity %s", async (_what, found, given) => {
    const { at, walk, asked } = await fixture({ ...given, follow: vouched });
    await walk(vouchedMs, found);
    expect((await at(vouchedMs)).ending).toMatchObject({ status: "unknown" });
    expect(asked).toEqual([]);
  });

  it("is resent where only an activity from hours before it has changed", async () => {
    const { at, walk, asked } = await fixture({ isIdKnown: true, follow: vouched, posts: [reset] });
    await walk(vouchedMs, { began: -7_200_000 });
    expect((await at(vouchedMs)).short).toBe("snooze");
    expect(asked).toEqual(["POST"]);
  });

  it("is not resent by onUnknown: retry where an activity may be of it", async () => {
    const { at, walk, asked } = await fixture({ onUnknown: "retry", posts: [reset] });
    await walk(100, { began: 20_000 });
    expect((await at(verifyForMs + 10)).ending).toMatchObject({ status: "unknown", confidence: "ambiguous" });
    expect(asked).toEqual([]);
  });

  it("is resent by onUnknown: retry without follow.appearsWithin", async () => {
    const { at, walk, asked } = await fixture({ onUnknown: "retry", posts: [reset] });
    await walk(verifyForMs);
    expect((await at(verifyForMs)).short).toBe("snooze");
    expect(asked).toEqual(["POST"]);
  });

  it("has an answer that is not known where more than one request went out", async () => {
    const { at, walk, asked } = await fixture({ lost: "server", onUnknown: "retry", posts: [reset] });
    for (const afterMs of [verifyForMs, 400_000]) {
      await walk(afterMs);
      expect((await at(afterMs)).short).toBe("snooze");
    }
    await walk(800_000);
    const unknown = { status: "unknown", reason: "server-error", answerLost: true, sends: 3 };
    expect((await at(800_000)).ending).toMatchObject(unknown);
    expect(asked).toEqual(["POST", "POST"]);
  });
});
