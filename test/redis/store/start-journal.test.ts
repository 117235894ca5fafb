import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { History } from "../../../src/store/history.ts";
import { KeptWrites } from "../../../src/store/kept-writes.ts";
import { openStore, redisTimeMs } from "../../../src/store/redis.ts";
import type { JournalTask } from "../../../src/store/start-entry.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { startServer, until } from "../../support/redis-servers.ts";
import { TestLog } from "../../support/test-log.ts";

const target = redisForTest();

const store = await storeForTest(target);
const journal = new StartJournal(store);
const history = new History(store);

const task = (id: string): JournalTask => ({ id, kind: "run", service: "main", repository: "HR", target: id });
const farAway = { startByMs: 9_999_999_999_999, baseline: "{}" };
const again = { startByMs: farAway.startByMs, sends: 1 };

describe("the start journal", () => {
  it("permits the request exactly once, for any number of callers", async () => {
    await journal.claim("once", "me");
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => journal.beginSending(task("once"), "me", farAway)),
    );
    expect(answers.filter((answer) => answer === "permitted")).toHaveLength(1);
  });

  it("refuses a worker whose claim another one has taken over", async () => {
    await journal.claim("zombie", "first");
    await journal.claim("zombie", "second");
    expect(await journal.beginSending(task("zombie"), "first", farAway)).toBe("lost-claim");
    expect(await journal.beginSending(task("zombie"), "second", farAway)).toBe("permitted");
  });

  it("refuses after the start-by time", async () => {
    await journal.claim("late", "me");
    expect(await journal.beginSending(task("late"), "me", { startByMs: 1, baseline: "{}" })).toBe("too-late");
    expect((await journal.claim("late", "me")).state).toBe("claimed");
  });

  it("refuses a task that was never claimed", async () => {
    expect(await journal.beginSending(task("never"), "me", farAway)).toBe("lost-claim");
  });

  it("permits no request of a cancelled task, in whatever state the cancel met it", async () => {
    const intent = { ...farAway, slotMs: 1, takesLease: false, notesFeed: false };
    expect(await journal.cancel("never-claimed", "by me")).toBe("claimed");
    expect(await journal.tryBeginSending(task("never-claimed"), "me", intent)).toBeUndefined();
    await journal.claim("claimed", "me");
    expect(await journal.cancel("claimed", "by me")).toBe("claimed");
    expect(await journal.beginSending(task("claimed"), "me", farAway)).toBe("lost-claim");
    expect(await journal.claim("claimed", "heir")).toMatchObject({ state: "claimed", cancelled: "by me" });
    expect(await journal.beginSending(task("claimed"), "heir", farAway)).toBe("lost-claim");
    await journal.claim("sent", "me");
    await journal.beginSending(task("sent"), "me", farAway);
    expect(await journal.cancel("sent", "by me")).toBe("sending");
    expect(await journal.cancel("sent", "by another")).toBe("sending");
    expect(await journal.beginSendingAgain(task("sent"), "heir", { ...again, sender: "me" })).toBe("lost-claim");
    expect(await journal.readCancelled("sent")).toBe("by me");
    await journal.claim("masks", "me");
    await journal.planFanOut({ id: "masks", policy: "p", slotMs: 1 }, { claimant: "me", isNotified: false }, ["1"]);
    expect(await journal.cancel("masks", "by me")).toBe("fanned-out");
    await journal.close(task("sent"), { isOver: true });
    expect(await journal.cancel("sent", "by me")).toBe("settled");
  });

  it("takes a late answer of a seemingly dead worker, unless another request went out", async () => {
    const missing = { kind: "crash", detail: "noticed too early" } as const;
    for (const id of ["held-up", "evidence", "twice"]) {
      await journal.claim(id, "held-up");
      await journal.beginSending(task(id), "held-up", farAway);
      await journal.noteDoubt(id, missing);
    }
    await journal.noteConfirmed(task("held-up"), "answer");
    expect(await journal.entry("held-up")).toMatchObject({ state: "confirmed", doubt: undefined });
    await journal.noteConfirmed(task("evidence"), "evidence");
    expect(await journal.entry("evidence")).toMatchObject({ state: "confirmed", doubt: missing });
    await journal.noteConfirmed(task("evidence"), "answer");
    await journal.noteConfirmed(task("evidence"), "evidence");
    expect(await journal.entry("evidence")).toMatchObject({ confirmedBy: "answer", doubt: undefined });
    const inFlight = store.key("in-flight", "run", "main", "HR", "evidence");
    expect(await store.redis.hget(inFlight, "evidence")).toMatch(/^\d+\+$/);
    await journal.beginSendingAgain(task("twice"), "heir", { ...again, sender: "held-up" });
    await journal.noteConfirmed(task("twice"), "answer");
    expect(await journal.entry("twice")).toMatchObject({ state: "confirmed", doubt: missing });
  });

  it("shows a redelivered task that its request went out, with what was known before", async () => {
    await journal.claim("lost", "dead");
    await journal.beginSending(task("lost"), "dead", { startByMs: 9_999_999_999_999, baseline: '{"activities":7}' });
    const entry = await journal.claim("lost", "heir");
    expect(entry).toMatchObject({
      state: "sending",
      claimant: "dead",
      baseline: '{"activities":7}',
      doubt: undefined,
      confirmedAtMs: undefined,
    });
    expect(entry.sentAtMs).toBeGreaterThanOrEqual(entry.claimedAtMs);
    expect(await journal.beginSending(task("lost"), "heir", farAway)).toBe("lost-claim");
  });

  it("keeps the first reason why an answer is missing", async () => {
    await journal.claim("why", "me");
    await journal.beginSending(task("why"), "me", farAway);
    expect(await journal.noteDoubt("why", { kind: "answer-lost", detail: "reset" })).toEqual({
      kind: "answer-lost",
      detail: "reset",
    });
    expect(await journal.noteDoubt("why", { kind: "crash", detail: "" })).toEqual({
      kind: "answer-lost",
      detail: "reset",
    });
    expect((await journal.claim("why", "heir")).doubt).toEqual({ kind: "answer-lost", detail: "reset" });
  });

  it("lets a task send again when its request surely did not leave", async () => {
    await journal.claim("refused", "me");
    await journal.beginSending(task("refused"), "me", farAway);
    await journal.takeBack(task("refused"), "me");
    await journal.claim("refused", "me again");
    expect(await journal.beginSending(task("refused"), "me again", farAway)).toBe("permitted");
  });

  it("lets nothing happen any more once settled", async () => {
    await journal.claim("over", "me");
    expect(await history.record(testOutcome({ taskId: "over" }), { state: "claimed", claimant: "me" })).toBe(
      "recorded",
    );
    expect((await journal.claim("over", "me")).state).toBe("settled");
    expect(await journal.beginSending(task("over"), "me", farAway)).toBe("lost-claim");
    await journal.noteConfirmed(task("over"), "evidence");
    expect((await journal.claim("over", "me")).state).toBe("settled");
  });

  it("treats a state that only a newer version knows as one that never sends", async () => {
    await store.redis.hset(store.key("start", "newer"), "state", "negotiating");
    expect((await journal.claim("newer", "me")).state).toBe("sending");
    expect(await journal.beginSending(task("newer"), "me", farAway)).toBe("lost-claim");
  });

  it("names the tasks that stand for an expanded one", async () => {
    expect(await journal.fannedOutInto("masks")).toBeUndefined();
    await journal.noteFannedOut("masks", ["a", "b"]);
    expect(await journal.fannedOutInto("masks")).toEqual(["a", "b"]);
  });

  it("reads an entry as version 1 wrote it, and goes on with it", async () => {
    const file = new URL("../../unit/golden/v1/journal-entry.json", import.meta.url);
    await store.redis.hset(store.key("start", "golden"), JSON.parse(await readFile(file, "utf8")));
    expect(await journal.claim("golden", "me")).toEqual({
      state: "sending",
      claimant: "3b241101-e2bb-4255-8caf-4136c566a962",
      readyAtMs: 1_795_228_200_150,
      claimedAtMs: 1_795_228_200_100,
      sentAtMs: 1_795_228_200_400,
      lastSentAtMs: 1_795_228_200_400,
      sends: 1,
      confirmedAtMs: undefined,
      confirmedBy: undefined,
      baseline: '{"activities":120,"conflictDetails":0}',
      knownSeq: undefined,
      doubt: { kind: "answer-lost", detail: "reset", atMs: undefined },
      finishSeenAtMs: undefined,
    });
    expect(await history.record(testOutcome({ taskId: "golden" }), { state: "sending" })).toBe("recorded");
  });

  it("leaves alone what a newer version has in work", async () => {
    await store.redis.hset(store.key("start", "from-tomorrow"), "v", "2", "state", "claimed", "claimant", "newer");
    await expect(journal.claim("from-tomorrow", "me")).rejects.toThrow("newer Syncline");
    expect(await store.redis.hget(store.key("start", "from-tomorrow"), "claimant")).toBe("newer");
  });
});

