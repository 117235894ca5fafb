// What a worker makes of a task as a whole (src/tasks/process-task.ts), and when it may take the
// short way (src/tasks/send-start.ts), over real HTTP and a real journal.
import { describe, expect, it, vi } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import type { Task } from "../../../src/model/task.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { History } from "../../../src/store/history.ts";
import { leaseKey, leaseMs } from "../../../src/store/leases.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { RedisWatch } from "../../../src/store/redis-watch.ts";
import { entryKey } from "../../../src/store/start-entry.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { finish } from "../../../src/tasks/finish.ts";
import { createProcessTask, type ProcessDependencies } from "../../../src/tasks/process-task.ts";
import { createRecorder } from "../../../src/tasks/recorder.ts";
import { startFastPath } from "../../../src/tasks/send-start.ts";
import type { TaskEnding } from "../../../src/tasks/step.ts";
import { answeringService, status } from "../../support/answering-service.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { told } from "../../support/stepped-task.ts";
import { testDeps } from "../../support/task-deps.ts";
import { TestLog } from "../../support/test-log.ts";

const target = redisForTest();
let tasks = 0;

const store = await storeForTest(target);
const history = new History(store);

const far = 9_999_999_999_999;
const accepted = { ...testPolicy().follow, until: "accepted" } as const;
const attempt = { attempt: 1, attemptsMax: 8, signal: new AbortController().signal };

interface Given {
  readonly task?: Partial<Task>;
  readonly policy?: Partial<Policy>;
  readonly deps?: Partial<ProcessDependencies>;
}

async function fixture({ task: given, policy, deps: more }: Given = {}) {
  tasks += 1;
  const { asked, service } = await answeringService({ reads: [], writes: [status(200)] });
  const task: Task = {
    ...{ v: 1, id: `whole-${tasks}`, kind: "run", policy: "nightly", service: "main", repository: null },
    ...{ target: `${tasks}`, slotMs: 0, origin: "manual", covers: [], startByMs: far, ...given },
  };
  const known = testPolicy({ follow: accepted, ...policy });
  const deps = testDeps(store, { service: () => service, policy: () => known, ...more });
  const process = createProcessTask(deps, createRecorder(history, silentLog));
  return {
    ...{ asked, task, deps },
    process: () => process(task, attempt),
    outcome: () => history.outcome(task),
    /** Nothing where the short way is left to the steps one by one. */
    atOnce: async () => {
      const step = await startFastPath(task, deps, "me");
      return step === undefined ? undefined : told(step);
    },
  };
}

