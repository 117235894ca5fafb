// The short way of a plain start (src/tasks/send-start.ts): what one step of Redis permits, and
// what becomes of a lost answer when nobody has read the feed right before.
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { noEnding } from "../../../src/core/limiter.ts";
import { History } from "../../../src/store/history.ts";
import { Leases, leaseKey, leaseMs } from "../../../src/store/leases.ts";
import { RedisWatch } from "../../../src/store/redis-watch.ts";
import { type LimiterLimits, readLimiterStatus, ServiceLimiter } from "../../../src/store/service-limiter.ts";
import { type FastPathIntent, StartJournal } from "../../../src/store/start-journal.ts";
import { journalTask as task } from "../../support/journal-task.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";

const target = redisForTest();

const store = await storeForTest(target);
const journal = new StartJournal(store);
const leases = new Leases(store);
const history = new History(store);

const plain: FastPathIntent = { startByMs: 9_999_999_999_999, takesLease: true, notesFeed: true };
const permitted = { sentAtMs: expect.any(Number), permit: undefined };

describe("a start at once", () => {
  it("is permitted exactly once, for any number of callers", async () => {
    const ask = (_: unknown, index: number) => journal.tryBeginSending(task("raced"), `worker ${index}`, plain);
    const answers = await Promise.all(Array.from({ length: 30 }, ask));
    expect(answers.filter((answer) => answer !== undefined)).toHaveLength(1);
  });

  it("leaves in the journal what the steps one by one leave, and holds its sync job", async () => {
    const answer = await journal.tryBeginSending(task("whole"), "me", plain);
    const sentAtMs = answer !== undefined && "sentAtMs" in answer ? answer.sentAtMs : Number.NaN;
    expect(await journal.entry("whole")).toEqual({
      state: "sending",
      claimant: "me",
      claimedAtMs: sentAtMs,
      sentAtMs,
      lastSentAtMs: sentAtMs,
      sends: 1,
      confirmedAtMs: undefined,
      confirmedBy: undefined,
      baseline: "",
      knownSeq: 0,
      lost: undefined,
      finishSeenAtMs: undefined,
    });
    expect(await leases.holder(task("whole"))).toBe("whole");
    expect([...(await journal.attribute(task("whole"), [])).inFlight]).toEqual([["whole", [sentAtMs]]]);
  });

  it("is not permitted while another task holds the sync job", async () => {
    await store.redis.set(leaseKey(store, task("taken")), "other", "PX", leaseMs);
    expect(await journal.tryBeginSending(task("taken"), "me", plain)).toBeUndefined();
    expect((await journal.entry("taken"))?.state).toBe("claimed");
    expect(await journal.tryBeginSending(task("taken"), "me", { ...plain, takesLease: false })).toEqual(permitted);
    expect(await leases.holder(task("taken"))).toBe("other");
  });

  it("is not permitted after its start-by time", async () => {
    expect(await journal.tryBeginSending(task("late"), "me", { ...plain, startByMs: 1 })).toBeUndefined();
    expect((await journal.entry("late"))?.state).toBe("claimed");
    expect(await leases.holder(task("late"))).toBeUndefined();
  });

  it("takes over a claim that sent nothing, whose claimant may not send any more", async () => {
    await journal.claim("zombie", "first");
    expect(await journal.tryBeginSending(task("zombie"), "second", plain)).toEqual(permitted);
    expect(await journal.beginSending(task("zombie"), "first", { startByMs: plain.startByMs, baseline: "" })).toBe(
      "lost-claim",
    );
  });

  it("is not permitted for what a newer version has in work", async () => {
    await store.redis.hset(store.key("start", "from-tomorrow"), "v", "2", "state", "claimed", "claimant", "newer");
    expect(await journal.tryBeginSending(task("from-tomorrow"), "me", plain)).toBeUndefined();
    expect(await store.redis.hget(store.key("start", "from-tomorrow"), "claimant")).toBe("newer");
  });

  it("is not permitted before Redis is checked, at another Redis, or in a loss", async () => {
    const watch = new RedisWatch(store);
    const careful = new StartJournal(store, watch);
    expect(await careful.tryBeginSending(task("careful"), "me", plain)).toBeUndefined();
    watch.mayStart = true;
    expect(await careful.tryBeginSending(task("careful"), "me", plain)).toBeUndefined();
    await watch.check();
    await store.redis.zadd(store.key("losses"), 2_000, "1000:2000");
    expect(await careful.tryBeginSending(task("careful"), "me", { ...plain, slotMs: 1_500 })).toBeUndefined();
    expect((await careful.entry("careful"))?.state).toBe("claimed");
    expect(await careful.tryBeginSending(task("careful"), "me", { ...plain, slotMs: plain.startByMs })).toEqual(
      permitted,
    );
    expect(await store.redis.hget(store.key("watch"), "intents")).toBe("1");
  });

  it("forgets all of it when the request surely did not leave", async () => {
    await journal.tryBeginSending(task("refused"), "me", plain);
    await journal.takeBack(task("refused"), "me");
    expect(await journal.entry("refused")).toMatchObject({ state: "claimed", sends: 0, knownSeq: undefined });
    expect(await journal.tryBeginSending(task("refused"), "me again", plain)).toEqual(permitted);
  });
});

