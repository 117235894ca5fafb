// The last steps before a request and the first after it (src/tasks/send-start.ts), over real HTTP
// and a real journal: what keeps a permitted request back, and what the answer to one request says
// of the others.
import { describe, expect, it, vi } from "vitest";
import type { Denial } from "../../../src/core/limiter.ts";
import type { Task } from "../../../src/model/task.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { RedisWatch } from "../../../src/store/redis-watch.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import type { ProcessDependencies } from "../../../src/tasks/process-task.ts";
import { sendAgain, sendNow, sendStart } from "../../../src/tasks/send-start.ts";
import { type Answer, answeringService, reset, status } from "../../support/answering-service.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { told } from "../../support/stepped-task.ts";
import { testDeps } from "../../support/task-deps.ts";
import { TestLog } from "../../support/test-log.ts";

const target = redisForTest();
let tasks = 0;

const store = await storeForTest(target);

const far = 9_999_999_999_999;

interface Given {
  readonly posts?: readonly Answer[];
  readonly task?: Partial<Task>;
  readonly deps?: Partial<ProcessDependencies>;
}

async function fixture({ posts = [status(200)], task: given = {}, deps: more = {} }: Given) {
  tasks += 1;
  const { asked, urls, service } = await answeringService({ reads: [], writes: posts });
  const journal = new StartJournal(store);
  const task: Task = {
    ...{ v: 1, id: `send-${tasks}`, kind: "run", policy: "nightly", service: "main", repository: null },
    ...{ target: `${tasks}`, slotMs: far, origin: "manual", covers: [], startByMs: far, ...given },
  };
  const deps = testDeps(store, { service: () => service, journal, ...more });
  const claim = async (claimant = "me") => ({ claimant, entry: await journal.claim(task.id, claimant) });
  /** Gets the permission for so many requests, without any of them going out. */
  const permit = async (sends: number) => {
    await claim();
    await journal.beginSending(task, "me", { startByMs: far, baseline: "" });
    for (let sent = 1; sent < sends; sent += 1)
      await journal.beginSendingAgain(task, "me", { startByMs: far, sends: sent, sender: "me" });
  };
  const permitted = async (
    sends: number,
    { isTooLate = (): boolean => false, to = service, readyAtMs = 1_000 } = {},
  ) => {
    await permit(sends);
    const moment = { sentAtMs: 1_000, startedAtMs: 1_000 };
    const request = { deps, claimant: "me", isEndedByAnswer: true, readyAtMs };
    return sendNow(task, request, { ...moment, service: to, isTooLate, nth: sends });
  };
  return { asked, urls, task, deps, journal, claim, permit, permitted, entry: () => journal.entry(task.id) };
}

/** Redis lost what was written while the tasks of this instant were due. */
async function watched(): Promise<Partial<ProcessDependencies>> {
  const watch = new RedisWatch(store);
  watch.mayStart = true;
  await watch.check();
  await store.redis.hset(store.key("watch"), "since", 1);
  await store.redis.zadd(store.key("losses"), 2_000, "1000:2000");
  return { journal: new StartJournal(store, watch) };
}

describe("a request that is permitted", () => {
  it("does not go out when its worker has slept since, and gives its permission back", async () => {
    const { permitted, asked, entry } = await fixture({});
    expect(told(await permitted(1, { isTooLate: () => true }))).toBe("snooze");
    expect(asked).toEqual([]);
    expect(await entry()).toMatchObject({ state: "claimed", sends: 0 });
  });

  it("is not sent when its worker was told to stop, and gives its permission back", async () => {
    const { permitted, asked, entry } = await fixture({ deps: { stopping: AbortSignal.abort() } });
    expect(told(await permitted(1))).toBe("snooze");
    expect(asked).toEqual([]);
    expect(await entry()).toMatchObject({ state: "claimed", sends: 0 });
  });
});

it.each(["run", "activate"] as const)("a start (%s) names a sync job beyond 2^53 by its digits", async (kind) => {
  const { permitted, urls } = await fixture({ task: { kind, target: "9007199254740993" } });
  expect(told(await permitted(1))).toBe(`${kind === "run" ? "accepted" : "succeeded"} direct answered`);
  expect(urls).toEqual([`/api/syncjobs/${kind}(9007199254740993)`]);
});

