// What the feeds show of a start (src/tasks/evidence.ts), on a real feed book: also when a walk
// ends right between two of its reads.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { totalOfSyncJob } from "../../../src/feeds/list-totals.ts";
import type { ItemMapper } from "../../../src/feeds/mapping.ts";
import type { ItemFacts } from "../../../src/model/feed.ts";
import type { Task } from "../../../src/model/task.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { FeedStore } from "../../../src/store/feed-store.ts";
import { History } from "../../../src/store/history.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { inFlightKey } from "../../../src/store/start-entry.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { stepActivate } from "../../../src/tasks/activate.ts";
import { baselineSince, writeBaseline } from "../../../src/tasks/baseline.ts";
import { appearedSince } from "../../../src/tasks/evidence.ts";
import { feedOf } from "../../../src/tasks/followed-lists.ts";
import type { ProcessDependencies } from "../../../src/tasks/process-task.ts";
import { stepRun } from "../../../src/tasks/run.ts";
import { defaultTiming } from "../../../src/tasks/timing.ts";
import { verifyStart } from "../../../src/tasks/verify.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { testDeps } from "../../support/task-deps.ts";
import { TestLog } from "../../support/test-log.ts";

const target = redisForTest();

const store = await storeForTest(target);
const journal = new StartJournal(store);
const book = new FeedStore(store);

const taskOf = (id: string): Task => ({
  v: 1,
  id,
  kind: "run",
  policy: "nightly",
  service: id,
  repository: null,
  target: "42",
  slotMs: 0,
  origin: "manual",
  covers: [],
  startByMs: 9_999_999_999_999,
});

/** Looks and walks of a lost start come after the time in which its request may leave. */
let laterMs = 10_000;
const nowMs = async () => (await redisTimeMs(store)) + laterMs;

/** A mapping that says all but `unknown`. */
function partsFor({
  unknown,
  readsFrom = book,
}: {
  unknown?: string;
  readsFrom?: FeedStore;
} = {}): ProcessDependencies {
  const reader: ItemMapper = {
    read: () => item("none", undefined),
    keyedBy: "",
    mappedBy: "",
    knows: (fact) => fact !== unknown,
    failures: () => ({ count: 0, last: "", item: "" }),
  };
  return testDeps(store, {
    itemMapper: () => reader,
    journal,
    feeds: readsFrom,
    timing: { ...defaultTiming, verifyForMs: 0 },
    nowMs,
  });
}

const item = (id: string, startedAtMs: number | undefined): ItemFacts => ({
  id,
  fingerprint: "f",
  syncJobId: "42",
  startedAtMs,
  finished: true,
  succeeded: true,
  label: undefined,
});

const walk = async (task: Task, list: "activities" | "conflictDetails", items: readonly ItemFacts[], whole = true) => {
  const startedAtMs = await nowMs();
  const status = await book.status(feedOf(task, list));
  await book.takeIn(feedOf(task, list), status, { items, sinceSeq: status.seq });
  const totals = list === "activities" ? undefined : new Map([[totalOfSyncJob("42"), items.length]]);
  await book.endWalk(feedOf(task, list), { startedAtMs, count: items.length, whole, totals });
};

/** A start that waited for no walk, of whose answer nobody says anything. */
async function startSilently(task: Task, takesLease = true) {
  const intent = { startByMs: task.startByMs, takesLease, notesFeed: true };
  const answer = await journal.tryBeginSending(task, "me", intent);
  const sentAtMs = answer !== undefined && "sentAtMs" in answer ? answer.sentAtMs : Number.NaN;
  return { sentAtMs, entry: await journal.claim(task.id, "me") };
}

/** A start that waited for no walk, and whose answer got lost. */
async function startUnread(task: Task) {
  const { sentAtMs } = await startSilently(task);
  await journal.noteDoubt(task.id, { kind: "answer-lost", detail: "reset", atMs: sentAtMs + 50 });
  return { sentAtMs, entry: await journal.claim(task.id, "me") };
}

const verify = (task: Task, deps: ProcessDependencies, entry: Awaited<ReturnType<typeof startUnread>>["entry"]) =>
  verifyStart(task, testPolicy(), { deps, claim: { claimant: "me", entry } });

