// The short way of a plain start (src/work/start-at-once.ts): what one step of Redis permits, and what becomes of a lost answer when
// nobody has read the feed right before.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { unsaid } from "../../../src/core/gate.ts";
import type { AtOnceIntent } from "../../../src/store/at-once.ts";
import { readGateStatus } from "../../../src/store/gate-status.ts";
import { History } from "../../../src/store/history.ts";
import { Leases, leaseKey } from "../../../src/store/leases.ts";
import { openStore, type Store } from "../../../src/store/redis.ts";
import { RedisWatch } from "../../../src/store/redis-watch.ts";
import { type GateLimits, ServiceGate } from "../../../src/store/service-gate.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { journalTask as task } from "../../support/journal-task.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();
let store: Store;
let journal: StartJournal;
let leases: Leases;
let history: History;

beforeAll(async () => {
  store = await openStore(target);
  journal = new StartJournal(store);
  leases = new Leases(store);
  history = new History(store);
});
afterAll(() => store.close());

const plain: AtOnceIntent = { startByMs: 9_999_999_999_999, leaseMs: 60_000, notesFeed: true };
const permitted = { sentAtMs: expect.any(Number), pass: undefined };

describe("a start at once", () => {
  it("is permitted exactly once, whoever asks and however often", async () => {
    const ask = (_: unknown, index: number) => journal.sendAtOnce(task("raced"), `worker ${index}`, plain);
    const answers = await Promise.all(Array.from({ length: 30 }, ask));
    expect(answers.filter((answer) => answer !== undefined)).toHaveLength(1);
  });

  it("leaves in the journal what the steps one by one leave, and holds its sync job", async () => {
    const answer = await journal.sendAtOnce(task("whole"), "me", plain);
    const sentAtMs = answer !== undefined && "sentAtMs" in answer ? answer.sentAtMs : Number.NaN;
    expect(await journal.entry("whole")).toEqual({
      state: "sending",
      owner: "me",
      claimedAtMs: sentAtMs,
      sentAtMs,
      lastSentAtMs: sentAtMs,
      sends: 1,
      answeredAtMs: undefined,
      baseline: "",
      knownSeq: 0,
      lost: undefined,
      finishSeenAtMs: undefined,
    });
    expect(await leases.holder(task("whole"))).toBe("whole");
    expect([...(await journal.attribute(task("whole"), [])).inFlight]).toEqual([["whole", sentAtMs]]);
  });

  it("is not permitted while another task holds the sync job", async () => {
    await store.redis.set(leaseKey(store, task("taken")), "other");
    expect(await journal.sendAtOnce(task("taken"), "me", plain)).toBeUndefined();
    expect((await journal.entry("taken"))?.state).toBe("claimed");
    expect(await journal.sendAtOnce(task("taken"), "me", { ...plain, leaseMs: undefined })).toEqual(permitted);
    expect(await leases.holder(task("taken"))).toBe("other");
  });

  it("is not permitted after its start-by time", async () => {
    expect(await journal.sendAtOnce(task("late"), "me", { ...plain, startByMs: 1 })).toBeUndefined();
    expect((await journal.entry("late"))?.state).toBe("claimed");
    expect(await leases.holder(task("late"))).toBeUndefined();
  });

  it("takes over a claim that sent nothing, whose owner may not send any more", async () => {
    await journal.claim("zombie", "first");
    expect(await journal.sendAtOnce(task("zombie"), "second", plain)).toEqual(permitted);
    expect(await journal.beginSending(task("zombie"), "first", { startByMs: plain.startByMs, baseline: "" })).toBe(
      "lost-claim",
    );
  });

  it("is not permitted for what a newer version has in work", async () => {
    await store.redis.hset(store.key("start", "from-tomorrow"), "v", "2", "state", "claimed", "owner", "newer");
    expect(await journal.sendAtOnce(task("from-tomorrow"), "me", plain)).toBeUndefined();
    expect(await store.redis.hget(store.key("start", "from-tomorrow"), "owner")).toBe("newer");
  });

  it("is not permitted before Redis was looked at, nor when Redis is not the one of the last beat, nor in a loss", async () => {
    const watch = new RedisWatch(store);
    const careful = new StartJournal(store, watch);
    expect(await careful.sendAtOnce(task("careful"), "me", plain)).toBeUndefined();
    watch.isOpen = true;
    expect(await careful.sendAtOnce(task("careful"), "me", plain)).toBeUndefined();
    await watch.beat();
    await store.redis.zadd(store.key("losses"), 2_000, "1000:2000");
    expect(await careful.sendAtOnce(task("careful"), "me", { ...plain, slotMs: 1_500 })).toBeUndefined();
    expect((await careful.entry("careful"))?.state).toBe("claimed");
    expect(await careful.sendAtOnce(task("careful"), "me", { ...plain, slotMs: plain.startByMs })).toEqual(permitted);
    expect(await store.redis.hget(store.key("watch"), "intents")).toBe("1");
  });

  it("forgets all of it when the request surely did not leave", async () => {
    await journal.sendAtOnce(task("refused"), "me", plain);
    await journal.notSent(task("refused"), "me");
    expect(await journal.entry("refused")).toMatchObject({ state: "claimed", sends: 0, knownSeq: undefined });
    expect(await journal.sendAtOnce(task("refused"), "me again", plain)).toEqual(permitted);
  });
});

