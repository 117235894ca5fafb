import { describe, expect, it, vi } from "vitest";
import type { Outcome } from "../../../src/model/outcome.ts";
import { History } from "../../../src/store/history.ts";
import {
  acknowledgePolicy,
  type ReadStates,
  readFirstEnds,
  readPolicyStates,
  rememberStates,
  usualDurationMs,
  worstTarget,
} from "../../../src/store/policy-states.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { storeForTest } from "../../support/redis.ts";

const store = await storeForTest();
const history = new History(store);
const startMs = Date.parse("2026-11-22T00:00:00.000Z");
const atMs = (minute: number) => startMs + minute * 60_000;

/** A task that ends at this minute, in this way. */
function ended(policy: string, minute: number, changes: Partial<Outcome> = {}): Outcome {
  const at = new Date(atMs(minute)).toISOString();
  const target = changes.target ?? "42";
  return testOutcome({
    ...{ taskId: `${policy}__run__${target}__${minute}`, policy, slot: at, finishedAt: at, durationMs: minute * 1_000 },
    ...changes,
  });
}

const end = (...outcome: Parameters<typeof ended>) => history.record(ended(...outcome));

async function stateOf(policy: string) {
  const state = (await readPolicyStates(store, [policy])).get(policy);
  if (state === undefined) throw new Error(`nothing is known of ${policy}`);
  return state;
}

