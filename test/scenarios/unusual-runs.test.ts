// A run unlike the newest ones of its sync job is told once, while it goes on or at its end.
import { describe, expect, it, vi } from "vitest";
import type { Notice } from "../../src/model/notice.ts";
import { History } from "../../src/store/history.ts";
import { openStore, type RedisTarget } from "../../src/store/redis.ts";
import { runHere } from "../support/commands-here.ts";
import { testOutcome } from "../support/outcomes.ts";
import { often } from "../support/processes.ts";
import { commandHere } from "../support/simulate-command.ts";
import { worldForTest } from "../support/world.ts";

/** Twelve runs of the past, each so long and with so many activities. */
const past = (durationMs: number, activities: number) => async (target: RedisTarget) => {
  const store = await openStore(target);
  for (let night = 1; night <= 12; night += 1) {
    const at = new Date(Date.parse("2026-11-01T02:00:00Z") + night * 86_400_000).toISOString();
    const named = { policy: "story", target: "3", taskId: `story__run__3__${night}`, slot: at, finishedAt: at };
    await new History(store).record(testOutcome({ ...named, durationMs, activities }));
  }
  await store.close();
};

/** The minute of slots that no test lives to see. */
const inHalfAnHour = new Date(Date.now() + 1_800_000).getUTCMinutes();

const policies = (unusual: string) => `  - name: story
    service: main
    repository: HR
    run: { syncJobs: [3] }
    unusual: ${unusual}
    notify: [ops, { sink: failures, on: [failure] }]
  - { name: next, service: main, repository: HR, run: { syncJobs: [3] }, schedule: { cron: "${inHalfAnHour} * * * *" }, overlap: queue }
sinks: { ops: { file: { path: ops.jsonl } }, failures: { file: { path: failures.jsonl } } }`;

async function story(unusual: string, known: { durationMs: number; activities: number }, runMs: number) {
  const told: { sink: string; notice: Notice }[] = [];
  const world = await worldForTest({
    policies: policies(unusual),
    sandbox: { runMs: [runMs, runMs] },
    before: past(known.durationMs, known.activities),
    deliver: async (deliveries) => void told.push(...deliveries),
  });
  return { world, told };
}

describe("a run that goes on", () => {
  it("will probably end as usual: running, plan and its own follower say when", async () => {
    const { world } = await story("off", { durationMs: 3_600_000, activities: 1 }, 60_000);
    const at = ["--prefix", world.target.prefix, "--redis-url", world.target.url];
    await runHere(["run", "story", ...at], {});
    await world.log.until(({ event }) => event === "task.started");
    const { out } = await runHere(["running", "--json", ...at], {});
    const [task] = JSON.parse(out).tasks;
    expect(task).toMatchObject({
      usualMs: 3_600_000,
      waitsFor: expect.stringMatching(/run; usually 1h, so about (\S+ )?\d\d:\d\d UTC$/),
    });
    expect(Date.parse(task.endsAbout) - Date.parse(task.sent)).toBe(3_600_000);
    const plan = await commandHere(["plan", "--from", "now", "--to", "+2h", ...at]);
    expect(plan.text).toMatch(/Sync job 3 of story goes on: usually 1h, so about (\S+ )?\d\d:\d\dZ\./);
    expect(plan.text).toContain("sync job 3 is still at work for story (overlap: queue)");
  });

  it("is still there for the plan when it takes longer than usual", async () => {
    const { world } = await story("off", { durationMs: 500, activities: 1 }, 60_000);
    const at = ["--prefix", world.target.prefix, "--redis-url", world.target.url];
    await world.enqueue("story");
    await world.log.until(({ event }) => event === "task.started");
    const plan = () => commandHere(["plan", "--from", "now", "--to", "+2h", ...at]);
    const goesOn = "Sync job 3 of story goes on: usually 1s, so it takes longer.";
    await vi.waitFor(async () => expect((await plan()).text).toContain(goesOn), often);
  });
});

describe("an unusual run", () => {
  it("is told once while it goes on for too long, and its outcome says so", async () => {
    const { world, told } = await story("{ floor: 1s }", { durationMs: 500, activities: 1 }, 8_000);
    const ended = world.run("story");
    await vi.waitFor(() => expect(told).toHaveLength(1), often);
    const { sink, notice } = told[0] ?? expect.fail();
    expect([sink, notice.kind]).toEqual(["ops", "unusual"]);
    expect(notice.title).toMatch(/^story: runs for \d+s, usually 1s, and goes on, sync job 3$/);
    expect(await ended).toMatchObject({ status: "succeeded", unusual: ["duration"], usualMs: 500, toldLong: true });
    const names = world.log.events.map(({ event }) => event);
    const order = names.filter((name) => name === "run.long" || name === "task.finished");
    expect(order).toEqual(["run.long", "task.finished"]);
    // What the first run told at its end would come before this.
    const again = await world.run("story");
    expect(again.detail).toMatch(/; unusual: took \d+s, usually 1s$/);
    await vi.waitFor(() => expect(told).toHaveLength(2), often);
    expect(told[1]?.notice.title).toContain("and goes on");
    expect(world.log.named("run.long")).toHaveLength(2);
  });

  it("is told at its end where it leaves far fewer activities", async () => {
    const { world, told } = await story("{ floor: 1m }", { durationMs: 500, activities: 120 }, 300);
    expect(await world.run("story")).toMatchObject({ activities: 1, unusual: ["activities"], usualActivities: 120 });
    await vi.waitFor(() => expect(told).toHaveLength(1), often);
    const { title, data } = told[0]?.notice ?? expect.fail();
    expect(title).toBe("story: unusual run (1 activity, usually 120), sync job 3");
    expect(data).toMatchObject({
      status: "succeeded",
      activities: 1,
      unusual: [{ what: "activities", value: 1, usual: 120 }],
    });
  });

  it("is an ordinary one where the policy says off", async () => {
    const { world } = await story("off", { durationMs: 500, activities: 120 }, 300);
    expect(await world.run("story")).not.toHaveProperty("unusual");
  });
});