describe("a start at once behind a gate with limits", () => {
  const intentAt = (gate: ServiceGate): AtOnceIntent => ({ ...plain, entrance: gate.entrance() });
  const gateOf = (service: string, limits: Partial<GateLimits>) =>
    new ServiceGate(
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

  it("takes a place with its permission; whoever finds none is not permitted, and may ask again", async () => {
    const gate = gateOf("two-places", { concurrencyMax: 2 });
    const ids = ["first", "second", "third", "fourth"];
    const answers = await Promise.all(ids.map((id) => journal.sendAtOnce(task(id), "me", intentAt(gate))));
    const passes = answers.flatMap((answer) => (answer !== undefined && "pass" in answer ? [answer.pass] : []));
    const holds = answers.flatMap((answer) => (answer !== undefined && "hold" in answer ? [answer.hold] : []));
    expect(passes).toHaveLength(2);
    expect(holds.map(({ heldBy }) => heldBy)).toEqual(["concurrency", "concurrency"]);
    const states = await Promise.all(ids.map(async (id) => (await journal.entry(id))?.state));
    expect(states.toSorted()).toEqual(["claimed", "claimed", "sending", "sending"]);
    expect(await readGateStatus(store, "two-places")).toMatchObject({ inFlight: 2 });
    await passes[0]?.leave(unsaid);
    await passes[0]?.leave(unsaid);
    expect(await readGateStatus(store, "two-places")).toMatchObject({ inFlight: 1 });
    const late = ids[states.indexOf("claimed")] ?? "";
    expect(await journal.sendAtOnce(task(late), "me", intentAt(gate))).toHaveProperty("pass");
  });

  it("counts into the rate, and is held by a throttle and an open breaker", async () => {
    const paced = gateOf("paced", { requestsPerSecond: 0.01 });
    expect(await journal.sendAtOnce(task("on-time"), "me", intentAt(paced))).toHaveProperty("pass");
    expect(await journal.sendAtOnce(task("over"), "me", intentAt(paced))).toHaveProperty("hold.heldBy", "rate");
    const tired = gateOf("tired", { concurrencyMax: 9 });
    await store.redis.hset(store.key("gate", "tired"), "throttledUntilMs", "9999999999999");
    expect(await journal.sendAtOnce(task("tired"), "me", intentAt(tired))).toHaveProperty("hold.heldBy", "throttle");
    const down = gateOf("down", { concurrencyMax: 9 });
    await store.redis.hset(store.key("gate", "down"), "state", "open", "nextProbeMs", "1");
    expect(await journal.sendAtOnce(task("down"), "me", intentAt(down))).toHaveProperty("hold.heldBy", "breaker");
    expect((await journal.entry("down"))?.state).toBe("claimed");
  });

  it("needs Redis to be the one it was, as without a gate, and takes no place otherwise", async () => {
    const watch = new RedisWatch(store);
    watch.isOpen = true;
    const gate = gateOf("guarded", { concurrencyMax: 1 });
    const careful = new StartJournal(store, watch);
    expect(await careful.sendAtOnce(task("guarded"), "me", intentAt(gate))).toBeUndefined();
    expect(await readGateStatus(store, "guarded")).toMatchObject({ inFlight: 0 });
    await watch.beat();
    const intent = { ...intentAt(gate), slotMs: plain.startByMs };
    expect(await careful.sendAtOnce(task("guarded"), "me", intent)).toHaveProperty("pass");
    expect(await readGateStatus(store, "guarded")).toMatchObject({ inFlight: 1 });
  });

  it("gives its place back when Redis is lost before anybody knows whether a replica has its permission", async () => {
    const watch = new RedisWatch(store);
    watch.isOpen = true;
    await watch.beat();
    watch.reachReplica = () => Promise.reject(new Error("Connection is closed."));
    const intent = { ...intentAt(gateOf("cut-off", { concurrencyMax: 1 })), slotMs: plain.startByMs };
    const asked = new StartJournal(store, watch).sendAtOnce(task("cut-off"), "me", intent);
    await expect(asked).rejects.toThrow("Connection is closed.");
    expect(await readGateStatus(store, "cut-off")).toMatchObject({ inFlight: 0 });
  });

  it("is not asked for anything where there are no limits", () => {
    expect(gateOf("free", {}).entrance()).toBeUndefined();
  });
});

describe("an outcome that is the answer", () => {
  const answer = { state: "answered", isAnswer: true } as const;
  const outcomeOf = (taskId: string) => testOutcome({ taskId, service: "main", repository: null, target: taskId });

  it("answers and settles the start and gives the sync job back, in one step", async () => {
    await journal.sendAtOnce(task("answer"), "me", plain);
    expect(await history.record(outcomeOf("answer"), answer)).toBe("recorded");
    expect(await journal.entry("answer")).toMatchObject({ state: "settled", answeredAtMs: expect.any(Number) });
    expect(await leases.holder(task("answer"))).toBeUndefined();
    expect([...(await journal.attribute(task("answer"), [])).inFlight]).toEqual([]);
  });

  it("is not true of a start that was taken back, and leaves another task's sync job alone", async () => {
    await journal.sendAtOnce(task("back"), "me", plain);
    await journal.notSent(task("back"), "me");
    expect(await history.record(outcomeOf("back"), answer)).toBe("moved-on");
    expect(await leases.holder(task("back"))).toBe("back");
    await store.redis.set(leaseKey(store, task("theirs")), "other");
    await journal.sendAtOnce(task("theirs"), "me", { ...plain, leaseMs: undefined });
    expect(await history.record(outcomeOf("theirs"), answer)).toBe("recorded");
    expect(await leases.holder(task("theirs"))).toBe("other");
  });
});
