// A deletion at a service with limits, over real HTTP and a real journal: the place that it needs
// after its guard was read.
import { expect, it, vi } from "vitest";
import type { Denial, Permit } from "../../../src/core/limiter.ts";
import type { Task } from "../../../src/model/task.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { stepDelete } from "../../../src/tasks/delete.ts";
import type { StepResult } from "../../../src/tasks/step.ts";
import { defaultTiming } from "../../../src/tasks/timing.ts";
import { type Answer, answeringService, status } from "../../support/answering-service.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { testDeps } from "../../support/task-deps.ts";

const target = redisForTest();
let tasks = 0;

const store = await storeForTest(target);
const journal = new StartJournal(store);

interface Behaviour {
  readonly deletes: readonly Answer[];
  /** What the limiter says to the deletion before its permission. */
  readonly enter?: (taskId: string) => Promise<Permit | Denial>;
  readonly stopping?: AbortSignal;
}

async function fixture({ deletes, enter, stopping = new AbortController().signal }: Behaviour) {
  const there = status(200, '{"syncJobId":42,"name":"Contracts"}');
  const { asked, service } = await answeringService({ reads: [there], writes: deletes });
  tasks += 1;
  const task: Task = {
    v: 1,
    id: `limited-${tasks}`,
    kind: "delete",
    policy: "retired",
    service: "main",
    repository: `L${tasks}`,
    target: "42",
    slotMs: 0,
    origin: "manual",
    covers: [],
    startByMs: 9_999_999_999_999,
  };
  const deps = testDeps(store, {
    policy: () => testPolicy({ action: { kind: "delete", syncJob: 42, name: "Contracts" } }),
    service: () => service,
    ...{ journal, stopping },
    timing: { ...defaultTiming, verifyForMs: 0, syncJobUnreadableForMs: 0 },
    ...(enter === undefined ? {} : { acquire: () => enter(task.id) }),
  });
  let claimant = 0;
  const step = async () => {
    claimant += 1;
    return stepDelete(task, deps, { claimant: `o${claimant}`, entry: await journal.claim(task.id, `o${claimant}`) });
  };
  return { asked, step, task };
}

const told = (step: StepResult) => ("ending" in step ? `${step.ending?.status} ${step.ending?.reason}` : step.verdict);

it("waits in place for its turn after its guard was read, which is read once", async () => {
  const holds: Denial[] = [
    { deniedBy: "rate", waitMs: 5 },
    { deniedBy: "concurrency", waitMs: 5 },
  ];
  const enter = async () => holds.shift() ?? { release: async () => {} };
  const { asked, step } = await fixture({ deletes: [status(200, "true")], enter });
  expect(told(await step())).toBe("succeeded deleted");
  expect(asked).toEqual(["GET", "DELETE"]);
});

it.each<Denial>([
  { deniedBy: "rate", waitMs: 15_001 },
  { deniedBy: "breaker", waitMs: 1_000 },
  { deniedBy: "throttle", waitMs: 1_000 },
])("sleeps without a permission during a long wait or the service's ($deniedBy)", async (hold) => {
  const enter = vi.fn(async () => hold);
  const { asked, step, task } = await fixture({ deletes: [], enter });
  expect(told(await step())).toBe("snooze");
  expect(asked).toEqual(["GET"]);
  expect(enter).toHaveBeenCalledTimes(1);
  expect(await journal.entry(task.id)).toMatchObject({ state: "claimed", sends: 0 });
});

it("waits for fifteen seconds in all, however many turns it was told", async () => {
  const holds: Denial[] = [
    { deniedBy: "rate", waitMs: 20 },
    { deniedBy: "rate", waitMs: 14_981 },
  ];
  const { asked, step } = await fixture({
    deletes: [status(200, "true")],
    enter: async () => holds.shift() ?? { release: async () => {} },
  });
  expect(told(await step())).toBe("snooze");
  expect(asked).toEqual(["GET"]);
});

it("waits no longer when its worker is told to stop", async () => {
  const stopping = new AbortController();
  const enter = vi.fn(async (): Promise<Denial> => {
    stopping.abort();
    return { deniedBy: "rate", waitMs: 1 };
  });
  const { asked, step, task } = await fixture({ deletes: [], enter, stopping: stopping.signal });
  expect(told(await step())).toBe("snooze");
  expect(asked).toEqual(["GET"]);
  expect(enter).toHaveBeenCalledTimes(1);
  expect(await journal.entry(task.id)).toMatchObject({ state: "claimed", sends: 0 });
});

it("releases its permit when another worker has claimed the task, and sends nothing", async () => {
  let left = 0;
  const enter = async (taskId: string) => {
    await journal.claim(taskId, "another");
    const release = async () => {
      left += 1;
    };
    return { release };
  };
  const { asked, step } = await fixture({ deletes: [], enter });
  expect(told(await step())).toBe("snooze");
  expect([asked, left]).toEqual([["GET"], 1]);
});