describe("a start that another worker has sent and says nothing of", () => {
  const giveUp = testPolicy({ onUnknown: "give-up" });
  const patience = { ...defaultTiming, verifyForMs: 60_000 };

  it("is left to that worker where nothing can be looked up: it may only be held up", async () => {
    const [task, patient] = [taskOf("held-up"), { ...partsFor(), timing: patience }];
    const { entry } = await startSilently(task);
    const untilMs = (entry.lastSentAtMs ?? 0) + 60_000;
    const claim = { claimant: "another", entry };
    expect(await stepActivate(task, patient, claim)).toEqual({ verdict: "snooze", untilMs });
    expect(await verifyStart(task, giveUp, { deps: patient, claim })).toEqual({ verdict: "snooze", untilMs });
    expect((await journal.entry(task.id))?.doubt).toBeUndefined();
  });

  it("ends as unknown after that, or at once when that worker noted no answer", async () => {
    const [task, deps] = [taskOf("gone"), partsFor()];
    const patient = { ...deps, timing: patience };
    const { entry } = await startSilently(task);
    const unknown = { verdict: "complete", ending: { status: "unknown", reason: "answer-lost" } };
    expect(await stepActivate(task, deps, { claimant: "another", entry })).toMatchObject(unknown);
    const noted = { claimant: "another", entry: await journal.claim(task.id, "another") };
    const detail =
      "no worker noted an answer, or whether the request went out: its worker died or hung, or Redis was out";
    expect(noted.entry.doubt).toMatchObject({ kind: "crash", detail });
    expect(await stepActivate(task, patient, noted)).toMatchObject(unknown);
    expect(await verifyStart(task, giveUp, { deps: patient, claim: noted })).toMatchObject(unknown);
  });
});

it("a start of which no worker noted an answer is logged to be in doubt, once", async () => {
  const [task, log] = [taskOf("logged"), new TestLog()];
  const { entry } = await startSilently(task);
  for (const afterMs of [0, 1_000]) {
    const deps = { ...partsFor(), log, nowMs: async () => (await nowMs()) + afterMs };
    await verifyStart(task, testPolicy({ onUnknown: "give-up" }), { deps, claim: { claimant: "another", entry } });
  }
  expect(log.named("task.in-doubt")).toMatchObject([{ level: "warn", taskId: task.id, kind: "crash" }]);
});

