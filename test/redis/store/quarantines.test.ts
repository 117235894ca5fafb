import { describe, expect, it, onTestFinished, vi } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import { History } from "../../../src/store/history.ts";
import { Quarantines } from "../../../src/store/pauses.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { createQuarantineCounter, createRecorder } from "../../../src/tasks/recorder.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { storeForTest } from "../../support/redis.ts";

const store = await storeForTest();
const quarantines = new Quarantines(store);
const rule = { after: 3, forMs: 3_600_000 };

const bad = (policy: string, slotMs: number, forMs = rule.forMs) =>
  quarantines.count({ policy, slotMs, isSuccess: false, note: `slot ${slotMs} failed` }, { ...rule, forMs });
const success = (policy: string, slotMs: number) =>
  quarantines.count({ policy, slotMs, isSuccess: true, note: "a success: task-7" }, rule);
const of = async (policy: string) => (await quarantines.all()).find(({ name }) => name === policy);

describe("a quarantine", () => {
  it("follows failures in a row, is reported to one caller, and pauses the schedule", async () => {
    expect(await bad("nightly", 1_000)).toBe("nothing");
    expect(await bad("nightly", 2_000)).toBe("nothing");
    const words = await Promise.all([bad("nightly", 3_000), bad("nightly", 3_000), bad("nightly", 4_000)]);
    expect(words.toSorted()).toEqual(["nothing", "nothing", "quarantined"]);
    const pause = await of("nightly");
    expect(pause).toMatchObject({ scope: "policy", cause: "quarantine", actor: "syncline", endedBy: null });
    expect(pause?.note).toMatch(/^3 slots in a row failed; slot [34]000 failed$/);
    expect((pause?.untilMs ?? 0) - (pause?.sinceMs ?? 0)).toBe(3_600_000);
  });

  it("counts a slot once however many tasks fail, and not when one succeeds", async () => {
    for (let task = 0; task < 20; task += 1) expect(await bad("wide", 1_000)).toBe("nothing");
    for (const slotMs of [2_000, 3_000, 4_000, 5_000]) {
      await bad("wide", slotMs);
      await success("wide", slotMs);
      expect(await bad("wide", slotMs)).toBe("nothing");
    }
    expect(await of("wide")).toBeUndefined();
  });

  it("does not count a slot of which another task had ended well before", async () => {
    const count = createQuarantineCounter(quarantines, () => ({ ...rule, after: 1 }), silentLog);
    const { record } = createRecorder(new History(store), silentLog, count);
    const end = (target: string, hour: number, status: "succeeded" | "failed" | "skipped") => {
      const reason = { succeeded: "completed", failed: "run-failed", skipped: "overlap" }[status];
      const at = (minute: number) => new Date(Date.UTC(2026, 10, 21, hour, minute)).toISOString();
      const when = { slot: at(0), finishedAt: at(Number(target)) };
      const taskId = `pair__run__${target}__${hour}`;
      return record(testOutcome({ policy: "pair", taskId, target, status, reason, ...when }));
    };
    await end("42", 1, "succeeded");
    await end("43", 1, "failed");
    expect(await of("pair")).toBeUndefined();
    await end("42", 2, "skipped");
    await end("43", 2, "failed");
    expect(await of("pair")).toMatchObject({ untilMs: expect.any(Number), endedBy: null });
  });

  it("is ended by a success, and the count begins anew", async () => {
    for (const slotMs of [1_000, 2_000, 3_000]) await bad("mended", slotMs);
    expect(await success("mended", 9_000)).toBe("released");
    expect(await of("mended")).toMatchObject({ endedBy: "a success: task-7" });
    expect([await bad("mended", 10_000), await bad("mended", 11_000)]).toEqual(["nothing", "nothing"]);
    expect(await bad("mended", 12_000)).toBe("quarantined");
  });

  it("is ended by a success among the failures, not by an older slot's late one", async () => {
    await bad("slow", 2_000);
    expect(await success("slow", 1_000)).toBe("nothing");
    for (const slotMs of [4_000, 5_000]) await bad("slow", slotMs);
    expect(await success("slow", 1_500)).toBe("nothing");
    expect(await of("slow")).toMatchObject({ endedBy: null });
    expect(await success("slow", 3_000)).toBe("released");
    expect(await of("slow")).toMatchObject({ endedBy: "a success: task-7" });
  });

  it("is ended by hand, with who did it, and the count begins anew", async () => {
    expect(await quarantines.release("by-hand", "ada@desk")).toBeUndefined();
    for (const slotMs of [1_000, 2_000, 3_000]) await bad("by-hand", slotMs);
    expect(await quarantines.release("by-hand", "ada@desk")).toMatchObject({ name: "by-hand", endedBy: "ada@desk" });
    expect(await quarantines.release("by-hand", "ada@desk")).toBeUndefined();
    expect(await bad("by-hand", 4_000)).toBe("nothing");
  });

  it("ends when its time is up; then one more failure is enough", async () => {
    for (const slotMs of [1_000, 2_000]) await bad("trial", slotMs, 1);
    expect(await bad("trial", 3_000, 1)).toBe("quarantined");
    let word = await bad("trial", 4_000, 1);
    while (word !== "quarantined") word = await bad("trial", 4_000, 1);
    expect((await of("trial"))?.note).toBe("4 slots in a row failed; slot 4000 failed");
  });

  it("writes nothing for a policy that is well", async () => {
    expect(await success("well", 1_000)).toBe("nothing");
    expect(await store.redis.hexists(store.key("quarantines"), "well")).toBe(0);
  });
});

describe("the quarantines of removed policies", () => {
  const dayMs = 86_400_000;
  const kept = async () => (await store.redis.hkeys(store.key("quarantines"))).toSorted();

  it("go a month after their last failure and their end; those of others stay", async () => {
    await store.redis.del(store.key("quarantines"));
    const nowMs = await redisTimeMs(store);
    for (const policy of ["known", "counting"]) await bad(policy, nowMs);
    for (const slotMs of [1_000, 2_000, 3_000]) await bad("quarantined", slotMs);
    await bad("older", nowMs - 2 * dayMs);
    await quarantines.tidy(new Set(["known"]), nowMs + 30 * dayMs);
    expect(await kept()).toEqual(["counting", "known", "quarantined"]);
    await quarantines.tidy(new Set(["known"]), nowMs + 32 * dayMs);
    expect(await kept()).toEqual(["known"]);
  });

  it("stay when a failure is counted meanwhile", async () => {
    await store.redis.del(store.key("quarantines"));
    const nowMs = await redisTimeMs(store);
    for (const policy of ["back", "gone"]) await bad(policy, 1_000);
    const read = store.redis.hgetall.bind(store.redis);
    const spy = vi.spyOn(store.redis, "hgetall").mockImplementationOnce(async (key) => {
      const entries = await read(key);
      await bad("back", nowMs);
      return entries;
    });
    onTestFinished(() => spy.mockRestore());
    await quarantines.tidy(new Set(), nowMs);
    expect(await kept()).toEqual(["back"]);
    expect(await bad("back", nowMs + 1)).toBe("quarantined");
  });
});
