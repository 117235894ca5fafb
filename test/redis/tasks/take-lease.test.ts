// Whoever comes for a sync job that another task holds: when it waits, and when it takes the lease
// over.
import { expect, it } from "vitest";
import type { JobStatus } from "../../../src/model/contracts.ts";
import type { Task } from "../../../src/model/task.ts";
import { Leases } from "../../../src/store/leases.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { takeLease } from "../../../src/tasks/step.ts";
import { storeForTest } from "../../support/redis.ts";
import { testDeps } from "../../support/task-deps.ts";
import { TestLog } from "../../support/test-log.ts";

const store = await storeForTest();
const journal = new StartJournal(store);
const leases = new Leases(store);

const taskOf = (id: string, target: string): Task => ({
  v: 1,
  ...{ id, policy: "nightly", service: "main", repository: "HR", kind: "run", target, origin: "schedule" },
  ...{ slotMs: 1, startByMs: 9_999_999_999_999, covers: [] },
});

const intent = { startByMs: 9_999_999_999_999, baseline: "" };

it.each<[status: JobStatus, sent: "nothing" | "a start", goesTo: "holder" | "heir"]>([
  ["pending", "nothing", "holder"],
  ["pending", "a start", "holder"],
  ["missing", "nothing", "heir"],
  ["missing", "a start", "holder"],
  ["completed", "nothing", "heir"],
  ["completed", "a start", "heir"],
])("a lease whose holder is %s in the queue and has sent %s goes to the %s", async (status, sent, goesTo) => {
  const target = `${status} ${sent}`;
  const [holder, heir] = [taskOf(`holder ${target}`, target), taskOf(`heir ${target}`, target)];
  for (const { id } of [holder, heir]) await journal.claim(id, "me");
  await leases.acquire(holder, "me", 60_000);
  if (sent === "a start") await journal.beginSending(holder, "me", intent);
  const asked: string[] = [];
  const log = new TestLog();
  const deps = testDeps(store, {
    log,
    jobStatus: async (service, id) => {
      asked.push(`${service} ${id}`);
      return status;
    },
  });
  const winner = goesTo === "heir" ? heir : holder;
  expect(await takeLease(heir, deps, "me")).toBe(winner.id);
  expect(await leases.holder(heir)).toBe(winner.id);
  expect(asked).toEqual([`main ${holder.id}`]);
  const told = log.named("lease.taken-over").map(({ taskId, holder: from }) => [taskId, from]);
  expect(told).toEqual(goesTo === "heir" ? [[heir.id, holder.id]] : []);
});

it("a free lease, or the task's own, needs no question to the queue", async () => {
  const deps = testDeps(store, { jobStatus: () => Promise.reject(new Error("asked")) });
  const task = taskOf("alone", "alone");
  await journal.claim(task.id, "me");
  expect(await takeLease(task, deps, "me")).toBe(task.id);
  expect(await takeLease(task, deps, "me")).toBe(task.id);
});