describe("a lost answer of a start for which nothing was read before", () => {
  it("is not confirmed by an activity older than the start, in a long unread feed", async () => {
    const task = taskOf("older");
    await walk(task, "activities", [item("known", 1_000)]);
    const { sentAtMs, entry } = await startUnread(task);
    expect(entry.knownSeq).toBe(1);
    await walk(task, "activities", [item("days ago", sentAtMs - 86_400_000), item("just before", sentAtMs - 1_001)]);
    const deps = partsFor();
    expect(await appearedSince(task, deps, entry)).toMatchObject({
      ours: [],
      confidence: undefined,
      possibleSeen: false,
    });
    expect(await verify(task, deps, entry)).toMatchObject({ verdict: "complete", ending: { status: "unknown" } });
    expect((await journal.entry(task.id))?.state).toBe("sending");
  });

  it("is not confirmed by what was known before, whatever it says of its begin", async () => {
    const task = taskOf("known");
    await walk(task, "activities", [item("from tomorrow", 9_999_999_999_999)]);
    const { entry } = await startUnread(task);
    await walk(task, "activities", [item("from tomorrow", 9_999_999_999_999)]);
    expect((await appearedSince(task, partsFor(), entry)).ours).toEqual([]);
  });

  it("is not confirmed where the mapping does not say when activities began", async () => {
    const task = taskOf("timeless");
    const { entry } = await startUnread(task);
    await walk(task, "activities", [item("whenever", undefined)]);
    const deps = partsFor({ unknown: "startedAt" });
    expect(await appearedSince(task, deps, entry)).toMatchObject({ ours: [], attributable: false });
    const step = await verify(task, deps, entry);
    const detail =
      "reset; the mapping does not say whose an activity is: map syncJobId, finished and startedAt of activities";
    expect(step).toMatchObject({ ending: { status: "unknown", detail } });
  });

  it("is searched by a whole walk of its own before giving up, also when late", async () => {
    const task = taskOf("late-look");
    const { sentAtMs, entry } = await startUnread(task);
    await expect.poll(async () => (await redisTimeMs(store)) > sentAtMs).toBe(true);
    const deps = partsFor();
    expect(await verify(task, deps, entry)).toMatchObject({ verdict: "snooze" });
    // A walk that fails all the time is not waited for without end.
    const { follow } = testPolicy();
    const impatient = testPolicy({ follow: { ...follow, unreadableForMs: 0 } });
    await expect
      .poll(() => verifyStart(task, impatient, { deps, claim: { claimant: "me", entry } }))
      .toMatchObject({
        ending: { status: "unknown", detail: "reset; the activities could not be read in time" },
      });
    await walk(task, "activities", [item("its own", sentAtMs + 1)]);
    await verify(task, deps, entry);
    expect((await journal.entry(task.id))?.state).toBe("confirmed");
  });

  it("is waited for as long where all workers were down for an hour after it was noted", async () => {
    const task = taskOf("outage");
    const { sentAtMs, entry } = await startUnread(task);
    const later = (ms: number) => ({ ...partsFor(), nowMs: async () => sentAtMs + 3_600_000 + ms });
    expect(await verify(task, later(0), entry)).toMatchObject({ verdict: "snooze" });
    expect(await verify(task, later(299_000), entry)).toMatchObject({ verdict: "snooze" });
    expect(await verify(task, later(301_000), entry)).toMatchObject({ ending: { status: "unknown" } });
  });

  it("is not surely shown by an activity that began much later", async () => {
    const task = taskOf("later");
    const { sentAtMs, entry } = await startUnread(task);
    await walk(task, "activities", [item("an hour later", sentAtMs + 3_600_000)]);
    expect(await verify(task, partsFor(), entry)).toMatchObject({ ending: { status: "unknown" } });
  });

  it("is not surely shown by an activity begun between worker death and detection", async () => {
    const task = taskOf("late-notice");
    const { sentAtMs } = await startSilently(task);
    await journal.noteDoubt(task.id, { kind: "crash", detail: "died", atMs: sentAtMs + 3_600_000 });
    const entry = await journal.claim(task.id, "me");
    await walk(task, "activities", [item("somebody's", sentAtMs + 1_800_000)]);
    expect(await verify(task, partsFor(), entry)).toMatchObject({
      ending: { status: "unknown", confidence: "ambiguous" },
    });
  });

  it("is confirmed by an activity that began right after the permission", async () => {
    const task = taskOf("ours");
    const { sentAtMs, entry } = await startUnread(task);
    await walk(task, "activities", [item("old", sentAtMs - 5_000), item("ours", sentAtMs + 20)]);
    const { ours, confidence } = await appearedSince(task, partsFor(), entry);
    expect(ours.map(({ id }) => id)).toEqual(["ours"]);
    expect(confidence).toBe("likely");
    expect(await verify(task, partsFor(), entry)).toMatchObject({ verdict: "snooze" });
    expect((await journal.entry(task.id))?.state).toBe("confirmed");
  });

  it("is confirmed by one of the same second where the service tells whole seconds", async () => {
    const task = taskOf("seconds");
    const { sentAtMs, entry } = await startUnread(task);
    const secondMs = sentAtMs - (sentAtMs % 1_000);
    await walk(task, "activities", [item("old", secondMs - 1_000), item("ours", secondMs)]);
    const { ours, confidence } = await appearedSince(task, partsFor(), entry);
    expect(ours.map(({ id }) => id)).toEqual(["ours"]);
    expect(confidence).toBe("likely");
  });
});

describe("a run in flight while its lists begin anew, since ids are mapped otherwise", () => {
  const started = async (name: string) => {
    const task = taskOf(name);
    const lists = ["activities", "conflictDetails"] as const;
    for (const list of lists) await walk(task, list, [item("old", 1_000)]);
    const baseline = writeBaseline(await baselineSince(task, partsFor(), 0));
    await journal.claim(task.id, "me");
    await journal.beginSending(task, "me", { startByMs: task.startByMs, baseline });
    const entry = await journal.claim(task.id, "me");
    for (const list of lists) {
      const feed = feedOf(task, list);
      await book.beginAnew(feed, await book.status(feed), "item.other");
      await walk(task, list, [item("old, renamed", 1_000)]);
    }
    return { task, entry };
  };

  it("is not said to have left the conflicts that were there before", async () => {
    const { task, entry } = await started("anew-conflicts");
    const { newConflicts, perhapsNewConflicts } = await appearedSince(task, partsFor(), entry);
    expect({ newConflicts, perhapsNewConflicts }).toEqual({ newConflicts: undefined, perhapsNewConflicts: 1 });
  });

  it("has the activities that say that they began after it, and no older ones", async () => {
    const { task, entry } = await started("anew-activities");
    const begun = item("ours", (entry.sentAtMs ?? 0) + 20);
    expect(await appearedSince(task, partsFor(), entry)).toMatchObject({ ours: [], possibleSeen: false });
    await walk(task, "activities", [item("old, renamed", 1_000), begun]);
    expect(await appearedSince(task, partsFor(), entry)).toMatchObject({ attributable: true, ours: [{ id: "ours" }] });
    const timeless = partsFor({ unknown: "startedAt" });
    expect(await appearedSince(task, timeless, entry)).toMatchObject({ attributable: false });
  });
});

