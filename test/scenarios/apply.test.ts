import { describe, expect, it } from "vitest";
import { SyncService, staticToken } from "../../src/service/client.ts";
import { type World, worldForTest } from "../support/world.ts";

const apply = (text: string) => `  - { name: story, service: main, repository: HR, apply: ${text} }`;

/** Changes the name of a sync job as a person would. */
async function renameByHand({ sandbox }: World, id: number, name: string): Promise<void> {
  const service = new SyncService({ baseUrl: sandbox.baseUrl, token: staticToken(sandbox.token) });
  await service.updateSyncJobById(id, { name });
  service.close();
}

function putsOf({ sandbox }: World): string[] {
  return sandbox
    .ledger()
    .filter(({ operation }) => operation.startsWith("Update"))
    .map(({ operation, key }) => `${operation} ${key}`);
}

describe("an apply policy", () => {
  it("brings each object to what is declared, and the second time sends nothing", async () => {
    const policies = apply(
      "{ syncJobs: { 4: { name: Contracts } }, docMasks: { 7: { name: Contract file } }, driveTargets: { 9: { siteName: HR, folderName: In } } }",
    );
    const now = await worldForTest({ policies });
    const told = async (count: number) => {
      await now.log.until(() => now.log.outcomesOf("story").length === count);
      const outcomes = now.log.outcomesOf("story").slice(-3);
      return outcomes.map(({ target, status, reason }) => `${target} ${status} ${reason}`).sort();
    };
    await now.enqueue("story");
    const applied = ["docMask-7", "driveTarget-9", "syncJob-4"];
    expect(await told(3)).toEqual(applied.map((target) => `${target} succeeded applied`));
    const puts = putsOf(now);
    expect(puts.toSorted()).toEqual([
      "UpdateDriveSyncTargetById 9",
      "UpdateEcmDocumentMaskById 7",
      "UpdateSyncJobById 4",
    ]);
    await now.enqueue("story");
    expect(await told(6)).toEqual(applied.map((target) => `${target} succeeded nothing-to-do`));
    expect(putsOf(now)).toEqual(puts);
  });

  it("finds a change by hand, corrects it and reports it once", async () => {
    const now = await worldForTest({ policies: apply("{ syncJobs: { 4: { name: Contracts } } }") });
    expect(await now.run("story")).toMatchObject({ reason: "applied" });
    await renameByHand(now, 4, "Old contracts");
    const mended = await now.run("story");
    expect(mended).toMatchObject({ status: "succeeded", reason: "drift-corrected" });
    expect(mended.detail).toBe('sync job 4: changed by hand and set again: name: "Old contracts" → "Contracts"');
    expect(await now.run("story")).toMatchObject({ reason: "nothing-to-do" });
    expect(putsOf(now)).toHaveLength(3);
  });

  it("reads again after a lost answer, and resends nothing that took effect", async () => {
    const faults = ["lost-answer,op=UpdateSyncJobById,first=1"];
    const now = await worldForTest({ policies: apply("{ syncJobs: { 4: { name: Contracts } } }"), faults });
    expect(await now.run("story")).toMatchObject({ status: "succeeded", reason: "applied", attempts: 2 });
    expect(putsOf(now)).toHaveLength(1);
  });

  it("names what is not there, object by object, and does the rest", async () => {
    const text = "{ syncJobs: { 4: { name: Contracts }, 99: { name: X } }, docMasks: { 9: { name: X } } }";
    const now = await worldForTest({ policies: apply(text) });
    await now.enqueue("story");
    await now.log.until(() => now.log.outcomesOf("story").length === 3);
    const of = (target: string) => now.log.outcomesOf("story").find((outcome) => outcome.target === target);
    expect(of("syncJob-4")).toMatchObject({ status: "succeeded", reason: "applied" });
    // The interface documents no 404 for this read; the sandbox says 400.
    expect(of("syncJob-99")).toMatchObject({ status: "failed", reason: "refused" });
    expect(of("docMask-9")).toMatchObject({ status: "failed", reason: "no-target" });
    expect(of("docMask-9")?.detail).toBe(
      "there is no document mask 9 in repository HR: the mask with this id is a FolderMask",
    );
  });

  it("waits until a run of the sync job is over", async () => {
    const policies = `${apply("{ syncJobs: { 4: { name: Contracts } } }")}
  - { name: nightly, service: main, repository: HR, run: { syncJobs: [4] } }`;
    const now = await worldForTest({ policies, sandbox: { runMs: [1_500, 1_500] } });
    await now.enqueue("nightly");
    await now.log.until(({ event }) => event === "task.started");
    await now.enqueue("story");
    await now.log.until(() => now.log.outcomesOf("story").length === 1);
    const finished = now.log.named("task.finished").map(({ policy, status }) => `${policy} ${status}`);
    expect(finished).toEqual(["nightly succeeded", "story succeeded"]);
  });
});
