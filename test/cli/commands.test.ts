import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { runHere } from "../support/commands-here.ts";
import { folderForTest } from "../support/folder.ts";
import { Syncline, syncline } from "../support/processes.ts";

const example = fileURLToPath(new URL("../../config/first-light.yaml", import.meta.url));
const token = { SYNC_TOKEN: "secret" };
const nightly = `apiVersion: syncline/v1
services: { main: { baseUrl: https://sync.example.com, token: { file: /run/token } } }
policies:
  - name: nightly
    service: main
    repository: HR
    run: { syncJobs: [42] }
    schedule: { cron: "30 2 * * *", timezone: Europe/Vienna, dst: { gap: skip } }
`;

describe("the command line", () => {
  it("shows help with exit 0, and what is wrong with exit 2", async () => {
    const help = await syncline(["--help"]);
    expect(help.code).toBe(0);
    for (const command of [
      "serve",
      "validate",
      "plan",
      "simulate",
      "run",
      "history",
      "audit",
      "explain",
      "pause",
      "resume",
      "api",
      "sandbox",
      "schema",
    ])
      expect(help.out).toContain(command);
    const wrong = await syncline(["sevre"]);
    expect(wrong.code).toBe(2);
    expect(wrong.err).toContain("serve");
    expect((await syncline([])).code).toBe(2);
    expect((await syncline(["explain"])).code).toBe(2);
  });

  it("plans the next slots in the policy's zone and in UTC", async () => {
    const { code, out } = await runHere(
      ["plan", "--config", example, "--count", "2", "--from", "2027-03-26T12:00:00Z", "--json"],
      token,
    );
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject([
      {
        policy: "contracts-nightly",
        timezone: "Europe/Vienna",
        slots: ["2027-03-29T00:30:00.000Z", "2027-03-30T00:30:00.000Z"],
      },
    ]);
    const table = await runHere(["plan", "--config", example, "--count", "1", "--from", "2027-03-26T12:00:00Z"], token);
    expect(table.out).toContain("2027-03-29 02:30:00 CEST");
    expect(table.out).toContain("2027-03-29 00:30:00Z");
    expect(table.out).not.toContain("\u001b[");
  });

  it("lists the dates of the next 12 months on which a clock change affects a policy", async () => {
    const args = ["plan", "--config", example, "--dst", "--count", "1", "--from", "2027-03-26T12:00:00Z"];
    expect((await runHere(args, token)).out).toContain("No clock change of the next 12 months affects a slot.");
    const folder = folderForTest();
    const file = join(folder, "nightly.yaml");
    await writeFile(file, nightly);
    const dst = ["plan", "--config", file, "--dst", "--from", "2027-01-01T00:00:00Z"];
    const { code, out } = await runHere(dst);
    expect(code).toBe(0);
    expect(out).toMatch(/nightly +2027-03-28 +02:00 → 03:00 +02:30 +dropped/);
    expect(out).toMatch(
      /nightly +2027-10-31 +03:00 → 02:00 +02:30 twice +2027-10-31 02:30:00 CEST +2027-10-31 00:30:00Z/,
    );
    expect(JSON.parse((await runHere([...dst, "--json"])).out)).toMatchObject([
      {
        dstDays: [
          { date: "2027-03-28", wouldBe: { count: 1, first: "2027-03-28T02:30:00" }, is: { count: 0, first: null } },
          { date: "2027-10-31", kind: "overlap", is: { count: 1, first: "2027-10-31T00:30:00.000Z" } },
        ],
      },
    ]);
  });

  it("validates the examples", async () => {
    const { code, out } = await runHere(["validate", example], token);
    expect(code).toBe(0);
    expect(out).toContain("OK");
  });

  it("starts a sandbox that says where it is, calls it, and stops it", async () => {
    const sandbox = new Syncline(["sandbox", "--token", "t0ken", "--jobs", "3"]);
    const { baseUrl } = await sandbox.until(({ event }) => event === "sandbox.ready");
    const job = await runHere(["api", "GetSyncJobById", "--key", "2", "--base-url", String(baseUrl)], {
      SYNCLINE_TOKEN: "t0ken",
    });
    expect(JSON.parse(job.out)).toMatchObject({ syncJobId: 2 });
    const count = await runHere(["api", "GetJobMasks", "--count", "--base-url", String(baseUrl)], {
      SYNCLINE_TOKEN: "t0ken",
    });
    expect(count.out).toBe("9");
    const refused = await runHere(["api", "GetJobMasks", "--base-url", String(baseUrl)], { SYNCLINE_TOKEN: "wrong" });
    expect(refused.code).toBe(1);
    sandbox.kill("SIGTERM");
    expect((await sandbox.ended()).code).toBe(0);
    const gone = await runHere(["api", "GetJobMasks", "--base-url", String(baseUrl)], { SYNCLINE_TOKEN: "t0ken" });
    expect(gone.code).toBe(3);
  });
});