describe("taking a permission back", () => {
  it("is for its claimant only: a zombie cannot undo what another one sent", async () => {
    await journal.claim("zombie-back", "zombie");
    await journal.beginSending(task("zombie-back"), "zombie", farAway);
    expect(await journal.beginSendingAgain(task("zombie-back"), "heir", { ...again, sender: "zombie" })).toBe(
      "permitted",
    );
    await journal.takeBack(task("zombie-back"), "zombie");
    expect(await journal.claim("zombie-back", "third")).toMatchObject({ state: "sending", claimant: "heir", sends: 2 });
  });

  it("makes the task new, as if nothing had been sent", async () => {
    await journal.claim("anew", "me");
    await journal.beginSending(task("anew"), "me", farAway);
    await journal.noteDoubt("anew", { kind: "crash", detail: "noticed too early" });
    await journal.takeBack(task("anew"), "me");
    expect(await journal.claim("anew", "me")).toMatchObject({
      state: "claimed",
      sends: 0,
      sentAtMs: undefined,
      doubt: undefined,
      baseline: undefined,
    });
  });

  it("leaves an earlier request undecided", async () => {
    await journal.claim("second", "me");
    await journal.beginSending(task("second"), "me", farAway);
    await journal.beginSendingAgain(task("second"), "me", { ...again, sender: "me" });
    await journal.takeBack(task("second"), "me");
    expect(await journal.claim("second", "me")).toMatchObject({ state: "sending", sends: 1 });
  });
});

