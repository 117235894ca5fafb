// `syncline delete` as real processes: the look without --yes, the deletion with it, and what
// `plan` and `doctor` say afterwards.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { commandFixture } from "../support/command-fixture.ts";
import { DeclaredService } from "../support/declared-service.ts";

const fixture = commandFixture(
  `  - { name: nightly, service: main, repository: HR, run: { syncJobs: [3, 4] }, schedule: { once: 2020-01-01T06:00 } }
  - { name: retire, service: main, repository: HR, delete: { syncJob: 5, name: Wrong } }
  - { name: retire-right, service: main, repository: HR, delete: { syncJob: 6, name: "Quality 6" } }`,
);

describe("syncline delete", () => {
  it("only looks without --yes; with it deletes, and names the policies affected", async () => {
    const prefix = `${fixture.redis.prefix}-delete`;
    const run = (name: string, ...more: string[]) =>
      fixture.command(
        prefix,
        ...["delete", "--service", "main", "--config", fixture.file(), "--repository", "HR"],
        ...["--sync-job", "3", "--name", name, ...more],
      );
    const look = await run("Board 3");
    expect([look.code, look.out.trim().split("\n")]).toEqual([
      0,
      ['sync job 3 is "Board 3": add --yes to delete it', "policies that name it: nightly"],
    ]);
    const wrong = await run("Board");
    expect([wrong.code, wrong.out.split("\n")[0]]).toEqual([
      1,
      'sync job 3 has "Board 3", not "Board": it would not be deleted',
    ]);
    const refused = await run("Board", "--yes", "--json");
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.out)).toMatchObject([{ status: "not-started", reason: "guard-mismatch" }]);
    const deleted = await run("Board 3", "--yes", "--json");
    expect(deleted.code).toBe(0);
    expect(JSON.parse(deleted.out)).toMatchObject([
      { status: "succeeded", reason: "deleted", policy: "by-hand.delete", kind: "delete", target: "3" },
    ]);
    const plan = await fixture.command(prefix, "plan", "--config", fixture.file(), "--deleted");
    expect(plan.code).toBe(0);
    expect(plan.out).toMatch(
      /\nnightly names sync job 3, which was deleted by hand at .*: remove the sync job from the policy, or the policy/,
    );
    expect(plan.out).toContain("never: its one time (2020-01-01T06:00:00) is over");
    const doctor = await fixture.command(prefix, "doctor", "--config", fixture.file(), "--json");
    expect(JSON.parse(doctor.out).checks).toContainEqual(
      expect.objectContaining({ check: "deleted", subject: "nightly", level: "warning" }),
    );
    expect(JSON.parse(doctor.out).checks).toContainEqual(
      expect.objectContaining({
        check: "sync jobs",
        subject: "main, 5",
        level: "problem",
        what: expect.stringMatching(/^policy retire would delete "Wrong", and it has "\w+ 5" /),
      }),
    );
  });

  it("does not say yes when the service answers with another sync job", async () => {
    const fake = new DeclaredService();
    const folder = await mkdtemp(join(tmpdir(), "syncline-"));
    onTestFinished(async () => {
      fake.stop();
      await rm(folder, { recursive: true });
    });
    fake.set({ "syncJob-3": { fields: { name: "Board 3", syncJobId: "43" } } });
    const service = `{ baseUrl: "${await fake.start()}", token: { env: TEST_TOKEN } }`;
    const file = join(folder, "policies.yaml");
    await writeFile(file, `apiVersion: syncline/v1\nservices:\n  main: ${service}\npolicies: []\n`);
    const args = ["--config", file, "--sync-job", "3", "--name", "Board 3"];
    const look = await fixture.command(`${fixture.redis.prefix}-other`, "delete", ...args);
    expect([look.code, look.out.split("\n")[0]]).toEqual([
      1,
      "the service answered with sync job 43 instead of 3: it would not be deleted",
    ]);
  });

  it("says what is wrong with its arguments, and sends nothing", async () => {
    const prefix = `${fixture.redis.prefix}-wrong`;
    const args = ["--config", fixture.file(), "--name", "Board 3"];
    const none = await fixture.command(prefix, "delete", "--service", "elsewhere", ...args, "--sync-job", "3");
    expect([none.code, none.err]).toEqual([2, expect.stringContaining("there is no service elsewhere")]);
    const id = await fixture.command(prefix, "delete", ...args, "--sync-job", "three", "--yes");
    expect([id.code, id.err]).toEqual([2, expect.stringContaining("digits only")]);
    expect((await fixture.command(prefix, "delete", "--config", fixture.file(), "--sync-job", "3")).code).toBe(2);
  });
});

describe("a deletion whose worker is killed between the DELETE and its answer", () => {
  it("is not sent again by the next one, which finds out that it happened (P2)", async () => {
    const prefix = `${fixture.redis.prefix}-killed`;
    const sandbox = fixture.sandbox();
    sandbox.setFaults([{ kind: "latency", operation: "DeleteSyncJobById", delayMs: 10_000 }]);
    const victim = await fixture.serve(prefix, "--roles", "worker", "--take-over-after", "2s");
    const queued = await fixture.command(prefix, "run", "retire-right", "--config", fixture.file(), "--json");
    const [task = ""] = JSON.parse(queued.out).tasks;
    for (let struck = 0; struck === 0; ) {
      const headers = { authorization: `Bearer ${sandbox.token}` };
      const answer = await fetch(`${sandbox.baseUrl}/_sandbox/faults`, { headers });
      const { value } = (await answer.json()) as { value: { struck: number }[] };
      struck = value[0]?.struck ?? 0;
    }
    victim.kill("SIGKILL");
    await victim.ended();
    const heir = await fixture.serve(prefix, "--roles", "worker", "--take-over-after", "2s");
    const finished = await heir.until(({ event, taskId }) => event === "task.finished" && taskId === task);
    // A missing sync job is answered with 400 here, so that it is gone is inferred.
    expect(finished).toMatchObject({ status: "succeeded", reason: "deletion-confirmed", evidence: "inferred" });
    expect(finished).toMatchObject({ answerLost: true });
    const deletions = sandbox.ledger().filter(({ operation, key }) => operation === "DeleteSyncJobById" && key === "6");
    expect(deletions).toHaveLength(1);
  });
});
