import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { Syncline, syncline } from "../support/processes.ts";

const example = fileURLToPath(new URL("../../config/first-light.yaml", import.meta.url));
const token = { SYNC_TOKEN: "secret" };

describe("the command line", () => {
  it("shows help with exit 0, and what is wrong with exit 2", async () => {
    const help = await syncline(["--help"]);
    expect(help.code).toBe(0);
    for (const command of [
      "serve",
      "validate",
      "plan",
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
    expect((await syncline(["plan"])).code).toBe(2);
  });

  it("plans the next slots in the policy's zone and in UTC", async () => {
    const { code, out } = await syncline(
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
    const table = await syncline(
      ["plan", "--config", example, "--count", "1", "--from", "2027-03-26T12:00:00Z"],
      token,
    );
    expect(table.out).toContain("2027-03-29 02:30:00 CEST");
    expect(table.out).toContain("2027-03-29 00:30:00Z");
    expect(table.out).not.toContain("\u001b[");
  });

  it("validates the examples", async () => {
    const { code, out } = await syncline(["validate", example], token);
    expect(code).toBe(0);
    expect(out).toContain("OK");
  });

  it("starts a sandbox that says where it is, calls it, and stops it", async () => {
    const sandbox = new Syncline(["sandbox", "--token", "t0ken", "--jobs", "3"]);
    const { baseUrl } = await sandbox.until(({ event }) => event === "sandbox.ready");
    const job = await syncline(["api", "GetSyncJobById", "--key", "2", "--base-url", String(baseUrl)], {
      SYNCLINE_TOKEN: "t0ken",
    });
    expect(JSON.parse(job.out)).toMatchObject({ syncJobId: 2 });
    const count = await syncline(["api", "GetJobMasks", "--count", "--base-url", String(baseUrl)], {
      SYNCLINE_TOKEN: "t0ken",
    });
    expect(count.out).toBe("6");
    const refused = await syncline(["api", "GetJobMasks", "--base-url", String(baseUrl)], { SYNCLINE_TOKEN: "wrong" });
    expect(refused.code).toBe(1);
    sandbox.kill("SIGTERM");
    expect((await sandbox.ended()).code).toBe(0);
    const gone = await syncline(["api", "GetJobMasks", "--base-url", String(baseUrl)], { SYNCLINE_TOKEN: "t0ken" });
    expect(gone.code).toBe(3);
  }, 30_000);
});