describe("the answer to a second request", () => {
  it.each([
    ["refused", status(400), "snooze", { state: "sending", sends: 2 }],
    ["throttles", status(429, "", { "retry-after": "7" }), "snooze", { state: "sending", sends: 1 }],
    ["accepted", status(200), "accepted direct answered", { state: "sending", sends: 2 }],
  ])("says nothing of the first one: %s", async (_what, answer, becomes, left) => {
    const { permitted, asked, entry } = await fixture({ posts: [answer] });
    const step = await permitted(2);
    expect(told(step)).toBe(becomes);
    if ("ending" in step) expect(step.ending).toMatchObject({ sends: 2, answerLost: true });
    expect(asked).toEqual(["POST"]);
    expect(await entry()).toMatchObject(left);
  });

  it("says nothing of the first: it reached no service, however often it is tried", async () => {
    const { permitted, entry } = await fixture({});
    const to = new SyncService({ baseUrl: "http://127.0.0.1:1", token: staticToken("secret") });
    expect(told(await permitted(2, { to }))).toBe("snooze");
    expect(await entry()).toMatchObject({ state: "sending", sends: 1 });
    to.close();
  });

  it("says nothing of the first: its time ends when the service asks for patience", async () => {
    const { permitted } = await fixture({ posts: [status(429)], task: { startByMs: 1_000 } });
    expect(told(await permitted(2))).toBe("snooze");
    const only = await fixture({ posts: [status(429)], task: { startByMs: 1_000 } });
    expect(told(await only.permitted(1))).toBe("missed direct throttled");
  });

  it("of a deletion may be 404 since the first one did it, whose answer got lost", async () => {
    const { permitted } = await fixture({ posts: [status(404)], task: { kind: "delete" } });
    const step = await permitted(2);
    expect(told(step)).toBe("succeeded direct gone-meanwhile");
    const detail = expect.stringMatching(/deleted before this request, by an earlier request of this task or by/);
    expect(step).toMatchObject({ ending: { answerLost: true, sends: 2, detail } });
  });
});

describe("a further request is told as sent again", () => {
  it.each([
    ["answered", status(200)],
    ["cut off", reset],
  ])("once it went out: %s", async (_what, answer) => {
    const log = new TestLog();
    const { permitted } = await fixture({ posts: [answer], deps: { log } });
    await permitted(2);
    expect(log.named("task.sent-again")).toMatchObject([{ sends: 2 }]);
  });

  it("not where it never left", async () => {
    const log = new TestLog();
    const { permitted, asked } = await fixture({ deps: { log } });
    expect(told(await permitted(2, { isTooLate: () => true }))).toBe("snooze");
    expect(log.named("task.sent-again")).toEqual([]);
    expect(asked).toEqual([]);
  });
});

it.each([
  ["bad-request", status(400)],
  ["throttled", status(429)],
])("what a further request met is told, and no doubt: %s", async (kind, answer) => {
  const log = new TestLog();
  const { permitted } = await fixture({ posts: [answer], deps: { log } });
  await permitted(2);
  const detail = expect.stringContaining("the service answered with status 4");
  expect(log.named("task.again-failed")).toMatchObject([{ sends: 2, kind, detail }]);
  expect(log.named("task.in-doubt")).toEqual([]);
});

it("why a start is in doubt is told, in the journal's words", async () => {
  const log = new TestLog();
  const { permitted, entry } = await fixture({ posts: [status(404)], deps: { log } });
  await permitted(1);
  const doubt = { kind: "contract", detail: expect.stringContaining("status 404") };
  expect(log.named("task.in-doubt")).toMatchObject([doubt]);
  expect(await entry()).toMatchObject({ doubt });
  expect(log.named("task.again-failed")).toEqual([]);
});

it.each(["breaker", "throttle"] as const)("a %s denies a further request before its permission", async (deniedBy) => {
  const denialOf = async () => ({ deniedBy, waitMs: 7_000 });
  const { task, deps, claim, permit, journal, asked, entry } = await fixture({ deps: { denialOf } });
  await permit(1);
  await journal.noteDoubt(task.id, { kind: "answer-lost", detail: "reset" });
  const before = await entry();
  const again = await sendAgain(task, { deps, claim: await claim("heir"), isEndedByAnswer: true });
  expect(again).toMatchObject({ verdict: "snooze" });
  expect(await entry()).toEqual(before);
  // However long it denies, nothing waits for longer than the start-by time.
  const late = { ...task, startByMs: 1_000 };
  expect(await sendAgain(late, { deps, claim: await claim("heir"), isEndedByAnswer: true })).toBeUndefined();
  expect(asked).toEqual([]);
});

