// The activation before a run (src/tasks/activate.ts) over real HTTP and a real journal,
// whose worker dies before it has written what became of it.
import { expect, it, onTestFinished } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { History } from "../../../src/store/history.ts";
import { inFlightKey } from "../../../src/store/start-entry.ts";
import { endAbandoned } from "../../../src/tasks/finish.ts";
import { createProcessTask, type ProcessDependencies } from "../../../src/tasks/process-task.ts";
import { createRecorder } from "../../../src/tasks/recorder.ts";
import { stepRun } from "../../../src/tasks/run.ts";
import { reset, status } from "../../support/answering-service.ts";
import { testPolicy } from "../../support/policies.ts";
import { storeForTest } from "../../support/redis.ts";
import { steppedTask, told } from "../../support/stepped-task.ts";

const store = await storeForTest();

it.each([
  ["was refused", status(400), "verify", "refused"],
  ["failed on the server", status(500), "verify", "server-error"],
  ["got no answer, with onUnknown: give-up", reset, "give-up", "answer-lost"],
] as const)("a run whose activation %s is not started after a crash either", async (...row) => {
  const [, answer, onUnknown, reason] = row;
  const policy = testPolicy({ action: { kind: "run", syncJobs: [42], activate: true }, onUnknown });
  const { step, asked } = await steppedTask(store, {
    ...{ task: { kind: "run" }, by: stepRun, reads: [], writes: [answer, status(200)] },
    deps: { policy: () => policy },
  });
  const toEnd = async () => {
    let done = await step();
    while (done.verdict === "snooze") done = await step();
    return told(done);
  };
  expect(await toEnd()).toBe(`not-started direct ${reason}`);
  for (const _worker of ["second", "third"]) expect(await toEnd()).toMatch(/^not-started direct /);
  expect(asked).toEqual(["POST"]);
});

it.each([
  ["is throttled", status(429, "", { "retry-after": "600" })],
  ["reaches no service", "nowhere"],
] as const)("a run whose activation %s leaves the sync job to others", async (_what, answer) => {
  const policy = testPolicy({ action: { kind: "run", syncJobs: [42], activate: true } });
  const to = new SyncService({ baseUrl: "http://127.0.0.1:1", token: staticToken("secret"), retries: 0 });
  onTestFinished(() => to.close());
  const { step, task, deps, journal } = await steppedTask(store, {
    ...{ task: { kind: "run" }, by: stepRun, reads: [], writes: answer === "nowhere" ? [] : [answer] },
    deps: { policy: () => policy, ...(answer === "nowhere" ? { service: () => to } : {}) },
  });
  expect((await step()).verdict).toBe(answer === "nowhere" ? "retry" : "snooze");
  expect((await journal.entry(`${task.id}__activate`))?.state).toBe("claimed");
  expect(await deps.leases.holder(task)).toBeUndefined();
});

it("a run does not start while its activation may only have a slow worker", async () => {
  const policy = testPolicy({ action: { kind: "run", syncJobs: [42], activate: true } });
  const { step, later, task, journal, asked } = await steppedTask(store, {
    ...{ task: { kind: "run" }, by: stepRun, reads: [], writes: [status(200)] },
    deps: { policy: () => policy },
  });
  const first = { ...task, id: `${task.id}__activate`, kind: "activate" } as const;
  for (const { id } of [task, first]) await journal.claim(id, "slow");
  await journal.beginSending(first, "slow", { startByMs: task.startByMs, baseline: "" });
  expect((await step()).verdict).toBe("snooze");
  expect((await journal.entry(first.id))?.state).toBe("sending");
  expect(asked).toEqual([]);
  later(60_000);
  await step();
  expect((await journal.entry(first.id))?.state).toBe("settled");
});

const activating = testPolicy({ action: { kind: "run", syncJobs: [42], activate: true } });

/** A run whose step has claimed it and its activation. */
async function claimedRun(startByMs = 9_999_999_999_999) {
  const run = await steppedTask(store, {
    ...{ task: { kind: "run", startByMs }, by: stepRun, reads: [], writes: [] },
    deps: { policy: () => activating },
  });
  const first = { ...run.task, id: `${run.task.id}__activate`, kind: "activate" } as const;
  for (const { id } of [run.task, first]) await run.journal.claim(id, "me");
  const send = () => run.journal.beginSending(first, "me", { startByMs, baseline: "" });
  const sendAgain = () => run.journal.beginSendingAgain(first, "me", { startByMs, sends: 1, sender: "me" });
  return { ...run, first, send, sendAgain };
}

type Run = Awaited<ReturnType<typeof claimedRun>>;