describe("a start taken back and resent by another worker during its verification", () => {
  it("does not end by what was found out of the first request", async () => {
    const [task, history] = [taskOf("anew"), new History(store)];
    const { entry } = await startSilently(task);
    const step = await verifyStart(task, testPolicy({ onUnknown: "give-up" }), {
      deps: partsFor(),
      claim: { claimant: "frozen", entry },
    });
    await journal.takeBack(task, "me");
    await journal.claim(task.id, "heir");
    await journal.beginSending(task, "heir", { startByMs: task.startByMs, baseline: "" });
    expect(step).toMatchObject({ verdict: "complete", ending: { status: "unknown" } });
    const from = step.verdict === "complete" ? step.ending?.from : undefined;
    expect(await history.record(testOutcome({ taskId: task.id }), from)).toBe("superseded");
    expect((await journal.entry(task.id))?.state).toBe("sending");
  });

  it("does not end beside a second request that went out meanwhile", async () => {
    const [task, history] = [taskOf("beside-second"), new History(store)];
    await startSilently(task);
    const again = { startByMs: task.startByMs, sends: 1 };
    expect(await journal.beginSendingAgain(task, "unsent", { ...again, sender: "me" })).toBe("permitted");
    await journal.takeBack(task, "unsent");
    const entry = await journal.claim(task.id, "frozen");
    const step = await verifyStart(task, testPolicy({ onUnknown: "give-up" }), {
      deps: partsFor(),
      claim: { claimant: "frozen", entry },
    });
    expect(await journal.beginSendingAgain(task, "heir", { ...again, sender: entry.claimant })).toBe("permitted");
    expect(step).toMatchObject({ verdict: "complete", ending: { status: "unknown", sends: 1 } });
    const from = step.verdict === "complete" ? step.ending?.from : undefined;
    expect(await history.record(testOutcome({ taskId: task.id }), from)).toBe("superseded");
    expect((await journal.entry(task.id))?.state).toBe("sending");
  });

  it("does not end by an activity that was taken for its own", async () => {
    const [task, history] = [taskOf("not-its-own"), new History(store)];
    const { sentAtMs } = await startSilently(task);
    await walk(task, "activities", [item("a", sentAtMs + 50)]);
    const accepts = testPolicy({ follow: { ...testPolicy().follow, until: "accepted" } });
    const service = new SyncService({ baseUrl: "http://127.0.0.1:1", token: staticToken("secret") });
    const deps = { ...partsFor(), policy: () => accepts, service: () => service };
    const take = async () => stepRun(task, deps, { claimant: "heir", entry: await journal.claim(task.id, "heir") });
    expect((await take()).verdict).toBe("snooze");
    const step = await take();
    await journal.takeBack(task, "me");
    await journal.claim(task.id, "heir");
    await journal.beginSending(task, "heir", { startByMs: task.startByMs, baseline: "" });
    await journal.noteConfirmed(task, "answer");
    service.close();
    expect(step).toMatchObject({ verdict: "complete", ending: { status: "accepted", evidence: "inferred" } });
    const from = step.verdict === "complete" ? step.ending?.from : undefined;
    expect(await history.record(testOutcome({ taskId: task.id }), from)).toBe("superseded");
  });
});

