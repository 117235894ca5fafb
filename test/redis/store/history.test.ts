import { describe, expect, it } from "vitest";
import type { Outcome } from "../../../src/model/outcome.ts";
import { History } from "../../../src/store/history.ts";
import { leaseKey } from "../../../src/store/leases.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { createRecorder } from "../../../src/tasks/recorder.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { storeForTest } from "../../support/redis.ts";

const named = (id: string) => ({ policy: "nightly", id });

const store = await storeForTest();
const history = new History(store);

describe("the history", () => {
  it("keeps the first outcome of a task, against any later one", async () => {
    const first = testOutcome({ taskId: "once" });
    expect(await history.record(first)).toBe("recorded");
    expect(await history.record(testOutcome({ taskId: "once", status: "failed" }))).toBe("already-recorded");
    expect(await history.outcome(named("once"))).toEqual(first);
  });

  it("answers the newest first, of all policies or of one", async () => {
    const at = (second: number) => `2026-11-22T00:00:0${second}.000Z`;
    for (const second of [2, 1, 3])
      await history.record(
        testOutcome({ taskId: `order-${second}`, policy: `p${second % 2}`, finishedAt: at(second) }),
      );
    expect((await history.newest(3)).map(({ taskId }) => taskId)).toEqual(["order-3", "order-2", "order-1"]);
    expect((await history.newest(10, "p1")).map(({ taskId }) => taskId)).toEqual(["order-3", "order-1"]);
  });

  it("leads to exactly one log line, though many workers end the same task at once", async () => {
    const lines: string[] = [];
    const note = (event: string) => lines.push(event);
    const { record, republish } = createRecorder(history, { info: note, warn: note, error: note });
    await Promise.all(
      Array.from({ length: 20 }, (_, index) => record(testOutcome({ taskId: "raced", detail: `worker ${index}` }))),
    );
    expect(lines).toEqual(["task.finished"]);
    expect(await republish(named("raced"))).toBeUndefined();
    expect(lines).toEqual(["task.finished"]);
  });

  it("has the next worker publish an outcome whose recorder died, after a delay", async () => {
    const outcome = testOutcome({ taskId: "untold" });
    expect(await history.record(outcome)).toBe("recorded");
    const told: unknown[] = [];
    const note = (event: string, fields?: object) => told.push([event, fields]);
    const { record, republish } = createRecorder(history, { info: note, warn: note, error: note });
    expect(await record(outcome)).toBe("already-recorded");
    expect(await republish(named("untold"))).toBeGreaterThan(0);
    expect(told).toEqual([]);
    await store.redis.zadd(store.key("unpublished"), 1, "untold");
    expect(await republish(named("untold"))).toBeUndefined();
    const { v: _version, ...fields } = outcome;
    expect(told).toEqual([["task.finished", fields]]);
    expect(await republish(named("untold"))).toBeUndefined();
    expect(told).toHaveLength(1);
  });

  it("keeps the service's answer also after Redis was emptied; no start can follow", async () => {
    const journal = new StartJournal(store);
    const answer = { state: "confirmed", isAnswer: true } as const;
    expect(await history.record(testOutcome({ taskId: "emptied", status: "accepted" }), answer)).toBe("recorded");
    expect((await journal.claim("emptied", "another")).state).toBe("settled");
    // What no answer says rests on what stood in the journal.
    const unsaid = { state: "confirmed" } as const;
    expect(await history.record(testOutcome({ taskId: "guessed" }), unsaid)).toBe("superseded");
  });

  it("takes no outcome that the start journal speaks against", async () => {
    const journal = new StartJournal(store);
    const outcome = testOutcome({ taskId: "moved" });
    const task = { ...outcome, id: "moved" };
    await journal.claim("moved", "slow");
    await journal.claim("moved", "quick");
    expect(await history.record(outcome, { state: "claimed", claimant: "slow" })).toBe("superseded");
    await journal.beginSending(task, "quick", { startByMs: 9_999_999_999_999, baseline: "" });
    await journal.noteConfirmed(task, "evidence");
    expect(await history.record(outcome, { state: "sending" })).toBe("superseded");
    expect(await history.outcome(named("moved"))).toBeUndefined();
    expect(await history.record(outcome, { state: "confirmed" })).toBe("recorded");
    expect((await journal.claim("moved", "late")).state).toBe("settled");
    expect(await history.record(outcome, { state: "confirmed" })).toBe("already-recorded");
  });

  it("refuses an outcome for a fanned-out task, and still frees its sync job", async () => {
    const journal = new StartJournal(store);
    const outcome = testOutcome({ taskId: "masks" });
    await journal.claim("masks", "me");
    await store.redis.set(leaseKey(store, outcome), "masks");
    await journal.noteFannedOut("masks", ["one", "two"]);
    expect(await history.record(outcome)).toBe("already-recorded");
    expect(await history.outcome(named("masks"))).toBeUndefined();
    expect(await store.redis.exists(leaseKey(store, outcome))).toBe(0);
  });
});

