// An outage of Redis right after the service has answered a start: the process that has the answer
// keeps it, notes it when Redis is back, and nothing sends the start again meanwhile.
import { expect, it, onTestFinished } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import type { Outcome } from "../../../src/model/outcome.ts";
import type { Task } from "../../../src/model/task.ts";
import { History, type SettleFrom } from "../../../src/store/history.ts";
import { KeptWrites } from "../../../src/store/kept-writes.ts";
import { openStore, redisTimeMs } from "../../../src/store/redis.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { createProcessTask } from "../../../src/tasks/process-task.ts";
import { createRecorder } from "../../../src/tasks/recorder.ts";
import { defaultTiming } from "../../../src/tasks/timing.ts";
import { type Answer, answeringService, status } from "../../support/answering-service.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { testPolicy } from "../../support/policies.ts";
import { freePort, startProxy, startServer, until } from "../../support/redis-servers.ts";
import { testDeps } from "../../support/task-deps.ts";
import { TestLog } from "../../support/test-log.ts";

const server = await startServer();
const nowhere = await freePort();
const attempt = { attempt: 1, attemptsMax: 8, signal: new AbortController().signal };

const accepts = { follow: { ...testPolicy().follow, until: "accepted" } } as const;
const crashed = { status: "unknown", evidence: "none", reason: "crashed" } as const;
const outcomeOf = ({ id: taskId, policy, service, repository, target }: Task) =>
  ({ taskId, policy, service, repository, target, kind: "run" }) as const;

/**
 * A worker that loses Redis while the service answers its start; without an outage, another worker
 * ends the start meanwhile.
 */
async function fixture(
  name: string,
  answer: Answer,
  { follow, ...policy }: Partial<Policy> = {},
  { isOut = true } = {},
) {
  const front = await startProxy(server.port);
  const store = await openStore({ url: `redis://127.0.0.1:${front.port}`, prefix: `{${name}}` });
  onTestFinished(() => store.close());
  const others = await openStore({ url: server.url, prefix: `{${name}}` });
  onTestFinished(() => others.close());
  const held: Answer = async (response) => {
    if (isOut) front.heal(nowhere);
    else expect(await endElsewhere(crashed)).toBe("recorded");
    answer(response);
  };
  const { asked, service } = await answeringService({ reads: [], writes: [held, status(200)] });
  const log = new TestLog();
  const keptWrites = new KeptWrites(log);
  const journal = new StartJournal(store, undefined, keptWrites);
  const known = testPolicy({ onUnknown: "retry", ...policy, follow: { ...testPolicy().follow, ...follow } });
  const timing = { ...defaultTiming, baselineWithinMs: -600_000, verifyForMs: 0 };
  let aheadMs = 0;
  const nowMs = async () => (await redisTimeMs(store)) + aheadMs;
  const given = { nowMs, service: () => service, policy: () => known, journal, keptWrites, timing, log };
  const process = createProcessTask(testDeps(store, given), createRecorder(new History(store), log));
  const task: Task = {
    ...{ v: 1, id: "start", kind: "run", policy: "nightly", service: "main", repository: null, target: "42" },
    ...{ slotMs: 0, origin: "manual", covers: [], startByMs: 9_999_999_999_999 },
  };
  /** Another worker, which still has Redis, ends the start with what the journal says. */
  const endElsewhere = async (ending: Partial<Outcome>, from: SettleFrom["state"] = "sending") => {
    const history = new History(others);
    const recorded = await history.record(testOutcome({ ...outcomeOf(task), ...ending }), { state: from });
    await history.markPublished([task.id]);
    return recorded;
  };
  return {
    ...{ asked, log, task, store, endElsewhere },
    /** The time by Redis, also while this process has none. */
    redisMs: () => redisTimeMs(others),
    elsewhere: new StartJournal(others),
    step: () => process(task, attempt),
    /** After an outage of so long. */
    redisIsBack: (afterMs = 0) => {
      aheadMs = afterMs;
      front.heal(server.port);
    },
    entry: () => journal.entry(task.id).catch(() => undefined),
    outcome: () => new History(store).outcome(task).catch(() => undefined),
  };
}

it("the answer to a followed run is noted when Redis is back, and it is not resent", async () => {
  const { step, redisMs, redisIsBack, entry, asked } = await fixture("followed", status(200));
  expect((await step()).verdict).toBe("snooze");
  const answeredByMs = await redisMs();
  redisIsBack();
  const confirmed = await until(entry, (is) => is?.state === "confirmed");
  expect(confirmed?.confirmedBy).toBe("answer");
  expect(confirmed?.confirmedAtMs).toBeLessThanOrEqual(answeredByMs);
  expect((await step()).verdict).toBe("snooze");
  expect(asked).toEqual(["POST"]);
});

