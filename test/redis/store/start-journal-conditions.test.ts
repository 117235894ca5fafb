// Each condition of the journal's scripts by itself (src/store/lua/start), where a task on its
// usual way would not come by it.
import { describe, expect, it } from "vitest";
import { Leases } from "../../../src/store/leases.ts";
import { RedisWatch } from "../../../src/store/redis-watch.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { journalTask as task } from "../../support/journal-task.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";

const target = redisForTest();

const store = await storeForTest(target);
const journal = new StartJournal(store);
const leases = new Leases(store);

const startByMs = 9_999_999_999_999;
const intent = { startByMs, baseline: "" };
const atOnce = { startByMs, takesLease: false, notesFeed: false };
const weekMs = 7 * 86_400_000;

const entryKey = (id: string) => store.key("start", id);
const flightKey = (id: string) => store.key("in-flight", "run", "main", "", id);
const inFlight = async (id: string) => [...(await journal.attribute(task(id), [])).inFlight.keys()];
/** For how long Redis keeps it; negative when for ever. */
const keptMs = (key: string) => store.redis.pttl(key);

async function sent(id: string, claimant = "me"): Promise<void> {
  await journal.claim(id, claimant);
  expect(await journal.beginSending(task(id), claimant, intent)).toBe("permitted");
}

describe("sending again", () => {
  it("is refused when its judgement is of an earlier request, also by the same step", async () => {
    await sent("same-claimant");
    const again = { startByMs, sends: 1, sender: "me" };
    expect(await journal.beginSendingAgain(task("same-claimant"), "me", again)).toBe("permitted");
    expect(await journal.beginSendingAgain(task("same-claimant"), "frozen", again)).toBe("lost-claim");
    expect(await journal.entry("same-claimant")).toMatchObject({ claimant: "me", sends: 2 });
  });

  it("is refused while Redis is not the one of the last tick, or lost that moment", async () => {
    const watch = new RedisWatch(store);
    watch.mayStart = true;
    await sent("careful");
    const careful = new StartJournal(store, watch);
    const again = { startByMs, sends: 1, sender: "me" };
    expect(await careful.beginSendingAgain(task("careful"), "me", { ...again, slotMs: startByMs })).toBe("undecided");
    await watch.check();
    // As if that had been long ago: what was due before waits for a moment first.
    await store.redis.hset(store.key("watch"), "since", 1);
    await store.redis.zadd(store.key("losses"), 2_000, "1000:2000");
    expect(await careful.beginSendingAgain(task("careful"), "me", { ...again, slotMs: 1_500 })).toBe("loss");
    expect(await careful.entry("careful")).toMatchObject({ sends: 1 });
    expect(await careful.beginSendingAgain(task("careful"), "me", { ...again, slotMs: startByMs })).toBe("permitted");
    await store.redis.del(store.key("losses"));
  });

  it("begins a new time to look, and keeps when the first request went out", async () => {
    await sent("two-times");
    await store.redis.hset(entryKey("two-times"), "sentAtMs", 1_000, "lastSentAtMs", 1_000);
    await journal.beginSendingAgain(task("two-times"), "me", { startByMs, sends: 1, sender: "me" });
    const { sentAtMs, lastSentAtMs = 0 } = (await journal.entry("two-times")) ?? {};
    expect(sentAtMs).toBe(1_000);
    expect(lastSentAtMs).toBeGreaterThan(1_000);
  });
});

describe("taking a permission back", () => {
  it("is too late for a start that was answered or is over: no second request", async () => {
    await sent("answered");
    await journal.noteConfirmed(task("answered"), "answer");
    await sent("over");
    await journal.close(task("over"), { isOver: true });
    for (const id of ["answered", "over"]) {
      const before = await journal.entry(id);
      await journal.takeBack(task(id), "me");
      expect(await journal.entry(id)).toEqual(before);
      await journal.claim(id, "me");
      expect(await journal.beginSending(task(id), "me", intent)).toBe("lost-claim");
    }
  });

  it("takes back a confirmation by an activity: that is of another start", async () => {
    await sent("mistaken");
    await journal.noteConfirmed(task("mistaken"), "evidence");
    await journal.noteFinishSeen("mistaken", "a");
    await journal.noteOverdue("mistaken", 1_000);
    await journal.takeBack(task("mistaken"), "me");
    expect(await inFlight("mistaken")).toEqual([]);
    expect(await journal.entry("mistaken")).toMatchObject({ state: "claimed", sends: 0 });
    await sent("mistaken", "me again");
    const anew = { state: "sending", confirmedAtMs: undefined, finishSeenAtMs: undefined };
    expect(await journal.entry("mistaken")).toMatchObject(anew);
    expect(await journal.noteOverdue("mistaken", 2_000)).toBe(2_000);
  });

  it("leaves a confirmation by an activity that a request which left may have made", async () => {
    await sent("earlier");
    await journal.beginSendingAgain(task("earlier"), "me", { startByMs, sends: 1, sender: "me" });
    await sent("throttled");
    for (const [id, by] of [
      ["earlier", "sender"],
      ["throttled", "answer"],
    ] as const) {
      await journal.noteConfirmed(task(id), "evidence");
      const before = await journal.entry(id);
      await journal.takeBack(task(id), "me", by);
      expect(await journal.entry(id)).toEqual(before);
    }
  });

  it("takes the start out of flight: no activity is given to it", async () => {
    await sent("landed");
    expect(await inFlight("landed")).toEqual(["landed"]);
    await journal.takeBack(task("landed"), "me");
    expect(await inFlight("landed")).toEqual([]);
  });

  it("frees the sync job, but not for a start that another request may have begun", async () => {
    for (const id of ["denied", "in-doubt"]) {
      await journal.claim(id, "me");
      await leases.acquire(task(id), "me");
      await journal.beginSending(task(id), "me", intent);
    }
    await journal.beginSendingAgain(task("in-doubt"), "me", { startByMs, sends: 1, sender: "me" });
    for (const id of ["denied", "in-doubt"]) await journal.takeBack(task(id), "me");
    expect(await leases.holder(task("denied"))).toBeUndefined();
    expect(await leases.holder(task("in-doubt"))).toBe("in-doubt");
  });

  it("leaves the sync job to a run beside it that goes on", async () => {
    const beside = ["unsent", "goes-on"].map((id) => ({ ...task(id), target: "beside" }));
    for (const one of beside) {
      await journal.claim(one.id, "me");
      await leases.acquire(one, "me");
      await journal.beginSending(one, "me", intent);
    }
    for (const one of beside) {
      await journal.takeBack(one, "me");
      expect(await leases.holder(one)).toBe(one.id === "unsent" ? "goes-on" : undefined);
    }
  });

  it("forgets the blocked time: the next request gets its whole time", async () => {
    await sent("patient");
    await journal.noteDeniedUntil("patient", 1_000);
    await journal.noteWindowOver("patient", 1_000);
    await journal.takeBack(task("patient"), "me");
    await sent("patient", "me again");
    expect((await journal.entry("patient"))?.deniedUntilMs).toBeUndefined();
    expect(await journal.noteWindowOver("patient", 2_000)).toBe(2_000);
  });
});

