// Redis forgets outcomes, here by hand; whoever wrote them writes them again where that is still
// true.
import { beforeEach, describe, expect, it } from "vitest";
import { History } from "../../../src/store/history.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { RecentOutcomes } from "../../../src/tasks/recorder.ts";
import { journalTask } from "../../support/journal-task.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { storeForTest } from "../../support/redis.ts";
import { TestLog } from "../../support/test-log.ts";

let log: TestLog;
let recent: RecentOutcomes;
let nowMs = 0;

const named = (id: string) => ({ policy: "nightly", id });

const store = await storeForTest();
const history = new History(store, { limits: { count: 10_000, forMs: 86_400_000 } });
const journal = new StartJournal(store);
beforeEach(async () => {
  log = new TestLog();
  nowMs = 1_000_000;
  recent = new RecentOutcomes(history, { clock: { monotonicMs: () => nowMs }, log });
  await store.redis.del(
    ...["outcomes", "outcome-index"].map((name) => store.key(name, "nightly")),
    store.key("unpublished"),
  );
});

const unsent = { status: "skipped", reason: "overlap", startedAt: null, durationMs: null } as const;
const intent = { startByMs: Date.now() + 3_600_000, baseline: "" };

/** Loses all outcomes, and what the journal held of these tasks. */
async function forget(...starts: readonly string[]): Promise<void> {
  await store.redis.del(
    ...["outcomes", "outcome-index"].map((name) => store.key(name, "nightly")),
    store.key("unpublished"),
  );
  for (const id of starts) await store.redis.del(store.key("start", id));
}

/** As a Redis that went back to a claim has it. */
async function backToClaim(id: string, claimant: string): Promise<void> {
  await forget(id);
  await journal.claim(id, claimant);
}

describe("outcomes that Redis has forgotten", () => {
  it("are written again with all that they said, and not told once more", async () => {
    const outcome = testOutcome({ taskId: "lost" });
    await recent.record(outcome, { state: "confirmed", isAnswer: true });
    await forget("lost");
    await recent.restore(nowMs);
    expect(await history.outcome(named("lost"))).toEqual(outcome);
    expect(await history.claimUnpublished(named("lost"))).toBeUndefined();
    expect(log.events).toMatchObject([{ event: "outcome.restored", level: "warn", count: 1 }]);
  });

  it("settle the start again, so that no later worker sends", async () => {
    await recent.record(testOutcome({ taskId: "anew" }), { state: "confirmed", isAnswer: true });
    await backToClaim("anew", "another");
    await recent.restore(nowMs);
    expect(await journal.beginSending(journalTask("anew"), "another", intent)).toBe("lost-claim");
    expect((await journal.claim("anew", "a third")).state).toBe("settled");
  });

  it("saying not sent return only where the journal shows their claim", async () => {
    for (const id of ["kept", "taken", "gone"]) {
      await journal.claim(id, "me");
      expect(await recent.record(testOutcome({ taskId: id, ...unsent }), { state: "claimed", claimant: "me" })).toBe(
        "recorded",
      );
    }
    await backToClaim("kept", "me");
    await backToClaim("taken", "another");
    expect(await journal.beginSending(journalTask("taken"), "another", intent)).toBe("permitted");
    await store.redis.del(store.key("start", "gone"));
    await recent.restore(nowMs);
    expect((await history.newest(10)).map(({ taskId }) => taskId)).toEqual(["kept"]);
    expect((await journal.entry("taken"))?.state).toBe("sending");
  });

  it("stand as another worker has published them meanwhile", async () => {
    await recent.record(testOutcome({ taskId: "told-anew" }));
    await forget();
    const other = testOutcome({ taskId: "told-anew", status: "unknown", reason: "redis-loss" });
    await history.record(other);
    await recent.restore(nowMs);
    expect(await history.outcome(named("told-anew"))).toEqual(other);
    expect(log.events).toEqual([]);
  });

  it("are remembered for 30 s before Redis was last seen, and the newest 5,000", async () => {
    await recent.record(testOutcome({ taskId: "old" }));
    nowMs += 1;
    await recent.record(testOutcome({ taskId: "just in time" }));
    nowMs += 30_000;
    await forget();
    await recent.restore(nowMs);
    expect((await history.newest(10)).map(({ taskId }) => taskId)).toEqual(["just in time"]);
    for (let index = 0; index <= 5_000; index += 1) await recent.record(testOutcome({ taskId: `many-${index}` }));
    await forget();
    await recent.restore(nowMs);
    expect(await store.redis.zcard(store.key("outcome-index", "nightly"))).toBe(5_000);
    expect(await history.outcome(named("many-0"))).toBeUndefined();
  });

  it("that cannot be written now are written with the next Redis", async () => {
    let isGone = false;
    const record = (...args: Parameters<History["record"]>) =>
      isGone ? Promise.reject(new Error("Redis is out of reach")) : history.record(...args);
    const markPublished = (ids: readonly string[]) => history.markPublished(ids);
    recent = new RecentOutcomes({ record, markPublished }, { clock: { monotonicMs: () => nowMs }, log });
    await recent.record(testOutcome({ taskId: "later" }));
    await forget();
    isGone = true;
    await recent.restore(nowMs);
    expect(log.named("outcome.not-restored")).toHaveLength(1);
    isGone = false;
    await recent.restore(nowMs);
    expect(await history.outcome(named("later"))).toBeDefined();
  });
});