describe("a start at once behind a limiter with limits", () => {
  const intentAt = (limiter: ServiceLimiter): FastPathIntent => ({ ...plain, limiter: limiter.scriptedAcquire() });
  const limiterOf = (service: string, limits: Partial<LimiterLimits>) =>
    new ServiceLimiter(
      {
        service,
        concurrencyMax: undefined,
        requestsPerSecond: undefined,
        failuresMax: 1,
        probeEveryMs: 60_000,
        leaseMs: 10_000,
        ...limits,
      },
      { store, clock: systemClock, log: silentLog, random: () => 0 },
    );

  it("takes a permit with its permission; without one it may ask again", async () => {
    const limiter = limiterOf("two-places", { concurrencyMax: 2 });
    const ids = ["first", "second", "third", "fourth"];
    const answers = await Promise.all(ids.map((id) => journal.tryBeginSending(task(id), "me", intentAt(limiter))));
    const permits = answers.flatMap((answer) => (answer !== undefined && "permit" in answer ? [answer.permit] : []));
    const denials = answers.flatMap((answer) => (answer !== undefined && "denied" in answer ? [answer.denied] : []));
    expect(permits).toHaveLength(2);
    expect(denials.map(({ deniedBy }) => deniedBy)).toEqual(["concurrency", "concurrency"]);
    const states = await Promise.all(ids.map(async (id) => (await journal.entry(id))?.state));
    expect(states.toSorted()).toEqual(["claimed", "claimed", "sending", "sending"]);
    expect(await readLimiterStatus(store, "two-places")).toMatchObject({ inFlight: 2 });
    await permits[0]?.release(noEnding);
    await permits[0]?.release(noEnding);
    expect(await readLimiterStatus(store, "two-places")).toMatchObject({ inFlight: 1 });
    const late = ids[states.indexOf("claimed")] ?? "";
    expect(await journal.tryBeginSending(task(late), "me", intentAt(limiter))).toHaveProperty("permit");
  });

  it("counts into the rate, and is denied by a throttle and an open breaker", async () => {
    const paced = limiterOf("paced", { requestsPerSecond: 0.01 });
    expect(await journal.tryBeginSending(task("on-time"), "me", intentAt(paced))).toHaveProperty("permit");
    expect(await journal.tryBeginSending(task("over"), "me", intentAt(paced))).toHaveProperty(
      "denied.deniedBy",
      "rate",
    );
    const tired = limiterOf("tired", { concurrencyMax: 9 });
    await store.redis.hset(store.key("limiter", "tired"), "throttledUntilMs", "9999999999999");
    expect(await journal.tryBeginSending(task("tired"), "me", intentAt(tired))).toHaveProperty(
      "denied.deniedBy",
      "throttle",
    );
    const down = limiterOf("down", { concurrencyMax: 9 });
    await store.redis.hset(store.key("limiter", "down"), "state", "open", "nextProbeMs", "1");
    expect(await journal.tryBeginSending(task("down"), "me", intentAt(down))).toHaveProperty(
      "denied.deniedBy",
      "breaker",
    );
    expect((await journal.entry("down"))?.state).toBe("claimed");
  });

  it("holds no sync job while the limiter denies it: another task may start it", async () => {
    const paced = limiterOf("no-lease", { requestsPerSecond: 0.01 });
    expect(await journal.tryBeginSending(task("goes"), "me", intentAt(paced))).toHaveProperty("permit");
    await journal.claim("waits", "first step");
    await leases.acquire(task("waits"), "first step");
    for (const id of ["waits", "waits-too"]) {
      expect(await journal.tryBeginSending(task(id), "me", intentAt(paced))).toHaveProperty("denied.deniedBy", "rate");
      expect(await leases.holder(task(id))).toBeUndefined();
    }
    expect(await leases.holder(task("goes"))).toBe("goes");
  });

  it("needs the same Redis, as without a limiter, and takes no permit otherwise", async () => {
    const watch = new RedisWatch(store);
    watch.mayStart = true;
    const limiter = limiterOf("guarded", { concurrencyMax: 1 });
    const careful = new StartJournal(store, watch);
    expect(await careful.tryBeginSending(task("guarded"), "me", intentAt(limiter))).toBeUndefined();
    expect(await readLimiterStatus(store, "guarded")).toMatchObject({ inFlight: 0 });
    await watch.check();
    const intent = { ...intentAt(limiter), slotMs: plain.startByMs };
    expect(await careful.tryBeginSending(task("guarded"), "me", intent)).toHaveProperty("permit");
    expect(await readLimiterStatus(store, "guarded")).toMatchObject({ inFlight: 1 });
  });

  it("releases its permit when Redis is lost before a replica confirms", async () => {
    const watch = new RedisWatch(store);
    watch.mayStart = true;
    await watch.check();
    watch.reachReplicas = () => Promise.reject(new Error("Connection is closed."));
    const intent = { ...intentAt(limiterOf("cut-off", { concurrencyMax: 1 })), slotMs: plain.startByMs };
    const asked = new StartJournal(store, watch).tryBeginSending(task("cut-off"), "me", intent);
    await expect(asked).rejects.toThrow("Connection is closed.");
    expect(await readLimiterStatus(store, "cut-off")).toMatchObject({ inFlight: 0 });
  });

  it("is not asked for anything where there are no limits", () => {
    expect(limiterOf("free", {}).scriptedAcquire()).toBeUndefined();
  });
});

