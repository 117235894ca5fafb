import { describe, expect, it } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import type { Outcome } from "../../../src/model/outcome.ts";
import { History } from "../../../src/store/history.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { readTroubles, troublesKey } from "../../../src/store/troubles.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { testPolicy } from "../../support/policies.ts";
import { storeForTest } from "../../support/redis.ts";

let ended = 0;

const store = await storeForTest();

/** One more task ends at this instant. */
async function end(policy: string, changes: Partial<Outcome>, atMs = Date.now()): Promise<void> {
  ended += 1;
  const finishedAt = new Date(atMs).toISOString();
  await new History(store).record(testOutcome({ taskId: `task-${ended}`, policy, finishedAt, ...changes }));
}

async function troublesOf(policy: string, action?: Policy["action"]): Promise<string[]> {
  const notes = await readTroubles(store, action && [testPolicy({ name: policy, action })]);
  return notes.flatMap((one) => (one.policy === policy ? [one.trouble] : [])).toSorted();
}

describe("the troubles of policies in Redis", () => {
  it("are a sync job that failed last, until it succeeds; others count apart", async () => {
    await end("two", { target: "11", status: "failed", reason: "run-failed" });
    await end("two", { target: "4", status: "succeeded", reason: "completed" });
    expect(await troublesOf("two")).toEqual(["failing"]);
    await end("two", { target: "11", status: "skipped", reason: "overlap" });
    expect(await troublesOf("two")).toEqual(["failing"]);
    await end("two", { target: "11", status: "succeeded", reason: "completed" });
    expect(await troublesOf("two")).toEqual([]);
  });

  it("are conflicts until a run leaves none, and a start of which nothing is known", async () => {
    await end("found", { status: "conflicts", reason: "new-conflicts", newConflicts: 2 });
    expect(await troublesOf("found")).toEqual(["conflicts"]);
    await end("found", { status: "succeeded", reason: "completed", stillConflicts: 1 });
    expect(await troublesOf("found")).toEqual(["conflicts"]);
    await end("found", { status: "succeeded", reason: "completed" });
    expect(await troublesOf("found")).toEqual(["conflicts"]);
    await end("found", { status: "succeeded", reason: "completed", stillConflicts: 0 });
    expect(await troublesOf("found")).toEqual([]);
    await end("lost", { status: "unknown", reason: "answer-lost" });
    expect(await troublesOf("lost")).toEqual(["failing", "unknown"]);
    await end("ran", { status: "unknown", reason: "no-evidence" });
    expect(await troublesOf("ran")).toEqual(["failing"]);
  });

  it("are conflicts that are not counted until a run by hand brings none", async () => {
    await end("uncounted", { status: "conflicts", reason: "new-conflicts", newConflicts: 2 });
    await end("uncounted", { origin: "manual", status: "succeeded", reason: "completed" });
    expect(await troublesOf("uncounted")).toEqual([]);
  });

  it("are no failure of a run by hand, whose success ends one all the same", async () => {
    await end("hand", { origin: "manual", status: "failed", reason: "run-failed" });
    expect(await troublesOf("hand")).toEqual([]);
    await end("hand", { status: "timed-out", reason: "deadline" });
    await end("hand", { origin: "manual", status: "succeeded", reason: "completed" });
    expect(await troublesOf("hand")).toEqual([]);
  });

  it("are missed slots, noted in the recording step, for any later process", async () => {
    const ledger = new SlotLedger(store);
    await ledger.openWatermarks([{ policy: "late", schedule: "s" }], 1_000);
    const nowMs = Date.now();
    const records = [{ slotMs: 2_000, state: "missed", detail: "catch-up-none" } as const];
    const step = { policy: "late", expectedWatermarkMs: 1_000, newWatermarkMs: 2_000, tasks: [], records };
    // Noted as of then: what is told for an hour would be over for a slot of long ago.
    expect(await ledger.record([{ ...step, plannedAtMs: nowMs }])).toEqual([{ recorded: true, watermarkMs: 2_000 }]);
    expect((await readTroubles(store)).filter(({ policy }) => policy === "late")).toEqual([
      { trouble: "missed", policy: "late", atMs: nowMs },
    ]);
    await end("late", { status: "missed", reason: "too-late" });
    expect(await troublesOf("late")).toEqual(["missed", "missed"]);
    expect(await troublesOf("late", { kind: "run", syncJobs: [1] })).toEqual(["missed"]);
  });

  it("are none of what its policy does not name any more", async () => {
    await end("less", { target: "42", status: "failed", reason: "run-failed" });
    await end("less", { target: "43", status: "missed", reason: "too-late" });
    expect(await troublesOf("less", { kind: "run", syncJobs: [42, 43] })).toEqual(["failing", "missed"]);
    expect(await troublesOf("less", { kind: "run", syncJobs: [43] })).toEqual(["missed"]);
    expect(await troublesOf("less", { kind: "run", syncJobs: [44] })).toEqual([]);
    expect(await troublesOf("less", { kind: "run", fromMasks: {} })).toEqual(["failing", "missed"]);
  });

  it("are let go of after 31 days, and are never more than 20,000", async () => {
    await end("old", { status: "failed", reason: "run-failed" }, Date.now() - 32 * 86_400_000);
    await end("newer", { status: "failed", reason: "run-failed" });
    expect(await troublesOf("old")).toEqual([]);
    const many = Array.from({ length: 20_000 }, (_, index) => [index - 30_000 + Date.now(), `failing/p${index}/1`]);
    await store.redis.zadd(troublesKey(store), ...many.flat());
    await end("newest", { status: "failed", reason: "run-failed" });
    expect(await store.redis.zcard(troublesKey(store))).toBe(20_000);
    expect(await troublesOf("newest")).toEqual(["failing"]);
  });
});
