// A person cancels: what is not sent never goes out, what is sent is not followed any more, and
// both say so. `running` shows where each task stood.
import { expect, it } from "vitest";
import { type CancelResult, cancel } from "../../src/actions/cancel.ts";
import { type Task, taskId } from "../../src/model/task.ts";
import { Producer } from "../../src/queue/producer.ts";
import { Leases } from "../../src/store/leases.ts";
import { openStore } from "../../src/store/redis.ts";
import { batchesOf } from "../../src/store/script.ts";
import { StartJournal } from "../../src/store/start-journal.ts";
import { runHere } from "../support/commands-here.ts";
import { often } from "../support/processes.ts";
import { TestLog } from "../support/test-log.ts";
import { type World, worldForTest } from "../support/world.ts";

const commands = ({ target }: World) => {
  const at = ["--prefix", target.prefix, "--redis-url", target.url];
  return async (...args: string[]) => runHere([...args, ...at], {});
};

it("shows each step, takes a waiting task off, and stops to follow a run", async () => {
  const world = await worldForTest({
    policies: `
  - { name: long, service: main, repository: HR, run: { syncJobs: [3] }, overlap: queue, follow: { until: settled, deadline: 1h } }
  - { name: other, service: main, repository: HR, run: { syncJobs: [3] }, overlap: queue }`,
    sandbox: { runMs: [60_000, 60_000] },
  });
  const here = commands(world);
  const steps = async () => {
    const { out } = await here("running", "--json");
    return JSON.parse(out).tasks.map(({ policy, step }: { policy: string; step: string }) => `${policy}: ${step}`);
  };
  await world.enqueue("long");
  await expect.poll(steps, often).toEqual(["long: following"]);
  await world.enqueue("other");
  await expect.poll(steps, often).toEqual(["long: following", "other: waits for sync job"]);
  const table = (await here("running")).out;
  expect(table).toMatch(/other +sync job 3, by hand .* waits for sync job .* long__run__3__m\d+ holds it/);
  expect((await here("running", "--limit", "1")).err).toContain("and 1 more task: --limit");

  expect(await here("cancel", "other")).toMatchObject({ code: 2, err: expect.stringContaining("add --yes") });
  const off = await here("cancel", "other", "--yes", "--reason", "wrong day");
  expect(off).toMatchObject({ code: 0, err: "" });
  expect(off.out).toMatch(/^cancelled by .+@.+: wrong day; nothing was sent$/);
  expect(await steps()).toEqual(["long: following"]);

  const [task] = JSON.parse((await here("running", "--json")).out).tasks;
  const left = await here("cancel", task.id, "--yes", "--json", "--reason", "too slow");
  expect(JSON.parse(left.out)).toMatchObject({ status: "unknown", reason: "cancelled", evidence: "none" });
  expect(JSON.parse(left.out).detail).toMatch(
    /too slow; the service had taken the request, and the run goes on there$/,
  );
  expect(await here("cancel", task.id, "--yes")).toMatchObject({
    code: 1,
    err: expect.stringContaining("has ended before: unknown (cancelled)"),
  });
  expect((await here("running")).err).toBe("nothing is in flight");
  const store = await openStore(world.target);
  expect(await new Leases(store).holder({ ...task, repository: "HR" })).toBeUndefined();
  await store.close();
  expect(world.starts(3)).toBe(1);

  expect((await here("cancel", "lnog__run__3__m1", "--yes")).err).toContain("there is no task lnog__run__3__m1");
  expect((await here("cancel", "long")).err).toContain("no task of a policy long is in flight");
  const changes = JSON.parse((await here("changes", "--json")).out);
  expect(changes).toMatchObject([
    { what: "cancel", subject: `task ${task.id}`, reason: "too slow", before: { state: "confirmed" } },
    { what: "cancel", reason: "wrong day", before: { state: "claimed" } },
  ]);
});