describe("a start that was sent once more", () => {
  const timing = { ...defaultTiming, verifyForMs: 30_000 };
  /** Lost a minute ago, and sent again now (`overlap: allow`). */
  const sendTwice = async (task: Task) => {
    const { sentAtMs } = await startSilently(task, false);
    const firstAtMs = sentAtMs - 60_000;
    await store.redis.hset(store.key("start", task.id), "sentAtMs", firstAtMs, "lastSentAtMs", firstAtMs);
    await store.redis.hset(inFlightKey(store, task), task.id, firstAtMs);
    await journal.noteDoubt(task.id, { kind: "answer-lost", detail: "reset", atMs: firstAtMs + 50 });
    const again = { startByMs: task.startByMs, sends: 1, sender: "me" };
    expect(await journal.beginSendingAgain(task, "heir", again)).toBe("permitted");
    return (await journal.entry(task.id))?.lastSentAtMs ?? Number.NaN;
  };
  const judged = async (task: Task) => {
    const entry = await journal.claim(task.id, "heir");
    return (await appearedSince(task, { ...partsFor(), timing }, entry)).confidence;
  };

  it("is shown by an activity that began right after the second request", async () => {
    const task = taskOf("second");
    const lastSentAtMs = await sendTwice(task);
    await walk(task, "activities", [item("of the second", lastSentAtMs + 1_000)]);
    expect(await judged(task)).toBe("likely");
    await journal.noteConfirmed(task, "answer");
    expect(await judged(task)).toBe("likely");
  });

  it("is not surely shown where another one was sent once more with it", async () => {
    const [one, other] = [taskOf("both"), { ...taskOf("both"), id: "both-other" }];
    await sendTwice(one);
    const lastSentAtMs = await sendTwice(other);
    // One of each start, but both nearer to the later request.
    await walk(one, "activities", [item("one's", lastSentAtMs + 900), item("other's", lastSentAtMs + 1_000)]);
    const confidences = await Promise.all([judged(one), judged(other)]);
    expect(confidences.filter((confidence) => confidence !== undefined)).toEqual(["ambiguous"]);
  });

  it("has an answer that is not known, whatever became of the second", async () => {
    const task = taskOf("second-answered");
    const { sentAtMs } = await startSilently(task);
    await journal.noteDoubt(task.id, { kind: "server", detail: "500", atMs: sentAtMs + 50 });
    const again = { startByMs: task.startByMs, sends: 1, sender: "me" };
    expect(await journal.beginSendingAgain(task, "heir", again)).toBe("permitted");
    await journal.noteConfirmed(task, "answer");
    const service = new SyncService({ baseUrl: "http://127.0.0.1:1", token: staticToken("secret") });
    const accepts = testPolicy({ follow: { ...testPolicy().follow, until: "accepted" } });
    const deps = { ...partsFor(), policy: () => accepts, service: () => service };
    const step = await stepRun(task, deps, { claimant: "heir", entry: await journal.claim(task.id, "heir") });
    service.close();
    expect(step).toMatchObject({ ending: { status: "accepted", sends: 2, answerLost: true } });
  });

  it("is not surely shown by what began long after both, however late it is confirmed", async () => {
    const task = taskOf("after-second");
    const lastSentAtMs = await sendTwice(task);
    await walk(task, "activities", [item("somebody's", lastSentAtMs + 3_600_000)]);
    await journal.noteConfirmed(task, "evidence");
    await store.redis.hset(store.key("start", task.id), "confirmedAtMs", lastSentAtMs + 3_600_000);
    expect(await judged(task)).toBe("ambiguous");
  });
});

describe("a start that the operator says must show within no time (follow.appearsWithin)", () => {
  const vouched = testPolicy({ follow: { ...testPolicy().follow, appearsWithinMs: 0 } });
  /** Permitted ten seconds ago: what left in time has arrived. */
  const permittedBefore = async (task: Task, lost: { kind: "answer-lost" | "crash"; afterMs: number }) => {
    await startSilently(task);
    const sentAtMs = (await redisTimeMs(store)) - 10_000;
    await store.redis.hset(store.key("start", task.id), "sentAtMs", sentAtMs, "lastSentAtMs", sentAtMs);
    const baseline = writeBaseline({ activities: 0, conflictDetails: 0 });
    await store.redis.hset(store.key("start", task.id), "baseline", baseline);
    await journal.noteDoubt(task.id, { kind: lost.kind, detail: "lost", atMs: sentAtMs + lost.afterMs });
    return { claimant: "me", entry: await journal.claim(task.id, "me") };
  };
  /** Without a service nothing can be sent again. */
  const judged = (task: Task, claim: Parameters<typeof verifyStart>[2]["claim"], deps = partsFor()) =>
    verifyStart(task, vouched, { deps, claim });
  const absent = { verdict: "complete", ending: { status: "not-started", evidence: "inferred" } };

  it("is shown to be absent by a walk of the whole list only, which is asked for", async () => {
    const task = taskOf("absent");
    const claim = await permittedBefore(task, { kind: "answer-lost", afterMs: 50 });
    await walk(task, "activities", [], false);
    expect(await judged(task, claim)).toMatchObject({ verdict: "snooze" });
    const { wholeWantedAtMs } = await book.status(feedOf(task, "activities"));
    expect(wholeWantedAtMs).toBe((claim.entry.sentAtMs ?? 0) + 5_000);
    await walk(task, "activities", []);
    expect(await judged(task, claim)).toMatchObject(absent);
  });

  it("may have reached the service as late as its connection stood", async () => {
    const task = taskOf("late-arrival");
    const claim = await permittedBefore(task, { kind: "answer-lost", afterMs: 30_000 });
    await walk(task, "activities", []);
    expect(await judged(task, claim)).toMatchObject({ verdict: "snooze" });
  });

  it("may be on its way while its worker is silent, as long as a request may take", async () => {
    const task = taskOf("silent");
    const claim = await permittedBefore(task, { kind: "crash", afterMs: 100 });
    const service = new SyncService({
      baseUrl: "http://127.0.0.1:1",
      token: staticToken("x"),
      timeouts: { requestMs: 60_000 },
    });
    await walk(task, "activities", []);
    expect(await judged(task, claim, { ...partsFor(), service: () => service })).toMatchObject({ verdict: "snooze" });
    service.close();
    expect((await journal.entry(task.id))?.lastSentAtMs).toBe(claim.entry.lastSentAtMs);
    expect(await judged(task, claim)).toMatchObject(absent);
  });
});