describe("how many outcomes are kept", () => {
  const atMs = (second: number) => Date.parse("2026-11-22T00:00:00.000Z") + second * 1_000;
  const iso = (second: number) => new Date(atMs(second)).toISOString();
  const limits = { count: 100, forMs: 3_600_000 };
  const keeping = () => new History(store, { limits });
  const end = (policy: string, second: number, more: Partial<Outcome> = {}) =>
    keeping().record(
      testOutcome({
        ...{ taskId: `${policy}__run__42__${second}`, policy, slot: iso(second), finishedAt: iso(second) },
        ...more,
      }),
    );

  it("is so many of each policy, whatever the others do, and it says since when", async () => {
    await end("quiet", 1);
    for (let second = 1; second <= 111; second += 1) await end("busy", second);
    expect(await history.newest(1_000, "busy")).toHaveLength(111);
    expect(await history.keptSinceMs("busy")).toBeUndefined();
    for (let second = 112; second <= 130; second += 1) await end("busy", second);
    expect(await history.newest(1_000, "busy")).toHaveLength(106);
    expect(await history.keptSinceMs("busy")).toBe(atMs(24));
    expect(await history.outcome({ policy: "busy", id: "busy__run__42__24" })).toBeUndefined();
    expect(await history.outcome({ policy: "busy", id: "busy__run__42__25" })).toBeDefined();
    expect(await history.newest(1_000, "quiet")).toHaveLength(1);
    expect(await history.keptSinceMs("quiet")).toBeUndefined();
    expect(await history.keptSinceOf(["quiet", "busy", "unknown"])).toEqual([undefined, atMs(24), undefined]);
  });

  it("drops outcomes far older than the policy's newest, never the newest", async () => {
    const slots = async () => (await history.newest(100, "nightly-old")).map(({ slot }) => slot);
    for (let second = 1; second <= 15; second += 1) await end("nightly-old", second);
    await end("nightly-old", 3_612);
    expect(await slots()).toEqual([3_612, 15, 14, 13, 12].map(iso));
    expect(await history.keptSinceMs("nightly-old")).toBe(atMs(11));
    for (let hour = 2; hour <= 12; hour += 1) await end("nightly-old", hour * 3_612);
    expect(await slots()).toEqual([iso(12 * 3_612)]);
    expect(await history.keptSinceMs("nightly-old")).toBe(atMs(11 * 3_612));
  });

  it("counts by slot when a worker's clock is late, so no kept slot lacks its outcome", async () => {
    for (let second = 1; second <= 112; second += 1) await end("late", second, { finishedAt: iso(second - 30) });
    expect(await history.keptSinceMs("late")).toBe(atMs(12));
  });

  it("does not go back when one that is late comes in", async () => {
    for (let second = 101; second <= 212; second += 1) await end("back", second);
    expect(await history.keptSinceMs("back")).toBe(atMs(112));
    for (let second = 1; second <= 12; second += 1) expect(await end("back", second)).toBe("recorded");
    expect(await history.newest(1_000, "back")).toHaveLength(100);
    expect(await history.keptSinceMs("back")).toBe(atMs(112));
  });

  it("goes down a thousand a step, when fewer are to be kept from now on", async () => {
    const most = new History(store, { limits: { ...limits, count: 10_000 } });
    const slot = iso(1);
    for (let index = 1; index <= 1_503; index += 1)
      await most.record(
        testOutcome({ taskId: `down__run__${index}__1`, policy: "down", slot, finishedAt: iso(index) }),
      );
    await end("down", 1_504);
    expect(await history.newest(20_000, "down")).toHaveLength(504);
    for (let second = 1_505; second <= 1_512; second += 1) await end("down", second);
    expect(await history.newest(20_000, "down")).toHaveLength(100);
  });

  it("does not touch the order: the newest of all come from many policies, each once", async () => {
    const names = Array.from({ length: 30 }, (_, index) => `many-${index}`);
    const all: string[] = [];
    for (let second = 1; second <= 300; second += 1) {
      const policy = second > 290 ? "many-0" : (names[(second * 7) % 30] ?? "");
      await end(policy, 200_000 + second);
      all.unshift(`${policy}__run__42__${200_000 + second}`);
    }
    for (const count of [1, 10, 40, 300])
      expect((await history.newest(count)).map(({ taskId }) => taskId)).toEqual(all.slice(0, count));
  });

  it("is all for a while when its policy is removed, and then nothing", async () => {
    await end("gone", 1);
    await end("stays", 1);
    await end("by-hand.run", 1);
    const lives = (policy: string) =>
      Promise.all(["outcomes", "outcome-index"].map((name) => store.redis.ttl(store.key(name, policy))));
    await history.tidy(new Set(["stays"]));
    const [first] = await lives("gone");
    expect(first).toBeGreaterThan(31 * 86_400);
    expect(await lives("stays")).toEqual([-1, -1]);
    expect(await lives("by-hand.run")).toEqual([-1, -1]);
    await history.tidy(new Set(["stays", "gone"]));
    expect(await lives("gone")).toEqual([-1, -1]);
    await store.redis.del(store.key("outcomes", "gone"), store.key("outcome-index", "gone"));
    await history.tidy(new Set(["stays"]));
    expect((await history.keptSince()).has("gone")).toBe(false);
    expect((await history.keptSince()).has("stays")).toBe(true);
  });
});
