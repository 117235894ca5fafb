// Redis loses its newest writes, or all of them, while starts go out every second. Nothing starts
// twice, nothing floods, all goes on.
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { often } from "../support/processes.ts";
import { clientOf, startForgetfulServer, startServer } from "../support/redis-servers.ts";
import { type World, worldForTest } from "../support/world.ts";

const policies = `
  - name: often
    service: main
    repository: HR
    run: { syncJobs: [1, 2, 3] }
    schedule: { every: 1s }
    overlap: allow
    catchUp: all
    catchUpWindow: 1m
    follow: { until: accepted }
  - name: newest
    service: main
    repository: HR
    run: { syncJobs: [4] }
    schedule: { every: 1s }
    overlap: allow
    follow: { until: accepted }`;

let world: World;

/** How often each task was really started, by its name, which travels with the request. */
function startsByTask(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { operation, idempotencyKey } of world.sandbox.ledger()) {
    if (operation !== "RunSyncJob" || idempotencyKey === null) continue;
    counts.set(idempotencyKey, (counts.get(idempotencyKey) ?? 0) + 1);
  }
  return counts;
}

const slotOf = (task: string) => Number(task.split("__").at(-1)) * 1_000;

/** Waits until a task has been started whose slot is later than this. */
async function startedAfter(slotMs: number): Promise<void> {
  await world.log.until(({ event, taskId }) => event === "task.started" && slotOf(String(taskId)) > slotMs);
}

function expectNoSecondStart(): void {
  expect([...startsByTask()].filter(([, count]) => count > 1)).toEqual([]);
}

describe("a Redis that loses its newest writes while starts go out", () => {
  it("starts nothing twice: possible starts are unknown, and later slots go on", async () => {
    const server = await startForgetfulServer();
    world = await worldForTest({ redis: { url: server.url, prefix: "{loss}" }, policies });
    await world.log.until(() => startsByTask().size >= 6);
    const writtenThen = server.written();
    const before = startsByTask().size;
    await world.log.until(() => startsByTask().size >= before + 6);
    await server.restart(writtenThen);
    const loss = await world.log.until(({ event }) => event === "redis.loss-detected");
    const untilMs = Date.parse(String(loss["until"]));
    await startedAfter(untilMs);
    // Those whose slots come again end beside the later ones.
    for (const name of ["often", "newest"]) {
      const isLost = ({ event, policy, reason }: Record<string, unknown>) =>
        event === "task.finished" && policy === name && reason === "redis-loss";
      await world.log.until(isLost);
    }
    expectNoSecondStart();
    const lost = world.log.named("task.finished").filter(({ reason }) => reason === "redis-loss");
    for (const { status, slot } of lost) {
      expect(status).toBe("unknown");
      expect(Date.parse(String(slot))).toBeLessThanOrEqual(untilMs);
    }
    // Nor is one that started said not to have: those that come again are too late for `latest`.
    const without = ["slot.coalesced", "slot.missed", "slot.skipped"].flatMap((event) => world.log.named(event));
    const started = new Set([...startsByTask().keys()].map((task) => `${task.split("__")[0]} ${slotOf(task)}`));
    const notStarted = without.map(({ policy, slot }) => `${policy} ${Date.parse(String(slot))}`);
    expect(notStarted.filter((one) => started.has(one))).toEqual([]);
  });
});

describe("a Redis that is emptied while starts go out", () => {
  it("starts nothing twice and floods nothing: marks begin anew", async () => {
    const server = await startServer();
    const admin = clientOf(server.port);
    world = await worldForTest({ redis: { url: server.url, prefix: "{flush}" }, policies });
    await world.log.until(() => startsByTask().size >= 6);
    await admin.flushall();
    const loss = await world.log.until(({ event }) => event === "redis.loss-detected");
    await startedAfter(Date.parse(String(loss["until"])));
    expectNoSecondStart();
    // Three sync jobs, one slot a second: more slots than seconds would be old ones made up for.
    const slots = [...startsByTask().keys()].map(slotOf);
    expect(new Set(slots).size).toBeLessThanOrEqual((Math.max(...slots) - Math.min(...slots)) / 1_000 + 1);
    expect(loss["kind"]).toBe("flushed");
  });
});

describe("a Redis that is full for a while", () => {
  it("refuses loudly, loses no slot, and goes on when there is room", async () => {
    const server = await startServer();
    const admin = clientOf(server.port);
    world = await worldForTest({ redis: { url: server.url, prefix: "{full}" }, policies });
    await world.log.until(() => startsByTask().size >= 3);
    await admin.config("SET", "maxmemory", "1");
    const failing = await world.log.until(({ event }) => event === "scheduler.failing");
    expect(failing["message"]).toContain("OOM");
    await admin.config("SET", "maxmemory", "0");
    await world.log.until(({ event }) => event === "scheduler.recovered");
    const [last = 0] = [...startsByTask().keys()].map(slotOf).sort((a, b) => b - a);
    await startedAfter(last + 3_000);
    expectNoSecondStart();
    // Every slot between the first and the last one that started has started: none was jumped over.
    const started = () => new Set([...startsByTask().keys()].map(slotOf));
    const [oldest, newest] = [Math.min(...started()), Math.max(...started())];
    const wanted = Array.from({ length: (newest - oldest) / 1_000 + 1 }, (_, index) => oldest + index * 1_000);
    // A later one may be faster.
    await expect.poll(() => wanted.filter((slotMs) => !started().has(slotMs)), often).toEqual([]);
  });
});

describe("a Redis that is frozen for ten seconds", () => {
  it("hangs nothing, and all goes on without a second start", async () => {
    const server = await startServer();
    world = await worldForTest({ redis: { url: server.url, prefix: "{frozen}" }, policies });
    await world.log.until(() => startsByTask().size >= 3);
    process.kill(server.pid, "SIGSTOP");
    const failing = world.log.until(({ event }) => event === "scheduler.failing");
    // On a busy machine longer: whoever waits for Redis has to give up first.
    await Promise.all([delay(10_000), failing]).finally(() => process.kill(server.pid, "SIGCONT"));
    expect(world.app.unreadiness().length).toBeLessThanOrEqual(1);
    await world.log.until(({ event }) => event === "scheduler.recovered");
    const [last = 0] = [...startsByTask().keys()].map(slotOf).sort((a, b) => b - a);
    await startedAfter(last + 2_000);
    expectNoSecondStart();
    await expect.poll(() => world.app.unreadiness(), often).toEqual([]);
  });
});