describe("a walk that ends while the feeds are looked at", () => {
  /**
   * A book in which the walk of the conflicts ends right after their status or their items were
   * read.
   */
  const bookThatMovesOn = (task: Task, read: "status" | "discoveredSince") => {
    const moving = new FeedStore(store);
    let isOver = false;
    const real = moving[read].bind(moving) as (...args: unknown[]) => Promise<unknown>;
    const moved = async (...args: unknown[]) => {
      const answer = await real(...args);
      if (JSON.stringify(args[0]) !== JSON.stringify(feedOf(task, "conflictDetails")) || isOver) return answer;
      isOver = true;
      await walk(task, "conflictDetails", [item("conflict", undefined)]);
      return answer;
    };
    return Object.assign(moving, { [read]: moved });
  };

  it.each(["status", "discoveredSince"] as const)(
    "is never known as ended without what it found (in between: after %s)",
    async (read) => {
      const task = taskOf(`moves-${read}`);
      await walk(task, "activities", []);
      await walk(task, "conflictDetails", []);
      await journal.claim(task.id, "me");
      const baseline = '{"v":1,"activities":0,"conflictDetails":0}';
      await journal.beginSending(task, "me", { startByMs: task.startByMs, baseline });
      const entry = await journal.claim(task.id, "me");
      const before = await book.status(feedOf(task, "conflictDetails"));
      const deps = partsFor({ readsFrom: bookThatMovesOn(task, read) });
      const first = await appearedSince(task, deps, entry);
      expect([first.conflictDetails.walks, first.newConflicts]).toEqual([before.walks, 0]);
      const second = await appearedSince(task, deps, entry);
      expect([second.conflictDetails.walks, second.newConflicts]).toEqual([before.walks + 1, 1]);
    },
  );
});

describe("a conflict whose sync job cannot be read", () => {
  it("may be of a run since whose baseline it appeared; one of no sync job is not", async () => {
    const task = taskOf("unread-conflict");
    for (const list of ["activities", "conflictDetails"] as const) await walk(task, list, []);
    await journal.claim(task.id, "me");
    const baseline = writeBaseline(await baselineSince(task, partsFor(), 0));
    await journal.beginSending(task, "me", { startByMs: task.startByMs, baseline });
    const entry = await journal.claim(task.id, "me");
    const none = { ...item("of none", undefined), syncJobId: undefined };
    await walk(task, "conflictDetails", [none, { ...none, id: "whose", unread: ["syncJobId"] }]);
    const counted = async (deps = partsFor()) => {
      const { newConflicts, perhapsNewConflicts } = await appearedSince(task, deps, entry);
      return { newConflicts, perhapsNewConflicts };
    };
    expect(await counted()).toEqual({ newConflicts: 0, perhapsNewConflicts: 1 });
    // Without a mapping of it, all of the repository count.
    expect(await counted(partsFor({ unknown: "syncJobId" }))).toEqual({ newConflicts: 2, perhapsNewConflicts: 0 });
  });
});

