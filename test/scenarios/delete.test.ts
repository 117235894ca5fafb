// Sync jobs deleted by policy: guard, answers, lost answers, runs in flight, and what is remembered
// of it.
import { describe, expect, it } from "vitest";
import { findDeletedTargets } from "../../src/cli/deleted-targets.ts";
import { openStore } from "../../src/store/redis.ts";
import { runHere } from "../support/commands-here.ts";
import { testPolicy } from "../support/policies.ts";
import { often } from "../support/processes.ts";
import { shortTiming } from "../support/short-timing.ts";
import { type World, type WorldOptions, worldForTest } from "../support/world.ts";

const retire = (name: string, more = "") =>
  `  - { name: retire, service: main, repository: HR, delete: { syncJob: 3, name: "${name}" }${more} }`;
const missing404: WorldOptions["sandbox"] = { missingStatus: 404, repositories: ["HR"] };

/** What the sandbox calls sync job 3. */
const name = "Board 3";

const start = (options: Omit<WorldOptions, "redis">) => worldForTest({ sandbox: missing404, ...options });

const deletions = ({ sandbox }: World) => sandbox.ledger().filter(({ operation }) => operation === "DeleteSyncJobById");
const sent = ({ sandbox }: World) => sandbox.requests()["DeleteSyncJobById"] ?? {};

describe("a delete policy", () => {
  it("deletes once; the next time there is nothing to delete", async () => {
    const fixture = await start({ policies: retire(name) });
    expect(await fixture.run("retire")).toMatchObject({ status: "succeeded", reason: "deleted", evidence: "direct" });
    expect(await fixture.run("retire")).toMatchObject({ status: "skipped", reason: "already-gone", startedAt: null });
    expect(sent(fixture)).toEqual({ 200: 1 });
  });

  it("deletes nothing under a wrong name", async () => {
    const fixture = await start({ policies: retire("Somebody else's") });
    expect(await fixture.run("retire")).toMatchObject({
      status: "not-started",
      reason: "guard-mismatch",
      startedAt: null,
    });
    expect(sent(fixture)).toEqual({});
  });

  it("finds out that it did happen when the answer got lost, and sends nothing more", async () => {
    for (const fault of ["lost-answer", "500-after"]) {
      const fixture = await start({
        policies: retire(name, ", onUnknown: retry"),
        faults: [`${fault},op=DeleteSyncJobById`],
      });
      expect(await fixture.run("retire")).toMatchObject({ status: "succeeded", reason: "deletion-confirmed" });
      expect(deletions(fixture)).toHaveLength(1);
      expect(Object.values(sent(fixture))).toEqual([1]);
    }
  });

  it("says not deleted when the request got lost, and resends by onUnknown: retry only", async () => {
    const faulty = { faults: ["reset,op=DeleteSyncJobById,first=1"] };
    const verify = await start({ policies: retire(name), ...faulty });
    const retry = await start({ policies: retire(name, ", onUnknown: retry"), ...faulty });
    const [verified, retried] = await Promise.all([verify.run("retire"), retry.run("retire")]);
    expect(verified).toMatchObject({ status: "failed", reason: "still-there", answerLost: true });
    expect(sent(verify)).toEqual({ cut: 1 });
    expect(retried).toMatchObject({ status: "succeeded", reason: "deleted", sends: 2 });
    expect(deletions(retry)).toHaveLength(1);
  });

  it("looks after a 503 with Retry-After, and deletes when its turn comes", async () => {
    const faults = ["503,op=DeleteSyncJobById,first=1,retryAfter=1"];
    const fixture = await start({ policies: retire(name), faults });
    expect(await fixture.run("retire")).toMatchObject({ status: "succeeded", reason: "deleted", answerLost: false });
    expect(sent(fixture)).toEqual({ 503: 1, 200: 1 });
  });

  it("tells meanwhile that it is read again, and waits for no activity", async () => {
    const timing = { ...shortTiming, verifyForMs: 600_000 };
    const fixture = await start({ policies: retire(name), timing, faults: ["reset,op=DeleteSyncJobById"] });
    const at = ["--prefix", fixture.target.prefix, "--redis-url", fixture.target.url];
    await runHere(["run", "retire", ...at]);
    const explained = async () => (await runHere(["explain", "retire", ...at])).out;
    await expect.poll(explained, often).toContain("verifying");
    const out = await explained();
    expect(out).toContain("verifying; waits for a reading that shows whether sync job 3 is gone: ");
    expect(out).not.toMatch(/end of its run|activity|activities/);
  });

  it("is called unknown when no evidence decides it", async () => {
    const fixture = await start({
      policies: retire(name),
      requestTimeout: "2s",
      timing: { ...shortTiming, syncJobUnreadableForMs: 500 },
      faults: ["lost-answer,op=DeleteSyncJobById", "500-before,op=GetSyncJobById,after=1"],
    });
    expect(await fixture.run("retire")).toMatchObject({ status: "unknown", reason: "answer-lost", evidence: "none" });
    expect(deletions(fixture)).toHaveLength(1);
  });

  it("leaves a sync job alone that runs, or waits for its run with overlap: queue", async () => {
    const nightly = "  - { name: nightly, service: main, repository: HR, run: { syncJobs: [3] } }";
    const fixture = await start({
      policies: `${nightly}\n${retire(name)}\n${retire(name, ", overlap: queue").replace("retire", "retire-later")}`,
      sandbox: { ...missing404, runMs: [8_000, 8_000] },
    });
    const run = fixture.run("nightly");
    await fixture.log.until(({ event }) => event === "task.started");
    expect(await fixture.run("retire")).toMatchObject({ status: "skipped", reason: "overlap" });
    expect(await fixture.run("retire-later")).toMatchObject({ status: "succeeded", reason: "deleted" });
    expect(await run).toMatchObject({ status: "succeeded" });
    expect(deletions(fixture)).toHaveLength(1);
  });

  it("is remembered, and the policies that still name the sync job are found", async () => {
    const fixture = await start({ policies: retire(name) });
    await fixture.run("retire");
    const policies = [
      testPolicy({ name: "nightly", action: { kind: "run", syncJobs: [2, 3] } }),
      testPolicy({ name: "other", action: { kind: "run", syncJobs: [2] } }),
      testPolicy({ name: "elsewhere", repository: "Finance", action: { kind: "run", syncJobs: [3] } }),
      testPolicy({ name: "retire", action: { kind: "delete", syncJob: 3, name } }),
    ];
    const store = await openStore(fixture.target);
    // The note follows the log line that `run` waits for.
    const found = async () =>
      (await findDeletedTargets({ policies }, store)).map(({ policy, syncJob, by }) => [policy.name, syncJob, by]);
    await expect.poll(found, often).toEqual([
      ["nightly", "3", "retire"],
      ["retire", "3", "retire"],
    ]);
    await store.close();
  });
});