it("what a sender says of a start that ended as sent meanwhile is told", async () => {
  const log = new TestLog();
  const late = new StartJournal(store, undefined, new KeptWrites(log));
  await journal.claim("ended-sent", "me");
  await journal.beginSending(task("ended-sent"), "me", farAway);
  expect(await history.record(testOutcome({ taskId: "ended-sent" }), { state: "sending" })).toBe("recorded");
  await late.takeBack(task("ended-sent"), "me");
  await late.noteConfirmed(task("ended-sent"), "answer");
  await journal.claim("ended-seen", "me");
  await journal.beginSending(task("ended-seen"), "me", farAway);
  await journal.noteConfirmed(task("ended-seen"), "evidence");
  expect(await history.record(testOutcome({ taskId: "ended-seen" }), { state: "confirmed" })).toBe("recorded");
  await late.noteConfirmed(task("ended-seen"), "answer");
  const [nothing, answer] = [{ what: "started nothing" }, { what: "answer" }];
  expect(log.named("start.unwritten")).toMatchObject([nothing, answer, { ...answer, taskId: "ended-seen" }]);
});

describe("sending again", () => {
  it("is permitted once for each request without an answer, however many ask", async () => {
    await journal.claim("again", "me");
    await journal.beginSending(task("again"), "me", farAway);
    const ask = (claimant: string) => journal.beginSendingAgain(task("again"), claimant, { ...again, sender: "me" });
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => ask(`worker ${index}`)));
    expect(answers.filter((answer) => answer === "permitted")).toHaveLength(1);
  });

  it("is refused once the start was answered, and after the start-by time", async () => {
    await journal.claim("late-again", "me");
    await journal.beginSending(task("late-again"), "me", farAway);
    expect(await journal.beginSendingAgain(task("late-again"), "me", { ...again, startByMs: 1, sender: "me" })).toBe(
      "too-late",
    );
    await journal.noteConfirmed(task("late-again"), "evidence");
    expect(await journal.beginSendingAgain(task("late-again"), "me", { ...again, sender: "me" })).toBe("lost-claim");
  });

  it("is refused when the judged request was taken back: another may be on its way", async () => {
    await journal.claim("changed", "held-up");
    await journal.beginSending(task("changed"), "held-up", farAway);
    const { claimant: sender, sends } = await journal.claim("changed", "frozen");
    await journal.takeBack(task("changed"), "held-up");
    await journal.claim("changed", "heir");
    expect(await journal.beginSending(task("changed"), "heir", farAway)).toBe("permitted");
    expect(await journal.beginSendingAgain(task("changed"), "frozen", { ...again, sends, sender })).toBe("lost-claim");
    expect(await journal.entry("changed")).toMatchObject({ claimant: "heir", sends: 1 });
  });
});

