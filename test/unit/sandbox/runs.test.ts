// What a run leaves behind, and when, on a clock that is set by hand.
import { describe, expect, it } from "vitest";
import { createChance } from "../../../src/sandbox/chance.ts";
import { planRun } from "../../../src/sandbox/runs.ts";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { freshSandbox, handClock, send } from "./caller.ts";

const last = async (sandbox: Sandbox, list: string) => (await send(sandbox, `GET /odata/${list}`)).json.value.at(-1);
const count = async (sandbox: Sandbox, list: string) => Number((await send(sandbox, `GET /odata/${list}/$count`)).text);

describe("a run", () => {
  it("is shown as running at once and as finished when its time is up", async () => {
    const clock = handClock();
    const sandbox = await freshSandbox({ clock, activities: 10, runMs: [5_000, 5_000] });
    await send(sandbox, "POST /api/syncjobs/run(3)");
    const running = { activityId: 11, syncJobId: 3, state: "Running", startedAt: "2026-11-21T02:30:00.000Z" };
    expect(await last(sandbox, "synchronizationactivities")).toEqual({
      ...running,
      finishedAt: null,
      itemsProcessed: 0,
    });
    clock.advance(4_999);
    expect((await last(sandbox, "synchronizationactivities")).state).toBe("Running");
    clock.advance(1);
    expect(await last(sandbox, "synchronizationactivities")).toEqual({
      ...running,
      state: "Finished",
      finishedAt: "2026-11-21T02:30:05.000Z",
      itemsProcessed: expect.any(Number),
    });
  });

  it("of a sync job divisible by 5 ends with a conflict that names it", async () => {
    const clock = handClock();
    const sandbox = await freshSandbox({ clock, runMs: [1_000, 1_000] });
    const before = await count(sandbox, "syncconflictdetails");
    await send(sandbox, "POST /api/syncjobs/run(10)");
    expect(await count(sandbox, "syncconflictdetails")).toBe(before);
    clock.advance(1_000);
    expect(await count(sandbox, "syncconflictdetails")).toBeGreaterThan(before);
    expect(await last(sandbox, "syncconflictdetails")).toMatchObject({
      syncJobId: 10,
      detectedAt: "2026-11-21T02:30:01.000Z",
    });
  });

  it("of a sync job that is running starts another one, with its own activity", async () => {
    const sandbox = await freshSandbox({ clock: handClock(), activities: 0 });
    await send(sandbox, "POST /api/syncjobs/run(3)");
    await send(sandbox, "POST /api/syncjobs/run(3)");
    expect(await count(sandbox, "synchronizationactivities")).toBe(2);
    expect(sandbox.ledger().map((entry) => entry.runNumber)).toEqual([1, 2]);
  });

  it("ends in the order of the ends, so conflicts are in order of time", async () => {
    const clock = handClock();
    const sandbox = await freshSandbox({ clock, jobs: 100, activities: 0, runMs: [1, 60_000] });
    for (let job = 5; job <= 100; job += 5) await send(sandbox, `POST /api/syncjobs/run(${job})`);
    clock.advance(60_000);
    const { json } = await send(sandbox, "GET /odata/syncconflictdetails");
    const instants: string[] = json.value.map((conflict: { detectedAt: string }) => conflict.detectedAt);
    expect(instants).toEqual(instants.toSorted());
    expect(json.value.map((conflict: { conflictId: number }) => conflict.conflictId)).toEqual(
      instants.map((_, index) => index + 1),
    );
  });
});

describe("approvals", () => {
  it("do not hold up a run unless told so", async () => {
    const clock = handClock();
    const sandbox = await freshSandbox({ clock, runMs: [1_000, 1_000] });
    await send(sandbox, "POST /api/syncjobs/run(11)");
    clock.advance(1_000);
    expect((await last(sandbox, "approvals")).itemName).toContain("run 1");
    expect((await send(sandbox, "GET /odata/synchronizationactivities?$skip=250")).json.value[0].state).toBe(
      "Finished",
    );
  });

  it("hold up a run until they are cleared, when they block", async () => {
    const clock = handClock();
    const sandbox = await freshSandbox({ clock, activities: 0, runMs: [1_000, 1_000], approvalsBlock: true });
    await send(sandbox, "POST /api/syncjobs/run(11)");
    clock.advance(60_000);
    expect((await last(sandbox, "synchronizationactivities")).state).toBe("Running");
    expect((await send(sandbox, "POST /_sandbox/approvals/clear?repository=HR")).json).toEqual({ cleared: 0 });
    expect((await send(sandbox, "POST /_sandbox/approvals/clear")).json).toEqual({ cleared: 1 });
    expect(await count(sandbox, "approvals")).toBe(0);
    expect(await last(sandbox, "synchronizationactivities")).toMatchObject({
      state: "Finished",
      finishedAt: "2026-11-21T02:31:00.000Z",
    });
    expect(sandbox.clearApprovals()).toBe(0);
  });
});

describe("luck", () => {
  it("keeps its promises for every seed", () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const chance = createChance(seed);
      const runs = Array.from({ length: 60 }, (_, index) => index + 1);
      for (let job = 1; job <= 22; job += 1) {
        const luck = runs.map((run) => planRun(chance, job, run, [1_000, 4_000]));
        expect(luck.every((one) => one.leavesApproval === (job % 11 === 0))).toBe(true);
        expect(luck.some((one) => one.fails)).toBe(job % 7 === 0);
        if (job % 5 === 0) expect(luck.every((one) => one.conflicts === 1 || one.conflicts === 2)).toBe(true);
        expect(luck.every((one) => one.durationMs >= 1_000 && one.durationMs <= 4_000)).toBe(true);
      }
    }
  });

  it("does not depend on the order in which sync jobs are run", async () => {
    const items = async (jobs: readonly number[]) => {
      const clock = handClock();
      const sandbox = await freshSandbox({ clock, activities: 0, seed: 5 });
      for (const job of jobs) await send(sandbox, `POST /api/syncjobs/run(${job})`);
      clock.advance(10_000);
      const { json } = await send(sandbox, "GET /odata/synchronizationactivities");
      const rows: { syncJobId: number; itemsProcessed: number }[] = json.value;
      return rows.map((row) => `${row.syncJobId}:${row.itemsProcessed}`).toSorted();
    };
    expect(await items([1, 2, 7])).toEqual(await items([7, 2, 1]));
  });
});