describe("a task", () => {
  it("of which nothing was sent is unknown where Redis has lost what that rests on", async () => {
    const { process, outcome } = await fixture({ deps: { service: () => undefined, checkFence: async () => "loss" } });
    await process();
    expect(await outcome()).toMatchObject({ status: "unknown", reason: "redis-loss" });
  });

  it("that Redis may have lost does not take its sync job, from which others start", async () => {
    const { process, outcome, deps } = await fixture({
      policy: { follow: testPolicy().follow },
      deps: { checkFence: async () => "loss" },
    });
    const acquire = vi.spyOn(deps.leases, "acquire");
    await process();
    expect(await outcome()).toMatchObject({ status: "unknown", reason: "redis-loss" });
    expect(acquire).not.toHaveBeenCalled();
  });

  // One more request may be under way, which Redis has forgotten.
  it.each([
    ["failed", "direct", "still-there", "unknown"],
    ["failed", "direct", "not-active", "unknown"],
    ["not-started", "inferred", "answer-lost", "unknown"],
    ["not-started", "direct", "refused", "not-started"],
  ] as const)("that ends as %s (%s, %s) is %s where Redis has lost a part of the journal", async (...row) => {
    const [status, evidence, reason, becomes] = row;
    const { task, deps, outcome } = await fixture();
    await deps.journal.claim(task.id, "me");
    await deps.journal.beginSending(task, "me", { startByMs: far, baseline: "" });
    const from = { state: "sending", claimant: "me" } as const;
    const ending: TaskEnding = { status, evidence, reason, detail: "reset", sends: 1, startedAtMs: 1, from };
    const finishWith = (fence: "undecided" | "loss") => {
      const context = { recorder: createRecorder(history, silentLog), attempts: 1 };
      return finish(task, ending, { ...context, deps: { ...deps, checkFence: async () => fence } });
    };
    if (becomes === "unknown") expect(await finishWith("undecided")).toBe("superseded");
    expect(await finishWith("loss")).toBe("recorded");
    const detail = "reset; but Redis lost what was written meanwhile, perhaps of one more request";
    const told = becomes === "unknown" ? { reason: "redis-loss", evidence: "none", detail } : { reason, evidence };
    expect(await outcome()).toMatchObject({ status: becomes, ...told });
  });

  it("that meets an outage of Redis sleeps by its clock, not by the machine's", async () => {
    const nowMs = async () => {
      throw new Error("Command timed out");
    };
    const aheadMs = 60_000;
    // The single steps ask for the time, the short way does not.
    const { process } = await fixture({
      policy: { follow: testPolicy().follow },
      deps: { nowMs, clockAheadMs: () => aheadMs },
    });
    const beganMs = Date.now() - aheadMs;
    const step = await process();
    expect(step.verdict).toBe("snooze");
    if (step.verdict !== "snooze") return;
    expect(step.untilMs).toBeGreaterThanOrEqual(beganMs + 2_000);
    expect(step.untilMs).toBeLessThanOrEqual(Date.now() - aheadMs + 2_000);
  });

  it.each([
    [3_600_000, "retry", undefined],
    [100, "fail", "not-started"],
  ])("that reached no service is retried in its start-by time: %i ms of it left", async (...row) => {
    const [leftMs, verdict, becomes] = row;
    const nobody = new SyncService({ baseUrl: "http://127.0.0.1:1", token: staticToken("secret"), retries: 0 });
    const { process, outcome } = await fixture({ deps: { service: () => nobody, nowMs: async () => far - leftMs } });
    expect(await process()).toMatchObject({ verdict });
    expect((await outcome())?.status).toBe(becomes);
    nobody.close();
  });

  it("of an unknown policy waits for five minutes after its slot and after it left", async () => {
    const slotMs = await redisTimeMs(store);
    for (const [afterMs, inForceMs, verdict] of [
      [299_999, 300_000, "snooze"],
      [300_000, 299_999, "snooze"],
      [300_000, 300_000, "complete"],
    ] as const) {
      const deps = { policy: () => undefined, nowMs: async () => slotMs + afterMs, unchangedForMs: () => inForceMs };
      const { process } = await fixture({ task: { slotMs }, deps });
      expect(await process()).toMatchObject({ verdict });
    }
  });

  it("of an unknown policy is told once a minute, and ends by what is known", async () => {
    const log = new TestLog();
    const slotMs = await redisTimeMs(store);
    let inForceMs = 0;
    const deps = { log, policy: () => undefined, nowMs: async () => slotMs + 300_000, unchangedForMs: () => inForceMs };
    const { task, process, outcome } = await fixture({ task: { slotMs }, deps });
    expect(await process()).toMatchObject({ verdict: "snooze" });
    expect(await process()).toMatchObject({ verdict: "snooze" });
    expect(log.named("task.not-loaded")).toMatchObject([{ level: "warn", policy: "nightly", taskId: task.id }]);
    inForceMs = 300_000;
    expect(await process()).toMatchObject({ verdict: "complete" });
    const detail = "policy nightly is not in the policies of the worker that had its turn";
    expect(await outcome()).toMatchObject({ status: "skipped", reason: "policy-removed", detail });
  });

  it.each([{}, { task: { kind: "apply", target: "mask/7" } }] as const)(
    "of a removed policy ends at once when it is cancelled: %j",
    async (given) => {
      const { task, deps, process, outcome } = await fixture({
        ...given,
        deps: { policy: () => undefined, unchangedForMs: () => 0 },
      });
      expect(await process()).toMatchObject({ verdict: "snooze" });
      await deps.journal.cancel(task.id, "cancelled by ada@desk");
      await process();
      expect(await outcome()).toMatchObject({ detail: expect.stringContaining("cancelled by ada@desk") });
    },
  );

  it.each<[Task["kind"], string, Partial<Policy>]>([
    ["run", "masks", {}],
    ["poll", "conflicts", { action: { kind: "poll", list: "triggers", expect: "count == 0" } }],
    ["delete", "7", { action: { kind: "delete", syncJob: 8, name: "old" } }],
    ["apply", "mask/7", { action: { kind: "apply", objects: [] } }],
  ])("for what its policy may ask in a newer file only waits, too: %s %s", async (kind, target, policy) => {
    for (const [inForceMs, verdict] of [
      [299_999, "snooze"],
      [300_000, "complete"],
    ] as const) {
      const given = { task: { kind, target }, policy, deps: { unchangedForMs: () => inForceMs } };
      const { asked, process, outcome } = await fixture(given);
      expect(await process()).toMatchObject({ verdict });
      expect(asked).toEqual([]);
      expect((await outcome())?.reason).toBe(verdict === "complete" ? "policy-removed" : undefined);
    }
  });

  it("that has sent its start keeps its sync job, whichever worker resumes it", async () => {
    const { task, deps, process } = await fixture();
    await deps.journal.claim(task.id, "dead");
    await deps.journal.beginSending(task, "dead", { startByMs: far, baseline: "" });
    expect(await process()).toMatchObject({ verdict: "snooze" });
    expect(await deps.leases.holder(task)).toBe(task.id);
  });

  it("that may run beside others, and is followed, has its sync job before its request", async () => {
    const { task, deps, process, asked } = await fixture({
      policy: { overlap: "allow", follow: testPolicy().follow },
    });
    expect(await process()).toMatchObject({ verdict: "snooze" });
    expect([await deps.leases.holder(task), asked]).toEqual([task.id, []]);
  });

  it("that stands for others, or is over, lets go of what waits for it", async () => {
    const taskOver = vi.fn(async () => {});
    const { task, deps, process } = await fixture({ deps: { chains: { noteFannedOut: async () => {}, taskOver } } });
    await store.redis.set(leaseKey(store, task), task.id, "PX", leaseMs);
    await deps.journal.noteFannedOut(task.id, ["one"]);
    expect(await process()).toMatchObject({ verdict: "complete" });
    expect(taskOver).toHaveBeenCalledTimes(1);
    expect(await deps.leases.holder(task)).toBeUndefined();
  });

  it("that ends as a bug lets its chain go on", async () => {
    const taskOver = vi.fn(async () => {});
    const { task, process, outcome } = await fixture({ deps: { chains: { noteFannedOut: async () => {}, taskOver } } });
    await store.redis.set(entryKey(store, task.id), "no hash");
    expect(await process()).toMatchObject({ verdict: "fail" });
    expect(await outcome()).toMatchObject({ status: "unknown", reason: "bug" });
    expect(taskOver).toHaveBeenCalledTimes(1);
  });
});