describe("whose an activity is", () => {
  const flightOf = (target: string) => store.key("in-flight", "run", "main", "HR", target);
  const start = (id: string, target: string) => ({ ...task(id), target });
  const send = async (id: string, target: string) => {
    await journal.claim(id, "me");
    await journal.beginSending(start(id, target), "me", farAway);
    return (await journal.claim(id, "me")).sentAtMs ?? 0;
  };

  it("is the start nearest in time, whichever asks", async () => {
    const first = await send("near-1", "near");
    await store.redis.hset(flightOf("near"), "near-1", first - 60_000);
    const second = await send("near-2", "near");
    const activities = [
      { id: "a", startedAtMs: second - 59_000 },
      { id: "b", startedAtMs: second + 100 },
    ];
    const { taskOf, inFlight } = await journal.attribute(start("near-2", "near"), activities);
    expect([...taskOf]).toEqual([
      ["a", "near-1"],
      ["b", "near-2"],
    ]);
    expect([...inFlight.keys()]).toEqual(["near-1", "near-2"]);
    expect((await journal.attribute(start("near-1", "near"), activities)).taskOf).toEqual(taskOf);
  });

  it("is the start with the nearest request, where one was sent again and again", async () => {
    const one = start("resent", "resent");
    const first = 1_700_000_000_000;
    await send("resent", "resent");
    await store.redis.hset(flightOf("resent"), "resent", first);
    for (const sends of [1, 2]) await journal.beginSendingAgain(one, "me", { ...again, sends, sender: "me" });
    const [, second = 0, third = 0] = (await journal.attribute(one, [])).inFlight.get("resent") ?? [];
    await store.redis.hset(flightOf("resent"), "resent", `${first}:${second - 60_000}:${third}`);
    await send("beside-resent", "resent");
    await store.redis.hset(flightOf("resent"), "beside-resent", second - 30_000);
    const begins = [first + 1_000, second - 59_000, second - 29_000, third + 1_000];
    const activities = begins.map((startedAtMs, index) => ({ id: `${index}`, startedAtMs }));
    const { taskOf } = await journal.attribute(one, activities);
    expect([...taskOf.values()]).toEqual(["resent", "resent", "beside-resent", "resent"]);
  });

  it("may be one that was sent again and ended: another activity of it may follow", async () => {
    const one = start("resent-ended", "resent-ended");
    await send("resent-ended", "resent-ended");
    await journal.beginSendingAgain(one, "me", { ...again, sender: "me" });
    const { inFlight } = await journal.attribute(one, []);
    await journal.noteConfirmed(one, "evidence");
    const outcome = testOutcome({ taskId: one.id, target: one.target, service: "main", repository: "HR", sends: 2 });
    expect(await history.record(outcome, { state: "confirmed" })).toBe("recorded");
    await send("after-it", "resent-ended");
    const left = await journal.attribute(start("after-it", "resent-ended"), []);
    expect(left.inFlight.get("resent-ended")).toEqual(inFlight.get("resent-ended"));
  });

  it("is not told by a request that was taken back", async () => {
    const one = start("resent-refused", "resent-refused");
    const sentAtMs = await send("resent-refused", "resent-refused");
    await journal.beginSendingAgain(one, "me", { ...again, sender: "me" });
    await journal.takeBack(one, "me");
    expect((await journal.attribute(one, [])).inFlight.get(one.id)).toEqual([sentAtMs]);
  });

  it("without a time is the first start that has none, answered ones first", async () => {
    await send("plain-lost", "plain");
    await send("plain-answered", "plain");
    await journal.noteConfirmed(start("plain-answered", "plain"), "evidence");
    const activities = [
      { id: "a", startedAtMs: undefined },
      { id: "b", startedAtMs: undefined },
    ];
    expect([...(await journal.attribute(start("plain-lost", "plain"), activities)).taskOf]).toEqual([
      ["a", "plain-answered"],
      ["b", "plain-lost"],
    ]);
  });

  it("stays as it was decided, also when the start has ended", async () => {
    await send("kept-1", "kept");
    await journal.attribute(start("kept-1", "kept"), [{ id: "a", startedAtMs: undefined }]);
    const outcome = testOutcome({ taskId: "kept-1", target: "kept", service: "main", repository: "HR" });
    expect(await history.record(outcome, { state: "sending" })).toBe("recorded");
    await send("kept-2", "kept");
    const { taskOf, inFlight } = await journal.attribute(start("kept-2", "kept"), [
      { id: "a", startedAtMs: undefined },
    ]);
    expect(taskOf.get("a")).toBe("kept-1");
    expect([...inFlight.keys()]).toEqual(["kept-2"]);
  });

  it.each([
    [19, "ended-19", ["ended-19", "next-19"]],
    [21, "next-21", ["next-21"]],
  ])("without a time is an ended start's if that was sent just before: %i min", async (minutes, owner, left) => {
    const [ended, next, target] = [`ended-${minutes}`, `next-${minutes}`, `over-${minutes}`];
    const sentAtMs = await send(ended, target);
    const outcome = testOutcome({ taskId: ended, target, service: "main", repository: "HR", status: "unknown" });
    expect(await history.record(outcome, { state: "sending" })).toBe("recorded");
    expect(await store.redis.hget(flightOf(target), ended)).toBe(`e${sentAtMs}+`);
    await store.redis.hset(flightOf(target), ended, `e${sentAtMs - minutes * 60_000}+`);
    await send(next, target);
    const { taskOf, inFlight } = await journal.attribute(start(next, target), [{ id: "a", startedAtMs: undefined }]);
    expect(taskOf.get("a")).toBe(owner);
    expect([...inFlight.keys()].toSorted()).toEqual(left);
  });

  // The one that ended may have been given its activity.
  it("is not surely of the running start when one beside it has ended", async () => {
    await send("beside-1", "beside");
    await send("beside-2", "beside");
    await send("beside-3", "beside");
    const outcome = testOutcome({ target: "beside", service: "main", repository: "HR" });
    await history.record({ ...outcome, taskId: "beside-1" }, { state: "sending" });
    await history.record({ ...outcome, taskId: "beside-2", status: "not-started" }, { state: "sending" });
    const { inFlight } = await journal.attribute(start("beside-3", "beside"), [{ id: "a", startedAtMs: undefined }]);
    expect([...inFlight.keys()].toSorted()).toEqual(["beside-1", "beside-3"]);
  });
});

