import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStore, type Store } from "../../../src/store/redis.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();
let store: Store;
let journal: StartJournal;

beforeAll(async () => {
  store = await openStore(target);
  journal = new StartJournal(store);
});
afterAll(() => store.close());

const farAway = { startByMs: 9_999_999_999_999, baseline: "{}" };

describe("the start journal", () => {
  it("permits the request exactly once, whoever asks and however often", async () => {
    await journal.claim("once", "me");
    const answers = await Promise.all(Array.from({ length: 30 }, () => journal.beginSending("once", "me", farAway)));
    expect(answers.filter((answer) => answer === "permitted")).toHaveLength(1);
  });

  it("refuses a worker whose claim another one has taken over", async () => {
    await journal.claim("zombie", "first");
    await journal.claim("zombie", "second");
    expect(await journal.beginSending("zombie", "first", farAway)).toBe("lost-claim");
    expect(await journal.beginSending("zombie", "second", farAway)).toBe("permitted");
  });

  it("refuses after the start-by time", async () => {
    await journal.claim("late", "me");
    expect(await journal.beginSending("late", "me", { startByMs: 1, baseline: "{}" })).toBe("too-late");
    expect((await journal.claim("late", "me")).state).toBe("claimed");
  });

  it("refuses a task that was never claimed", async () => {
    expect(await journal.beginSending("never", "me", farAway)).toBe("lost-claim");
  });

  it("shows a redelivered task that its request went out, with what was known before", async () => {
    await journal.claim("lost", "dead");
    await journal.beginSending("lost", "dead", { startByMs: 9_999_999_999_999, baseline: '{"activities":7}' });
    const entry = await journal.claim("lost", "heir");
    expect(entry).toMatchObject({
      state: "sending",
      owner: "dead",
      baseline: '{"activities":7}',
      lost: undefined,
      answeredAtMs: undefined,
    });
    expect(entry.sentAtMs).toBeGreaterThanOrEqual(entry.claimedAtMs);
    expect(await journal.beginSending("lost", "heir", farAway)).toBe("lost-claim");
  });

  it("keeps the first reason why an answer is missing", async () => {
    await journal.claim("why", "me");
    await journal.beginSending("why", "me", farAway);
    expect(await journal.answerLost("why", { kind: "unknown", detail: "reset" })).toEqual({
      kind: "unknown",
      detail: "reset",
    });
    expect(await journal.answerLost("why", { kind: "crash", detail: "" })).toEqual({
      kind: "unknown",
      detail: "reset",
    });
    expect((await journal.claim("why", "heir")).lost).toEqual({ kind: "unknown", detail: "reset" });
  });

  it("lets a task send again when its request surely did not leave", async () => {
    await journal.claim("refused", "me");
    await journal.beginSending("refused", "me", farAway);
    await journal.notSent("refused");
    await journal.claim("refused", "me again");
    expect(await journal.beginSending("refused", "me again", farAway)).toBe("permitted");
  });

  it("lets nothing happen any more once settled", async () => {
    await journal.claim("over", "me");
    await journal.settle("over");
    expect((await journal.claim("over", "me")).state).toBe("settled");
    expect(await journal.beginSending("over", "me", farAway)).toBe("lost-claim");
    await journal.answered("over");
    expect((await journal.claim("over", "me")).state).toBe("settled");
  });

  it("treats a state that only a newer version knows as one that never sends", async () => {
    await store.redis.hset(store.key("start", "newer"), "state", "negotiating");
    expect((await journal.claim("newer", "me")).state).toBe("sending");
    expect(await journal.beginSending("newer", "me", farAway)).toBe("lost-claim");
  });

  it("names the tasks that stand for an expanded one", async () => {
    expect(await journal.expandedInto("masks")).toBeUndefined();
    await journal.expanded("masks", ["a", "b"]);
    expect(await journal.expandedInto("masks")).toEqual(["a", "b"]);
  });
});