describe("an outcome that is the answer", () => {
  const answer = { state: "confirmed", isAnswer: true } as const;
  const outcomeOf = (taskId: string) => testOutcome({ taskId, service: "main", repository: null, target: taskId });

  it("answers and settles the start and gives the sync job back, in one step", async () => {
    await journal.tryBeginSending(task("answer"), "me", plain);
    expect(await history.record(outcomeOf("answer"), answer)).toBe("recorded");
    expect(await journal.entry("answer")).toMatchObject({ state: "settled", confirmedAtMs: expect.any(Number) });
    expect(await leases.holder(task("answer"))).toBeUndefined();
    expect([...(await journal.attribute(task("answer"), [])).inFlight]).toEqual([]);
  });

  it("does not end a start that was sent again meanwhile, and keeps its sync job", async () => {
    await journal.tryBeginSending(task("twice"), "me", plain);
    const again = { startByMs: plain.startByMs, sends: 1, sender: "me" };
    expect(await journal.beginSendingAgain(task("twice"), "heir", again)).toBe("permitted");
    expect(await history.record(outcomeOf("twice"), answer)).toBe("superseded");
    expect(await journal.entry("twice")).toMatchObject({ state: "sending", claimant: "heir", sends: 2 });
    expect(await leases.holder(task("twice"))).toBe("twice");
    expect(await history.record({ ...outcomeOf("twice"), sends: 2 }, answer)).toBe("recorded");
  });

  it("is untrue of a start taken back, and leaves another task's sync job alone", async () => {
    await journal.tryBeginSending(task("back"), "me", plain);
    await journal.takeBack(task("back"), "me");
    await leases.acquire(task("back"), "me");
    expect(await history.record(outcomeOf("back"), answer)).toBe("superseded");
    expect(await leases.holder(task("back"))).toBe("back");
    await store.redis.set(leaseKey(store, task("theirs")), "other", "PX", leaseMs);
    await journal.tryBeginSending(task("theirs"), "me", { ...plain, takesLease: false });
    expect(await history.record(outcomeOf("theirs"), answer)).toBe("recorded");
    expect(await leases.holder(task("theirs"))).toBe("other");
  });
});