describe("why a start is in doubt", () => {
  const crash = { kind: "crash", detail: "its worker is silent", atMs: 1 } as const;
  const failed = { kind: "server", detail: "500", atMs: 2 } as const;

  it("is what its sender says, also after it was taken for dead", async () => {
    await journal.claim("slow-sender", "me");
    await journal.beginSending(task("slow-sender"), "me", { startByMs: 9_999_999_999_999, baseline: "" });
    expect(await journal.noteDoubt("slow-sender", crash)).toEqual(crash);
    expect(await journal.noteDoubt("slow-sender", { ...crash, atMs: 3 })).toEqual(crash);
    expect(await journal.noteDoubt("slow-sender", failed)).toEqual(failed);
    expect(await journal.noteDoubt("slow-sender", crash)).toEqual(failed);
    expect((await journal.entry("slow-sender"))?.doubt).toEqual(failed);
  });

  it("leaves no entry where Redis has forgotten the start", async () => {
    await journal.noteDoubt("forgotten", failed);
    expect(await journal.entry("forgotten")).toBeUndefined();
  });
});

describe("a permission whose answer does not come, since Redis is frozen", () => {
  it.each(["step by step", "at once"])(
    "is taken back, asked for %s: nothing was sent, so the start may go out later",
    async (way) => {
      const server = await startServer();
      const own = await openStore({ url: server.url, prefix: "{frozen}" });
      try {
        const slow = new StartJournal(own);
        const startByMs = (await redisTimeMs(own)) + 3_600_000;
        await slow.claim("frozen", "me");
        const ask = () =>
          way === "at once"
            ? slow.tryBeginSending(task("frozen"), "me", { startByMs, takesLease: false, notesFeed: false })
            : slow.beginSending(task("frozen"), "me", { startByMs, baseline: "" });
        // Redis must know the scripts before: else the first it hears of them is their hash.
        await slow.takeBack(task("frozen"), "me");
        await ask();
        await slow.takeBack(task("frozen"), "me");
        process.kill(server.pid, "SIGSTOP");
        await expect(ask()).rejects.toThrow("timed out");
        process.kill(server.pid, "SIGCONT");
        const entry = await until(
          () => slow.entry("frozen").catch(() => undefined),
          (found) => found !== undefined,
        );
        expect(entry?.state).toBe("claimed");
        expect(await slow.beginSending(task("frozen"), "me", { startByMs, baseline: "" })).toBe("permitted");
      } finally {
        await own.close();
      }
    },
  );
});
