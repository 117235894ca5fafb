// Whoever comes for a sync job that another task holds: when it waits, and when it takes the lease
// over.
import { expect, it } from "vitest";
import type { Task } from "../../../src/model/task.ts";
import type { JobStatus } from "../../../src/model/task-processing.ts";
import { Leases, leaseKey, leaseMs } from "../../../src/store/leases.ts";
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

it.each<[status: JobStatus, sent: "nothing" | "a start", silentForMs: number, goesTo: "holder" | "heir"]>([
  ["pending", "nothing", 0, "holder"],
  ["pending", "a start", 0, "holder"],
  // Its workers were away: its run may go on.
  ["pending", "a start", 86_400_000, "holder"],
  ["missing", "nothing", 0, "heir"],
  ["missing", "a start", 200_000, "holder"],
  ["missing", "a start", 300_000, "heir"],
  ["completed", "nothing", 0, "heir"],
  ["completed", "a start", 0, "heir"],
])("a lease of one %s in the queue that sent %s, silent for %i ms, goes to the %s", async (...given) => {
  const [status, sent, silentForMs, goesTo] = given;
  const target = given.join(" ");
  const [holder, heir] = [taskOf(`holder ${target}`, target), taskOf(`heir ${target}`, target)];
  for (const { id } of [holder, heir]) await journal.claim(id, "me");
  await leases.acquire(holder, "me");
  if (sent === "a start") await journal.beginSending(holder, "me", intent);
  await store.redis.pexpire(leaseKey(store, holder), leaseMs - silentForMs);
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
  expect(await store.redis.get(leaseKey(store, heir))).toBe(winner.id);
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
