import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { folderForTest } from "../../support/folder.ts";
import { commandHere } from "../../support/simulate-command.ts";

const policies = `apiVersion: syncline/v1
services: { main: { baseUrl: "https://sync.example.com", token: { env: SYNC_TOKEN } } }
policies:
  - name: nightly
    service: main
    run: { syncJobs: [1, 2] }
    schedule: { cron: "30 2 * * *", timezone: Europe/Vienna }
    expect: { successBy: "04:00" }
  - name: hourly
    service: main
    run: { syncJobs: [3] }
    schedule: { every: 1h }
    expect: { within: 10m }
`;

function simulate(...args: readonly string[]) {
  const file = join(folderForTest(), "policies.yaml");
  writeFileSync(file, policies);
  return commandHere(["simulate", "--config", file, "--from", "2026-12-01", "--to", "+2d", "--json", ...args]);
}

const deadlines = async (...args: readonly string[]) => {
  const { policies: all, problems } = JSON.parse((await simulate(...args)).text);
  const late = problems.filter(({ problem }: { problem: string }) => problem === "late");
  return { counts: all.map((one: { deadlines: object }) => one.deadlines), first: late[0]?.why };
};

it("says which deadlines hold with these durations, and by how much others do not", async () => {
  expect(await deadlines("--duration", "9m")).toEqual({
    counts: [
      { kept: 2, late: 0 },
      { kept: 47, late: 0 },
    ],
    first: undefined,
  });
  expect(await deadlines("--duration", "9m", "--duration", "nightly=2h")).toEqual({
    counts: [
      { kept: 0, late: 2 },
      { kept: 47, late: 0 },
    ],
    first: "has not ended well by 04:00 CET, but 30m later",
  });
});

it("counts a deadline as late when its slot is paused, fails or has no scheduler", async () => {
  for (const [option, ...values] of [
    ["--pause", "nightly=2026-12-02T02:00/2026-12-02T03:00"],
    ["--outage", "2026-12-02T01:00/2026-12-02T05:00"],
  ] as const) {
    const { counts } = await deadlines("--duration", "5m", option, ...values);
    expect(counts[0]).toEqual({ kept: 1, late: 1 });
  }
  expect((await deadlines("--duration", "5m", "--failure", "nightly=100%")).counts[0]).toEqual({ kept: 0, late: 2 });
});

it("has no deadline where a follower's own blackout skips it", async () => {
  const file = join(folderForTest(), "policies.yaml");
  const span = ["--config", file, "--from", "2026-12-01", "--to", "+2d", "--duration", "1h", "--json"];
  for (const expected of ["within: 2h", 'successBy: "04:30"']) {
    const rest = `after: { policy: nightly }, expect: { ${expected} }, blackout: [{ cron: "0 3 * * *", for: 1h }]`;
    writeFileSync(file, `${policies}  - { name: next, service: main, run: { syncJobs: [4] }, ${rest} }\n`);
    const { policies: all } = JSON.parse((await commandHere(["simulate", ...span])).text);
    expect(all[2]).toMatchObject({ skipped: { blackout: 2 }, deadlines: { kept: 0, late: 0 } });
  }
});

it("ends with 1 when more are late than allowed", async () => {
  expect((await simulate("--duration", "nightly=2h", "--max-late", "1")).code).toBe(1);
  expect((await simulate("--duration", "nightly=1h", "--max-late", "1")).code).toBe(0);
});

it("skips slots whose input is not fresh, and assumes it fresh at the beginning", async () => {
  const file = join(folderForTest(), "policies.yaml");
  const report = `  - { name: report, service: main, run: { syncJobs: [9] }, schedule: { every: 1h }, needs: { policy: hourly, within: 3h } }\n`;
  writeFileSync(file, policies + report);
  const skipped = async (...args: readonly string[]) => {
    const span = ["--config", file, "--timezone", "UTC", "--from", "2026-12-01", "--to", "+1d", "--json"];
    const { policies: all, problems } = JSON.parse((await commandHere(["simulate", ...span, ...args])).text);
    return [all[2].skipped["stale-input"], problems[0]?.why];
  };
  expect(await skipped("--duration", "5m")).toEqual([0, undefined]);
  expect(await skipped("--duration", "5m", "--failure", "hourly=100%", "--problems", "100")).toEqual([
    21,
    "assumed to fail",
  ]);
  const pause = "hourly=2026-12-01T06:30/2026-12-01T12:30";
  expect(await skipped("--duration", "5m", "--pause", pause)).toEqual([
    4,
    "hourly has not ended well within 3h: the last good end was at 2026-12-01 06:05:00Z",
  ]);
});