describe("an activity of which it cannot be read whether it is of a start", () => {
  const whose = (id: string, startedAtMs: number | undefined): ItemFacts => {
    return { ...item(id, startedAtMs), syncJobId: undefined, unread: ["syncJobId"] };
  };

  it("is any since the baseline whose sync job cannot be read", async () => {
    const task = taskOf("untold");
    for (const list of ["activities", "conflictDetails"] as const) await walk(task, list, []);
    await journal.claim(task.id, "me");
    const baseline = writeBaseline(await baselineSince(task, partsFor(), 0));
    await journal.beginSending(task, "me", { startByMs: task.startByMs, baseline });
    const entry = await journal.claim(task.id, "me");
    await walk(task, "activities", [{ ...item("another's", undefined), syncJobId: "43" }, item("its", undefined)]);
    expect(await appearedSince(task, partsFor(), entry)).toMatchObject({ unjudgedSeen: false });
    await walk(task, "activities", [whose("whose", 1_000)]);
    const unread = { unjudgedSeen: true, unnamed: [{ id: "whose" }] };
    expect(await appearedSince(task, partsFor(), entry)).toMatchObject(unread);
  });

  it("is without a baseline one that does not say that it began well before the start", async () => {
    const untold = async (name: string, facts: (sentAtMs: number) => ItemFacts, deps = partsFor()) => {
      const task = taskOf(name);
      const { sentAtMs, entry } = await startUnread(task);
      await walk(task, "activities", [facts(sentAtMs)]);
      return (await appearedSince(task, deps, entry)).unjudgedSeen;
    };
    expect(await untold("untold-old", (sentAtMs) => whose("old", sentAtMs - 301_000))).toBe(false);
    expect(await untold("untold-new", (sentAtMs) => whose("new", sentAtMs))).toBe(true);
    expect(await untold("untold-its-old", (sentAtMs) => item("its", sentAtMs - 301_000))).toBe(false);
    // The service's clock may be behind.
    expect(await untold("untold-behind", (sentAtMs) => item("its", sentAtMs - 1_000))).toBe(true);
    expect(await untold("untold-timeless", () => item("its", undefined))).toBe(true);
    const unmapped = partsFor({ unknown: "syncJobId" });
    expect(await untold("untold-whose", (sentAtMs) => item("its", sentAtMs - 1_000), unmapped)).toBe(true);
  });
});

describe("the growth of the activities since a baseline", () => {
  it("is that of its sync job where the mapping says whose they are, else of all", async () => {
    const task = taskOf("growth");
    for (const list of ["activities", "conflictDetails"] as const) await walk(task, list, []);
    await journal.claim(task.id, "me");
    const baseline = writeBaseline(await baselineSince(task, partsFor(), 0));
    await journal.beginSending(task, "me", { startByMs: task.startByMs, baseline });
    const entry = await journal.claim(task.id, "me");
    const possibleSeen = async (unknown: string) =>
      (await appearedSince(task, partsFor({ unknown }), entry)).possibleSeen;
    await walk(task, "activities", [{ ...item("another's", undefined), syncJobId: "43" }]);
    expect([await possibleSeen("finished"), await possibleSeen("syncJobId")]).toEqual([false, true]);
    await walk(task, "activities", [{ ...item("whose", undefined), syncJobId: undefined, unread: ["syncJobId"] }]);
    expect(await possibleSeen("finished")).toBe(true);
  });
});

describe("a run before which the conflicts were not read in time", () => {
  const started = async (task: Task) => {
    const baseline = writeBaseline(await baselineSince(task, partsFor(), (await redisTimeMs(store)) + 60_000));
    const { entry } = await startSilently(task);
    return { ...entry, baseline };
  };

  it("left none where none was seen since the last read, however long ago", async () => {
    const task = taskOf("none-since");
    await walk(task, "conflictDetails", [item("old", undefined)]);
    const entry = await started(task);
    await walk(task, "conflictDetails", [item("old", undefined)]);
    expect(await appearedSince(task, partsFor(), entry)).toMatchObject({ newConflicts: 0, perhapsNewConflicts: 0 });
  });

  it("may have left those that were seen since then, and they may be older", async () => {
    const task = taskOf("some-since");
    const entry = await started(task);
    await walk(task, "conflictDetails", [item("whose", undefined)]);
    const appeared = await appearedSince(task, partsFor(), entry);
    expect(appeared).toMatchObject({ newConflicts: undefined, perhapsNewConflicts: 1 });
  });
});