describe("the state of a policy", () => {
  it("can be read with those of many others, each by its name", async () => {
    const names = Array.from({ length: 45 }, (_, index) => `many-${index}`);
    await Promise.all(names.map((name, index) => end(name, index)));
    const states = await readPolicyStates(store, ["none", ...names]);
    expect([...states].map(([name, { firstMs }]) => [name, firstMs])).toEqual(
      names.map((name, at) => [name, atMs(at)]),
    );
    const firstEnds = await readFirstEnds(store);
    expect(names.map((name) => firstEnds.get(name))).toEqual(names.map((_, at) => atMs(at)));
  });

  it("says how it ended last, since when, how many in a row, and when it was otherwise", async () => {
    await end("nightly", 1);
    await end("nightly", 2, { status: "failed", reason: "run-failed" });
    await end("nightly", 3, { status: "timed-out", reason: "deadline", evidence: "none" });
    await end("nightly", 4, { status: "skipped", reason: "overlap" });
    const bad = { target: "42", weight: "bad", sinceMs: atMs(2), inARow: 2 };
    const { targets, ...state } = await stateOf("nightly");
    expect(state).toEqual({ policy: "nightly", firstMs: atMs(1), cutMs: undefined, acknowledged: undefined });
    expect(targets).toMatchObject([
      { ...bad, lastSuccessMs: atMs(1), lastBadMs: atMs(3), last: { status: "timed-out" } },
    ]);
    expect(targets[0]?.newest).toMatchObject({ slotMs: atMs(4), finishedMs: atMs(4), status: "skipped" });
    await end("nightly", 5, { confidence: "likely", evidence: "inferred", origin: "manual" });
    const last = {
      taskId: `nightly__run__42__m${atMs(5)}`,
      kind: "run",
      status: "succeeded",
      evidence: "inferred",
      confidence: "likely",
    };
    const when = { reason: "completed", origin: "manual", slotMs: atMs(5), finishedMs: atMs(5), findings: [] };
    const runs = [1_000, 5_000].map((duration) => ({ duration, activities: undefined, conflicts: 0 }));
    expect((await stateOf("nightly")).targets).toEqual([
      {
        ...{ target: "42", weight: "success", sinceMs: atMs(5), inARow: 1, lastSuccessMs: atMs(5), lastBadMs: atMs(3) },
        last: { ...last, ...when },
        newest: { taskId: last.taskId, slotMs: atMs(5), finishedMs: atMs(5), status: "succeeded" },
        runs,
      },
    ]);
  });

  it("is that of the worst sync job, of those that the policy still names", async () => {
    await end("several", 1, { target: "11" });
    await end("several", 2, { target: "4", status: "failed", reason: "run-failed" });
    await end("several", 3, { target: "11" });
    await end("several", 4, { target: "7", status: "conflicts", reason: "new-conflicts", newConflicts: 1 });
    const state = await stateOf("several");
    expect(state.targets.map(({ target }) => target)).toEqual(["7", "11", "4"]);
    expect(worstTarget(state)?.target).toBe("4");
    expect(worstTarget(state, (target) => target !== "4")).toMatchObject({ target: "7", weight: "success" });
    expect(worstTarget(state, (target) => target === "11")).toMatchObject({ inARow: 2, sinceMs: atMs(1) });
    expect(worstTarget(state, () => false)).toBeUndefined();
  });

  it("counts an outcome once, also one recorded alone; a late one is no newer", async () => {
    const bug = ended("twice", 3, { status: "failed", reason: "bug" });
    expect(await Promise.all([history.recordAlone(bug), history.recordAlone(bug)])).toContain(false);
    await end("twice", 3, { status: "failed", reason: "bug" });
    await end("twice", 2);
    await end("twice", 1, { status: "failed", reason: "run-failed" });
    expect((await stateOf("twice")).firstMs).toBe(atMs(1));
    expect((await stateOf("twice")).targets).toMatchObject([
      {
        weight: "bad",
        sinceMs: atMs(3),
        inARow: 1,
        lastSuccessMs: atMs(2),
        lastBadMs: atMs(3),
        last: { reason: "bug" },
      },
    ]);
  });

  it("knows the usual duration from the last 20 runs that ended well", async () => {
    for (let minute = 1; minute <= 25; minute += 1) await end("long", minute);
    await end("long", 99, { status: "failed", reason: "run-failed" });
    const state = await stateOf("long");
    const figures = (index: number) => ({ duration: (index + 6) * 1_000, activities: undefined, conflicts: 0 });
    expect(state.targets[0]?.runs).toEqual(Array.from({ length: 20 }, (_, index) => figures(index)));
    expect(usualDurationMs(state)).toBe(15_500);
    await end("accepted", 1, { durationMs: null });
    expect(usualDurationMs(await stateOf("accepted"))).toBeUndefined();
  });

  it("says through a skip what waits for a person, until a task ends well", async () => {
    const skipped = { status: "skipped", reason: "overlap" } as const;
    const waiting = [
      { status: "blocked", reason: "approval-waiting" },
      { status: "conflicts", reason: "new-conflicts", newConflicts: 1 },
      { status: "unknown", reason: "cancelled" },
    ] as const;
    for (const [index, outcome] of waiting.entries()) {
      const target = `${index}`;
      await end("waits", 10 + index, { target, ...outcome });
      await end("waits", 20 + index, { target, ...skipped });
      await end("waits", 30 + index, { target, ...skipped });
    }
    const seen = async () => Object.fromEntries((await stateOf("waits")).targets.map((one) => [one.target, one]));
    for (const [index, { status }] of waiting.entries())
      expect((await seen())[index]).toMatchObject({ last: { status }, newest: { status: "skipped" } });
    await end("waits", 40, { target: "0", status: "missed", reason: "too-late" });
    expect(worstTarget(await stateOf("waits"))).toMatchObject({ target: "2" });
    await end("waits", 41, { target: "2" });
    expect(worstTarget(await stateOf("waits"))).toMatchObject({ target: "0", last: { status: "missed" } });
    await end("waits", 42, { target: "0" });
    await end("waits", 43, { target: "1" });
    for (const one of Object.values(await seen())) expect(one.last.status).toBe("succeeded");
  });

  it("keeps what failed among more than 150 sync jobs, for eight days", async () => {
    for (let minute = 1; minute <= 200; minute += 1) {
      const failed = minute <= 50 ? ({ status: "not-started", reason: "no-access" } as const) : {};
      await end("many", minute, { target: `${minute}`, ...failed });
    }
    const bad = async () => (await stateOf("many")).targets.filter(({ weight }) => weight === "bad");
    expect(await bad()).toHaveLength(50);
    const laterMinute = 9 * 24 * 60;
    for (let index = 1; index <= 151; index += 1) await end("many", laterMinute + index, { target: `new ${index}` });
    expect(await bad()).toEqual([]);
  });

  it("keeps the 100 sync jobs that ended last, and says that there were more", async () => {
    for (let minute = 1; minute <= 150; minute += 1) await end("wide", minute, { target: `job "${minute}"\t` });
    expect(await stateOf("wide")).toMatchObject({ cutMs: undefined, targets: { length: 150 } });
    await end("wide", 151, { target: 'job "151"\t' });
    await end("wide", 152, { target: 'job "51"\t' });
    const { targets, cutMs } = await stateOf("wide");
    expect(targets).toHaveLength(101);
    expect(cutMs).toBe(atMs(151));
    expect(targets[0]).toMatchObject({ target: 'job "51"\t', inARow: 2 });
    expect(targets.at(-1)?.target).toBe('job "52"\t');
  });

  it("goes with the outcomes of a removed policy, not before", async () => {
    await end("removed", 1);
    await history.tidy(new Set(["nightly"]));
    expect((await readPolicyStates(store)).has("removed")).toBe(true);
    await store.redis.del(store.key("outcomes", "removed"), store.key("outcome-index", "removed"));
    expect(await store.redis.pttl(store.key("policy-state", "removed"))).toBeGreaterThan(31 * 86_400_000);
    expect(await store.redis.pttl(store.key("policy-state", "nightly"))).toBe(-1);
    await history.tidy(new Set(["nightly"]));
    const states = await readPolicyStates(store);
    expect([states.has("removed"), states.has("nightly")]).toEqual([false, true]);
  });
});

