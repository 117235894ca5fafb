// The activation before a run (src/tasks/activate.ts) over real HTTP and a real journal,
// whose worker dies before it has written what became of it.
import { expect, it } from "vitest";
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

it("a run does not start while its activation may only have a slow worker", async () => {
  const policy = testPolicy({ action: { kind: "run", syncJobs: [42], activate: true } });
  const { step, later, task, journal, asked } = await steppedTask(store, {
    ...{ task: { kind: "run" }, by: stepRun, reads: [], writes: [status(200)] },
    deps: { policy: () => policy },
  });
  const first = { ...task, id: `${task.id}__activate`, kind: "activate" } as const;
  await journal.claim(first.id, "slow");
  await journal.beginSending(first, "slow", { startByMs: task.startByMs, baseline: "" });
  expect((await step()).verdict).toBe("snooze");
  expect((await journal.entry(first.id))?.state).toBe("sending");
  expect(asked).toEqual([]);
  later(60_000);
  await step();
  expect((await journal.entry(first.id))?.state).toBe("settled");
});