describe("a run whose end is seen more than once", () => {
  beforeAll(() => {
    laterMs = 0;
  });

  const anyService = new SyncService({ baseUrl: "http://127.0.0.1:1", token: staticToken("x") });
  afterAll(() => {
    laterMs = 10_000;
    anyService.close();
  });

  /**
   * A run that was answered, with a baseline of both lists; the walks of the test show what it
   * left. `gone`: conflicts that were seen before it, and are not there any more.
   */
  async function answered(id: string, gone: readonly ItemFacts[] = []) {
    const task = taskOf(id);
    const deps: ProcessDependencies = { ...partsFor(), service: () => anyService };
    await walk(task, "activities", []);
    await walk(task, "conflictDetails", gone);
    await walk(task, "conflictDetails", []);
    await journal.claim(task.id, "me");
    const conflictsBefore = { of: "syncJob", count: 0 } as const;
    const baseline = writeBaseline({ ...(await baselineSince(task, deps, 0)), conflictsBefore });
    await journal.beginSending(task, "me", { startByMs: task.startByMs, baseline });
    await journal.noteConfirmed(task, "answer");
    const step = async () => stepRun(task, deps, { claimant: "me", entry: await journal.claim(task.id, "me") });
    return { task, step, sentAtMs: (await journal.entry(task.id))?.sentAtMs ?? 0 };
  }

  const running = (activity: ItemFacts): ItemFacts => ({ ...activity, fingerprint: "r", finished: false });
  const conflict: ItemFacts = { ...item("conflict", undefined), finished: undefined, succeeded: undefined };

  it("counts the conflicts after the last of its activities has ended", async () => {
    const { task, step, sentAtMs } = await answered("second-activity");
    const [first, second] = [item("first", sentAtMs), item("second", sentAtMs)];
    await walk(task, "activities", [first]);
    expect(await step()).toMatchObject({ verdict: "snooze" });
    // Read after the end of the first activity and before that of the second, which leaves a
    // conflict.
    await walk(task, "activities", [first, running(second)]);
    await walk(task, "conflictDetails", []);
    expect(await step()).toMatchObject({ verdict: "snooze" });
    await walk(task, "activities", [first, second]);
    expect(await step()).toMatchObject({ verdict: "snooze" });
    await walk(task, "conflictDetails", [conflict]);
    expect(await step()).toMatchObject({ verdict: "complete", ending: { status: "conflicts", newConflicts: 1 } });
  });

  it("is not started from what was read twenty minutes ago", async () => {
    const task = taskOf("aged");
    const deps: ProcessDependencies = { ...partsFor(), service: () => anyService };
    const step = async () => stepRun(task, deps, { claimant: "me", entry: await journal.claim(task.id, "me") });
    expect(await step()).toMatchObject({ verdict: "snooze" });
    // As if all of it was twenty minutes ago, and all workers were away since.
    laterMs = -20 * 60_000;
    for (const list of ["activities", "conflictDetails"] as const) await walk(task, list, []);
    laterMs = 0;
    await store.redis.hincrby(store.key("start", task.id), "readyAtMs", -21 * 60_000);
    expect(await step()).toMatchObject({ verdict: "snooze" });
    expect((await journal.entry(task.id))?.state).toBe("claimed");
  });

  it("is read once more past its deadline, where all were away until then", async () => {
    const { task, step, sentAtMs } = await answered("away");
    laterMs = 9 * 3_600_000;
    expect(await step()).toMatchObject({ verdict: "snooze" });
    await walk(task, "activities", [item("only", sentAtMs)]);
    expect(await step()).toMatchObject({ verdict: "snooze" });
    await walk(task, "conflictDetails", []);
    laterMs = 0;
    expect(await step()).toMatchObject({ verdict: "complete", ending: { status: "succeeded" } });
  });

  it("is not sure that it left none where one is back under a known id", async () => {
    const { task, step, sentAtMs } = await answered("back", [conflict]);
    await walk(task, "activities", [item("only", sentAtMs)]);
    expect(await step()).toMatchObject({ verdict: "snooze" });
    await walk(task, "conflictDetails", [conflict]);
    const detail = expect.stringContaining("1 conflict may be of it");
    expect(await step()).toMatchObject({ verdict: "complete", ending: { status: "unknown", newConflicts: 0, detail } });
  });

  it("counts them after the newer end of an activity that was set back to running", async () => {
    const { task, step, sentAtMs } = await answered("set-back");
    const only = item("only", sentAtMs);
    await walk(task, "activities", [only]);
    expect(await step()).toMatchObject({ verdict: "snooze" });
    await walk(task, "activities", [running(only)]);
    await walk(task, "conflictDetails", []);
    expect(await step()).toMatchObject({ verdict: "snooze" });
    await walk(task, "activities", [only]);
    expect(await step()).toMatchObject({ verdict: "snooze" });
    await walk(task, "conflictDetails", [conflict]);
    expect(await step()).toMatchObject({ verdict: "complete", ending: { status: "conflicts", newConflicts: 1 } });
  });
});