describe("a reader that remembers", () => {
  const names = ["one", "two", "three"];
  let losses = 0;

  /** What it answers is what Redis holds; how many states it read for that. */
  async function readsOf(read: ReadStates): Promise<number> {
    const reads = vi.spyOn(store.redis, "evalsha");
    const found = await read(names);
    const count = reads.mock.calls.reduce((sum, [, keys]) => sum + Number(keys), 0);
    reads.mockRestore();
    expect(found).toEqual(await readPolicyStates(store, names));
    return count;
  }

  it("reads again only what has changed", async () => {
    const read = rememberStates(store, () => losses);
    for (const name of ["one", "two"]) await end(name, 1);
    expect([await readsOf(read), await readsOf(read)]).toEqual([3, 0]);
    await end("two", 2, { status: "failed", reason: "run-failed" });
    await history.recordAlone(ended("three", 2));
    expect([await readsOf(read), await readsOf(read)]).toEqual([2, 0]);
    const acknowledgement = { actor: "ana", note: "known", sinceMs: atMs(3), state: "failing", targets: { "42": 1 } };
    await acknowledgePolicy(store, "two", { acknowledgement, knownMs: atMs(2) });
    expect(await readsOf(read)).toBe(1);
    await acknowledgePolicy(store, "two", { acknowledgement: undefined, knownMs: atMs(2) });
    expect([await readsOf(read), await readsOf(read)]).toEqual([1, 0]);
  });

  it("reads all again after a loss, and where Redis knows less than before", async () => {
    const read = rememberStates(store, () => losses);
    await readsOf(read);
    losses += 1;
    expect([await readsOf(read), await readsOf(read)]).toEqual([3, 0]);
    await store.redis.del(store.key("changed-policies"), store.key("policy-state", "one"));
    expect(await readsOf(read)).toBe(3);
    await end("one", 3);
    expect([await readsOf(read), await readsOf(read)]).toEqual([1, 0]);
  });

  it("answers callers at once with what is newest", async () => {
    const read = rememberStates(store, () => losses);
    const first = read(names);
    await end("one", 9, { status: "failed", reason: "run-failed" });
    const [, second] = await Promise.all([first, read(["one"])]);
    expect(second.get("one")?.targets[0]).toMatchObject({ weight: "bad" });
    expect(await readsOf(read)).toBe(0);
  });
});