describe("an entry", () => {
  it("keeps when the task was claimed first, by however many, and by the short way too", async () => {
    for (const id of ["early", "early-at-once"]) {
      await journal.claim(id, "me");
      await store.redis.hset(entryKey(id), "claimedAtMs", 1_000);
    }
    expect(await journal.claim("early", "another")).toMatchObject({ claimant: "another", claimedAtMs: 1_000 });
    expect(await journal.tryBeginSending(task("early-at-once"), "me", atOnce)).toBeDefined();
    expect((await journal.entry("early-at-once"))?.claimedAtMs).toBe(1_000);
  });

  it("says how far the feed was known only where that was noted", async () => {
    await sent("unknown-feed");
    await journal.tryBeginSending(task("unknown-at-once"), "me", atOnce);
    for (const id of ["unknown-feed", "unknown-at-once"]) expect((await journal.entry(id))?.knownSeq).toBeUndefined();
    await journal.claim("known-feed", "me");
    await journal.beginSending(task("known-feed"), "me", { ...intent, knownSeq: 7 });
    expect((await journal.entry("known-feed"))?.knownSeq).toBe(7);
  });

  it("is forgotten a month after its last step, and those in flight a week after", async () => {
    await journal.claim("only-claimed", "me");
    await sent("kept");
    await journal.tryBeginSending(task("kept-at-once"), "me", atOnce);
    for (const id of ["only-claimed", "kept", "kept-at-once"]) {
      expect(await keptMs(entryKey(id))).toBeGreaterThan(4 * weekMs);
      expect(await keptMs(entryKey(id))).toBeLessThan(5 * weekMs);
    }
    for (const id of ["kept", "kept-at-once"]) {
      expect(await keptMs(flightKey(id))).toBeGreaterThan(weekMs - 60_000);
      expect(await keptMs(flightKey(id))).toBeLessThanOrEqual(weekMs);
    }
  });

  it("exists only by a claim: without one it is neither closed nor answered", async () => {
    await journal.close(task("never"), { isOver: true });
    expect(await journal.entry("never")).toBeUndefined();
    await sent("closed");
    await journal.close(task("closed"), { isOver: false });
    await journal.noteConfirmed(task("closed"), "evidence");
    expect(await inFlight("closed")).toEqual([]);
    expect((await journal.entry("closed"))?.state).toBe("confirmed");
  });
});

describe("whose an activity is", () => {
  /** Starts of one sync job in flight: when each was sent, with "+" once it was answered. */
  const flying = async (syncJob: string, starts: Readonly<Record<string, string>>) => {
    await store.redis.hset(flightKey(syncJob), starts);
    return async (...ids: readonly string[]) => {
      const activities = ids.map((id) => ({ id, startedAtMs: undefined }));
      const { taskOf } = await journal.attribute({ ...task("any"), target: syncJob }, activities);
      return ids.map((id) => taskOf.get(id));
    };
  };

  it("without a time is the earlier start's first; by name when both went out at once", async () => {
    const ofTwo = await flying("earlier", { "a-late": "2000+", "b-early": "1000+" });
    expect(await ofTwo("first", "second")).toEqual(["b-early", "a-late"]);
    const ofOne = await flying("at-once", { b: "1000+", a: "1000+" });
    expect(await ofOne("first", "second")).toEqual(["a", "b"]);
  });

  it("without a time is a start's that has none yet, also of an earlier walk", async () => {
    const owners = await flying("walks", { one: "1000+", two: "2000+" });
    expect(await owners("first")).toEqual(["one"]);
    expect(await owners("second")).toEqual(["two"]);
  });

  it("is remembered for the newest thousand of a sync job", async () => {
    const owners = await flying("busy", { one: "1000+" });
    const ids = Array.from({ length: 1_000 }, (_, index) => `old ${index}`);
    await owners(...ids);
    await owners("newest");
    const given = store.key("attributions", "main", "", "busy");
    expect(await store.redis.hlen(given)).toBe(1_000);
    expect(await store.redis.zcard(store.key("attribution-order", "main", "", "busy"))).toBe(1_000);
    expect(await store.redis.hget(given, "newest")).toBe("one");
    expect(await keptMs(given)).toBeGreaterThan(weekMs - 60_000);
  });
});