it("tells of the activation that went out before a run that it takes off", async () => {
  const world = await worldForTest({
    policies: `
  - { name: woken, service: main, repository: HR, run: { syncJobs: [3], activate: true }, follow: { until: accepted } }`,
    faults: ["429,op=RunSyncJob,retryAfter=600"],
  });
  const here = commands(world);
  await world.enqueue("woken");
  const isThrottled = () => world.sandbox.requests()["RunSyncJob"];
  await expect.poll(isThrottled, often).toEqual({ 429: 1 });
  // Until the step of the refused request has ended, the run counts as sent.
  await expect.poll(() => world.actions("main"), often).toEqual({ active: 0, delayed: 1 });
  const asked: string[] = [];
  const ask = async (question: string) => {
    asked.push(question);
    return "no";
  };
  await runHere(["cancel", "woken", "--prefix", world.target.prefix, "--redis-url", world.target.url], {}, { ask });
  expect(asked.join()).toMatch(/^The run is not started yet, but the activation before it was sent\. Cancel woken__/);
  const { out } = await here("cancel", "woken", "--yes", "--json");
  const { status, reason, detail } = JSON.parse(out);
  expect({ status, reason }).toEqual({ status: "skipped", reason: "cancelled" });
  expect(detail).toMatch(/^cancelled by .+@.+; the run was not started, but the activation before it was sent$/);
  expect(world.sandbox.ledger().map(({ operation }) => operation)).toEqual(["EnableSyncJobById"]);
});

it("says of no request that arrived that nothing was sent, in 360 races (P2)", async () => {
  const targets = Array.from({ length: 120 }, (_, index) => String(index + 1));
  const names = ["fast", "slow", "woken"];
  const world = await worldForTest({
    policies: `
  - { name: fast, service: main, repository: HR, run: { syncJobs: [1] }, follow: { until: accepted } }
  - { name: slow, service: main, repository: HR, run: { syncJobs: [2] }, follow: { until: settled } }
  - { name: woken, service: main, repository: HR, run: { syncJobs: [2], activate: true }, follow: { until: accepted } }`,
    sandbox: { jobs: 600, runMs: [30_000, 30_000] },
    replicas: 2,
  });
  const store = await openStore(world.target);
  const producer = new Producer(world.target, new TestLog());
  const by = { actor: "me@here", reason: null, warn: () => {} };
  const slotMs = Date.now();
  const tasks = names.flatMap((policy) =>
    targets.map((target): Task => {
      const identity = { policy, kind: "run", target, slotMs, origin: "manual" } as const;
      const facts = { service: "main", repository: "HR", covers: [], startByMs: slotMs + 600_000 };
      return { v: 1, id: taskId(identity), ...identity, ...facts };
    }),
  );
  const met = new Map<string, CancelResult>();
  const journal = new StartJournal(store);
  const states = ["claimed", "sending", "confirmed", "settled"];
  /** Cancels at once, or in the moment in which the start has come so far. */
  const cancelAt = async (task: Task, index: number) => {
    const wanted = (index % 4) - 1;
    const isThere = async () => states.indexOf((await journal.entry(task.id))?.state ?? "") >= wanted;
    while (!(await isThere()));
    met.set(task.id, await cancel(task, { store, producer, by }));
  };
  for (const wave of batchesOf(tasks, 30)) {
    await producer.enqueue(wave);
    await Promise.all(wave.map(cancelAt));
  }
  const outcomes = () => names.flatMap((policy) => world.log.outcomesOf(policy));
  await expect.poll(() => outcomes().length, { interval: 100 }).toBe(tasks.length);
  const arrived = world.sandbox.ledger().map(({ idempotencyKey }) => idempotencyKey);
  expect(new Set(arrived).size).toBe(arrived.length);
  for (const { taskId: id, status, reason, detail } of outcomes()) {
    expect({ id, isSent: arrived.includes(id) }).toEqual({ id, isSent: status !== "skipped" });
    const isActivated = arrived.includes(`${id}__activate`);
    // One that another run keeps from starting says so, and its activation did not go out either.
    const isTold = reason === "overlap" ? detail.includes("activation") : !detail.endsWith("nothing was sent");
    if (status === "skipped") expect({ id, detail, isTold }).toEqual({ id, detail, isTold: isActivated });
    if (met.get(id) === "claimed")
      expect({ id, status, reason }).toEqual({ id, status: "skipped", reason: "cancelled" });
  }
  // The race is one: in every state, cancels came.
  const seen = Map.groupBy(met.values(), (state) => state);
  for (const state of states)
    expect({ state, count: seen.get(state as CancelResult)?.length ?? 0 }).not.toEqual({ state, count: 0 });
  const inTime = seen.get("claimed")?.length ?? 0;
  expect(Math.min(inTime, tasks.length - inTime)).toBeGreaterThan(20);
  await producer.close();
  await store.close();
});
