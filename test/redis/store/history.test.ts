import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRecorder } from "../../../src/outcome/recorder.ts";
import { History } from "../../../src/store/history.ts";
import { leaseKey } from "../../../src/store/leases.ts";
import { openStore, type Store } from "../../../src/store/redis.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();
let store: Store;
let history: History;

beforeAll(async () => {
  store = await openStore(target);
  history = new History(store);
});
afterAll(() => store.close());

describe("the history", () => {
  it("keeps the first outcome of a task, whoever comes later", async () => {
    const first = testOutcome({ taskId: "once" });
    expect(await history.record(first)).toBe("recorded");
    expect(await history.record(testOutcome({ taskId: "once", status: "failed" }))).toBe("stands");
    expect(await history.outcome("once")).toEqual(first);
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
    const { record, retell } = createRecorder(history, { info: note, warn: note, error: note });
    await Promise.all(
      Array.from({ length: 20 }, (_, index) => record(testOutcome({ taskId: "raced", detail: `worker ${index}` }))),
    );
    expect(lines).toEqual(["task.finished"]);
    expect(await retell("raced")).toBeUndefined();
    expect(lines).toEqual(["task.finished"]);
  });

  it("has an outcome told by the next worker when its recorder died before it said a word, after some time for it", async () => {
    const outcome = testOutcome({ taskId: "untold" });
    expect(await history.record(outcome)).toBe("recorded");
    const told: unknown[] = [];
    const note = (event: string, fields?: object) => told.push([event, fields]);
    const { record, retell } = createRecorder(history, { info: note, warn: note, error: note });
    expect(await record(outcome)).toBe("stands");
    expect(await retell("untold")).toBeGreaterThan(0);
    expect(told).toEqual([]);
    await store.redis.zadd(store.key("untold"), 1, "untold");
    expect(await retell("untold")).toBeUndefined();
    const { v: _version, ...fields } = outcome;
    expect(told).toEqual([["task.finished", fields]]);
    expect(await retell("untold")).toBeUndefined();
    expect(told).toHaveLength(1);
  });

  it("keeps what the service answered also when Redis was emptied since the request, and nothing can be sent any more", async () => {
    const journal = new StartJournal(store);
    const answer = { state: "answered", isAnswer: true } as const;
    expect(await history.record(testOutcome({ taskId: "emptied", status: "accepted" }), answer)).toBe("recorded");
    expect((await journal.claim("emptied", "another")).state).toBe("settled");
    // What no answer says rests on what stood in the journal.
    const unsaid = { state: "answered" } as const;
    expect(await history.record(testOutcome({ taskId: "guessed" }), unsaid)).toBe("moved-on");
  });

  it("takes no outcome that the start journal speaks against", async () => {
    const journal = new StartJournal(store);
    const outcome = testOutcome({ taskId: "moved" });
    const task = { ...outcome, id: "moved" };
    await journal.claim("moved", "slow");
    await journal.claim("moved", "quick");
    expect(await history.record(outcome, { state: "claimed", owner: "slow" })).toBe("moved-on");
    await journal.beginSending(task, "quick", { startByMs: 9_999_999_999_999, baseline: "" });
    await journal.answered(task);
    expect(await history.record(outcome, { state: "sending" })).toBe("moved-on");
    expect(await history.outcome("moved")).toBeUndefined();
    expect(await history.record(outcome, { state: "answered" })).toBe("recorded");
    expect((await journal.claim("moved", "late")).state).toBe("settled");
    expect(await history.record(outcome, { state: "answered" })).toBe("stands");
  });

  it("takes none of a task for which others stand, and gives its sync job back all the same", async () => {
    const journal = new StartJournal(store);
    const outcome = testOutcome({ taskId: "masks" });
    await journal.claim("masks", "me");
    await store.redis.set(leaseKey(store, outcome), "masks");
    await journal.expanded("masks", ["one", "two"]);
    expect(await history.record(outcome)).toBe("stands");
    expect(await history.outcome("masks")).toBeUndefined();
    expect(await store.redis.exists(leaseKey(store, outcome))).toBe(0);
  });
});