it("a breaker that is due is probed by reading before a further request", async () => {
  const denials: Denial[] = [{ deniedBy: "breaker", waitMs: 0 }];
  const denialOf = async () => denials.pop();
  const { task, deps, claim, permit, journal, asked } = await fixture({ deps: { denialOf } });
  await permit(1);
  await journal.noteDoubt(task.id, { kind: "answer-lost", detail: "reset" });
  const again = await sendAgain(task, { deps, claim: await claim("heir"), isEndedByAnswer: true });
  expect(again).toMatchObject({ ending: { status: "accepted", sends: 2 } });
  expect(asked).toEqual(["GET", "POST"]);
});

it.each([
  [0, 20, true],
  [0, 31, false],
  [15, 25, false],
])("what was read %i s before a request, which then waits %i s, is of use: %s", async (before, seconds, isOfUse) => {
  const { permitted, journal, task } = await fixture({ posts: [status(429, "", { "retry-after": `${seconds}` })] });
  await journal.noteReady(task.id);
  expect(told(await permitted(1, { readyAtMs: 1_000 - before * 1_000 }))).toBe("snooze");
  expect((await store.redis.hexists(store.key("start", task.id), "readyAtMs")) === 1).toBe(isOfUse);
});

describe("a permission after which Redis is gone at once", () => {
  it.each([
    ["first", 1],
    ["second", 2],
  ])("is taken back, and nothing is sent: that of the %s request", async (_which, sends) => {
    const { task, deps, journal, claim, permit, asked, entry } = await fixture({
      task: { startByMs: far + 1_000_000 },
    });
    let isPermitted = false;
    for (const ask of ["beginSending", "beginSendingAgain"] as const) {
      const real = journal[ask].bind(journal) as (...args: unknown[]) => Promise<never>;
      vi.spyOn(journal, ask).mockImplementation(async (...args: unknown[]) => {
        const permission = await real(...args);
        isPermitted = true;
        return permission;
      });
    }
    const nowMs = async () => {
      if (isPermitted) throw new Error("Command timed out");
      return far;
    };
    const request = { deps: { ...deps, nowMs }, isEndedByAnswer: true };
    if (sends === 1) {
      await expect(sendStart(task, { ...request, claim: await claim(), baseline: "" })).rejects.toThrow("timed out");
    } else {
      await permit(1);
      isPermitted = false;
      await expect(sendAgain(task, { ...request, claim: await claim("heir") })).rejects.toThrow("timed out");
    }
    expect(asked).toEqual([]);
    const left = sends === 1 ? { state: "claimed", sends: 0 } : { state: "sending", sends: 1 };
    expect(await entry()).toMatchObject(left);
  });
});

// If it died now, the journal could not tell whether it had sent.
it("a stopping worker asks for no permission", async () => {
  const { task, deps, claim, journal, asked } = await fixture({ deps: { stopping: AbortSignal.abort() } });
  const asks = [vi.spyOn(journal, "beginSending"), vi.spyOn(journal, "beginSendingAgain")];
  const first = await sendStart(task, { deps, claim: await claim(), baseline: "", isEndedByAnswer: true });
  expect(told(first)).toBe("snooze");
  const again = await sendAgain(task, { deps, claim: await claim(), isEndedByAnswer: true });
  expect(again === undefined ? again : told(again)).toBe("snooze");
  for (const ask of asks) expect(ask).not.toHaveBeenCalled();
  expect(asked).toEqual([]);
});

describe("a start whose permission is refused", () => {
  it("is unknown where Redis lost what was written when due, and sends nothing", async () => {
    const { task, deps, claim, asked } = await fixture({ task: { slotMs: 1_500 }, deps: await watched() });
    const step = await sendStart(task, { deps, claim: await claim(), baseline: "", isEndedByAnswer: true });
    expect(told(step)).toBe("unknown none redis-loss");
    expect(asked).toEqual([]);
  });

  it("is not sent again, nor after its start-by time: it ends with what is known", async () => {
    for (const given of [{ task: { slotMs: 1_500 }, deps: await watched() }, { task: { startByMs: 1_000 } }]) {
      const { task, deps, claim, journal, permit, asked } = await fixture(given);
      await permit(1);
      await journal.noteDoubt(task.id, { kind: "answer-lost", detail: "reset" });
      expect(await sendAgain(task, { deps, claim: await claim("heir"), isEndedByAnswer: true })).toBeUndefined();
      expect(asked).toEqual([]);
    }
  });
});