describe("the short way", () => {
  it("is for starts whose answer is their end", async () => {
    const { atOnce, asked } = await fixture();
    expect(await atOnce()).toBe("accepted direct answered");
    expect(asked).toEqual(["POST"]);
  });

  const activates = { kind: "run", syncJobs: [42], activate: true } as const;
  it.each<[string, Given]>([
    ["a run that is followed", { policy: { follow: testPolicy().follow } }],
    ["a run with an activation before it", { policy: { action: activates } }],
    ["a worker that was told to stop", { deps: { stopping: AbortSignal.abort() } }],
    [
      "a service whose limiter denies everything",
      { deps: { denialOf: async () => ({ deniedBy: "throttle", waitMs: 1_000 }) } },
    ],
    ["a start-by time that is over", { task: { startByMs: 1_000 } }],
  ])("is not for %s", async (_what, given) => {
    const { atOnce, asked } = await fixture(given);
    expect(await atOnce()).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it("is not for what was due when Redis lost its memory", async () => {
    const watch = new RedisWatch(store);
    watch.mayStart = true;
    await watch.check();
    await store.redis.hset(store.key("watch"), "since", 1);
    await store.redis.zadd(store.key("losses"), 2_000, "1000:2000");
    const deps = { journal: new StartJournal(store, watch) };
    expect(await (await fixture({ task: { slotMs: 1_500 }, deps })).atOnce()).toBeUndefined();
    expect(await (await fixture({ task: { slotMs: 2_500 }, deps })).atOnce()).toBe("accepted direct answered");
    await store.redis.del(store.key("losses"));
  });

  it.each<[string, Given, string | undefined]>([
    ["a run", {}, undefined],
    ["a run with overlap: allow", { policy: { overlap: "allow" } }, "accepted direct answered"],
    ["an activation", { task: { kind: "activate" } }, "succeeded direct answered"],
  ])("waits for a sync job that another task holds where it must: %s", async (_what, given, becomes) => {
    const { atOnce, task } = await fixture(given);
    await store.redis.set(leaseKey(store, task), "other", "PX", leaseMs);
    expect(await atOnce()).toBe(becomes);
  });
});