it.each([
  ["accepted", 200, { status: "accepted", evidence: "direct", reason: "answered", answerLost: false }],
  ["refused", 400, { status: "not-started", evidence: "direct", reason: "refused", answerLost: false }],
])("the outcome by an answer is recorded and told when Redis is back: %s", async (name, code, ended) => {
  const policy = { follow: { ...testPolicy().follow, until: "accepted" } } as const;
  const { step, redisMs, redisIsBack, outcome, asked, log, task } = await fixture(name, status(code), policy);
  expect((await step()).verdict).toBe("snooze");
  const answeredByMs = await redisMs();
  redisIsBack();
  const written = await until(outcome, (is) => is !== undefined);
  expect(written).toMatchObject(ended);
  // Not when it was written.
  expect(Date.parse(written?.finishedAt ?? "")).toBeLessThanOrEqual(answeredByMs);
  await log.until(({ event, taskId }) => event === "task.finished" && taskId === task.id);
  // It lets go of the answer after it has told of it.
  expect((await until(step, ({ verdict }) => verdict !== "snooze")).verdict).toBe("complete");
  expect(log.named("task.finished")).toHaveLength(1);
  expect(asked).toEqual(["POST"]);
});

it("no step of the process that has the answer ends its start as unknown before", async () => {
  const follow = { ...testPolicy().follow, until: "accepted" } as const;
  const { step, redisIsBack, outcome } = await fixture("given-up", status(200), { follow, onUnknown: "give-up" });
  expect((await step()).verdict).toBe("snooze");
  redisIsBack(100_000);
  await until(step, ({ verdict }) => verdict !== "snooze");
  expect(await outcome()).toMatchObject({ status: "accepted", reason: "answered" });
});

it("no step ends a run for its activation, whose answer this process has", async () => {
  const follow = { ...testPolicy().follow, until: "accepted" } as const;
  const action = { kind: "run", syncJobs: [42], activate: true } as const;
  const policy = { action, follow, onUnknown: "give-up" } as const;
  const { step, redisIsBack, outcome, asked } = await fixture("activated", status(200), policy);
  expect((await step()).verdict).toBe("snooze");
  redisIsBack(100_000);
  await until(step, ({ verdict }) => verdict !== "snooze");
  expect(await outcome()).toMatchObject({ status: "accepted", reason: "answered" });
  expect(asked).toEqual(["POST", "POST"]);
});

it("why an answer is no good one is noted when Redis is back", async () => {
  const { step, redisIsBack, entry } = await fixture("failed", status(500));
  expect((await step()).verdict).toBe("snooze");
  redisIsBack();
  expect((await until(entry, (is) => is?.doubt !== undefined))?.doubt?.kind).toBe("server");
});

it("a permission is taken back when Redis is back, after a 429 to its request", async () => {
  const { step, redisIsBack, entry } = await fixture("throttled", status(429));
  expect((await step()).verdict).toBe("snooze");
  redisIsBack();
  expect((await until(entry, (is) => is?.state === "claimed"))?.sends).toBe(0);
});

it.each([
  ["accepted", 200, accepts, "answer", "accepted (the service accepted it)"],
  ["refused", 400, accepts, "answer", "not-started ("],
  ["followed", 200, {}, "answer", "the service accepted it"],
  ["throttled", 429, {}, "started nothing", "it started nothing"],
] as const)("what comes after another worker has ended the start is told: %s", async (...row) => {
  const [name, code, policy, what, known] = row;
  const { step, redisIsBack, endElsewhere, log, task } = await fixture(`late-${name}`, status(code), policy);
  expect((await step()).verdict).toBe("snooze");
  expect(await endElsewhere(crashed)).toBe("recorded");
  redisIsBack();
  const told = await log.until(({ event }) => event === "start.unwritten");
  expect(told).toMatchObject({ taskId: task.id, what });
  expect(told["message"]).toContain(known);
});

it.each([
  ["accepted", 200, "accepted (the service accepted it)"],
  ["refused", 400, "not-started ("],
] as const)("it is told also where Redis was never out: %s", async (name, code, known) => {
  const { step, log, outcome } = await fixture(`slow-${name}`, status(code), accepts, { isOut: false });
  expect((await step()).verdict).toBe("complete");
  expect(log.named("start.unwritten")).toMatchObject([{ what: "answer", message: expect.stringContaining(known) }]);
  expect(await outcome()).toMatchObject(crashed);
});

it.each([
  ["accepted", 200, { status: "accepted", evidence: "direct", reason: "answered" }],
  ["refused", 400, { status: "not-started", evidence: "direct", reason: "refused" }],
] as const)("what had arrived before its answer was lost is not told: %s", async (name, code, ending) => {
  const { step, redisIsBack, endElsewhere, log } = await fixture(`arrived-${name}`, status(code), accepts);
  expect((await step()).verdict).toBe("snooze");
  expect(await endElsewhere(ending)).toBe("recorded");
  redisIsBack();
  await until(step, ({ verdict }) => verdict !== "snooze");
  expect(log.named("start.unwritten")).toEqual([]);
});

it("an answer that had arrived is not told either when its run has ended meanwhile", async () => {
  const { step, redisIsBack, endElsewhere, elsewhere, log, task } = await fixture("arrived-followed", status(200));
  expect((await step()).verdict).toBe("snooze");
  await elsewhere.noteConfirmed(task, "answer");
  expect(await endElsewhere({ status: "succeeded" }, "confirmed")).toBe("recorded");
  redisIsBack();
  await until(step, ({ verdict }) => verdict !== "snooze");
  expect(log.named("start.unwritten")).toEqual([]);
});