it.each([
  ["a person cancels the run", ({ journal, task }) => journal.cancel(task.id, "cancelled by ada@desk")],
  ["another worker has the run", ({ journal, task }) => journal.claim(task.id, "another")],
  ["the run is over", ({ journal, task }) => journal.close(task, { isOver: true })],
] satisfies [string, (run: Run) => Promise<unknown>][])(
  "an activation does not go out, nor again, once %s",
  async (_when, change) => {
    const [before, after] = [await claimedRun(), await claimedRun()];
    await change(before);
    expect(await before.send()).toBe("lost-claim");
    expect(await after.send()).toBe("permitted");
    await change(after);
    expect(await after.sendAgain()).toBe("lost-claim");
  },
);

const history = new History(store);
const recorder = createRecorder(history, silentLog);
const attempt = { attempt: 1, attemptsMax: 8, signal: new AbortController().signal };

const process = (run: Run, more: Partial<ProcessDependencies> = {}) =>
  createProcessTask({ ...run.deps, ...more }, recorder)(run.task, attempt);
const cancelled = async (run: Run) => {
  await run.journal.cancel(run.task.id, "cancelled by ada@desk");
  await process(run);
};

const lacking = "policy stepped is not in the policies of the worker that had its turn";

it.each<[string, string, (run: Run) => Promise<unknown>]>([
  ["cancelled", "cancelled by ada@desk", cancelled],
  ["too-late", "its turn came after its start-by time", (run) => process(run, { nowMs: async () => 1e13 })],
  ["policy-removed", lacking, (run) => process(run, { policy: () => undefined })],
  ["crashed", "workers died", (run) => endAbandoned(run.task, run.deps, { recorder, why: "workers died" })],
])("a run that is %s before its start tells of an activation that went out", async (reason, why, end) => {
  const outcomeAfter = async (sent: (run: Run) => Promise<unknown>) => {
    const run = await claimedRun();
    await sent(run);
    await end(run);
    expect(await store.redis.hget(inFlightKey(store, run.first), run.first.id)).toBeNull();
    return history.outcome(run.task);
  };
  const told = (detail: string) => ({ evidence: "direct", reason, startedAt: null, detail });
  const but = reason === "cancelled" ? "the run was not started, but" : "but";
  const answered = await outcomeAfter(async ({ send, journal, first }) => {
    await send();
    await journal.noteConfirmed(first, "answer");
    await journal.close(first, { isOver: true });
  });
  expect(answered).toMatchObject(told(`${why}; ${but} the activation before it was sent`));
  const open = await outcomeAfter(({ send }) => send());
  expect(open).toMatchObject(told(`${why}; ${but} the activation before it may have been sent`));
  const died = await outcomeAfter(async ({ send, journal, first }) => {
    await send();
    await journal.noteDoubt(first.id, { kind: "crash", detail: "its worker died", atMs: 0 });
    await journal.close(first, { isOver: true });
  });
  expect(died).toMatchObject(told(`${why}; ${but} the activation before it may have been sent`));
  const takenBack = await outcomeAfter(async ({ send, journal, first }) => {
    await send();
    await journal.takeBack(first, "me");
  });
  expect(takenBack).toMatchObject(told(reason === "cancelled" ? `${why}; nothing was sent` : why));
});

it("a run that the service refuses tells of the activation before it", async () => {
  const policy = testPolicy({ action: activating.action, follow: { ...activating.follow, until: "accepted" } });
  const run = await steppedTask(store, {
    ...{ task: { kind: "run" }, by: stepRun, reads: [], writes: [status(200), status(400)] },
    deps: { policy: () => policy },
  });
  const step = createProcessTask(run.deps, recorder);
  await step(run.task, attempt);
  expect(await history.outcome(run.task)).toMatchObject({
    ...{ status: "not-started", evidence: "direct", reason: "refused" },
    detail: expect.stringMatching(/; but the activation before it was sent$/),
  });
  expect(run.asked).toEqual(["POST", "POST"]);
});

it.each([
  ["may have been", "crash"],
  ["was", "server"],
] as const)("a run that is cancelled once permitted says that it %s sent (%s)", async (sent, kind) => {
  const run = await claimedRun();
  await run.journal.beginSending(run.task, "me", { startByMs: run.task.startByMs, baseline: "" });
  await run.journal.noteDoubt(run.task.id, { kind, detail: "500", atMs: 0 });
  await cancelled(run);
  expect(await history.outcome(run.task)).toMatchObject({
    ...{ status: "unknown", reason: "cancelled" },
    detail: `cancelled by ada@desk; the request ${sent} sent: if the service took it, the run goes on there`,
  });
});

// The noted doubt is about the first request.
it("a run does not start while the second sender of its activation may be slow", async () => {
  const { send, sendAgain, journal, first, step, asked } = await claimedRun();
  await send();
  await journal.noteDoubt(first.id, { kind: "answer-lost", detail: "reset", atMs: 0 });
  expect(await sendAgain()).toBe("permitted");
  expect((await step()).verdict).toBe("snooze");
  expect((await journal.entry(first.id))?.state).toBe("sending");
  expect(asked).toEqual([]);
});
