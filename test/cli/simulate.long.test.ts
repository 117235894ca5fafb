// `syncline simulate` and the loads of `syncline plan` as real processes: what they print, and what
// they exit with.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runHere } from "../support/commands-here.ts";

const example = (name: string) => fileURLToPath(new URL(`../../config/${name}.yaml`, import.meta.url));
const environment = { SYNC_TOKEN: "secret", SANDBOX_URL: "http://127.0.0.1:4711", SANDBOX_TOKEN: "secret" };
const from = ["--from", "2026-12-01T00:00:00Z"];

let folder: string;
let file: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "syncline-simulate-"));
  file = join(folder, "policies.yaml");
  await writeFile(
    file,
    `apiVersion: syncline/v1
services: { main: { baseUrl: https://sync.example.com, token: { file: /run/token } } }
defaults: { timezone: Europe/Vienna }
policies:
  - { name: hourly, service: main, repository: HR, run: { syncJobs: [1] }, schedule: { cron: "0 * * * *" } }
  - { name: often, service: main, repository: HR, run: { syncJobs: [1, 2] }, schedule: { every: 30m } }
  - { name: by-hand, service: main, repository: HR, run: { syncJobs: [3] } }
`,
  );
});
afterAll(() => rm(folder, { recursive: true }));

const simulate = (...args: string[]) => runHere(["simulate", "--config", file, ...from, ...args], environment);

describe("syncline simulate", () => {
  it("tells each policy, service and problem, and what it assumed", async () => {
    const { code, out, err } = await simulate("--to", "+2h", "--duration", "often=40m", "--request-time", "0s");
    expect(code).toBe(0);
    expect(err).toBe("");
    expect(out).toContain("Simulated 2026-12-01 01:00:00 CET to 2026-12-01 03:00:00 CET: 2 policies, 6 slots, in ");
    expect(out).toContain("Assumed: a run takes 10m (often 40m); a request takes 0ms.");
    expect(out).toContain("Not simulated, without a schedule: by-hand.");
    // often runs 00:30–01:10 and is busy at 01:00, then 01:30–02:10 and at 02:00; hourly finds sync
    // job 1 busy as well.
    expect(out).toMatch(/hourly +2 +2 +0 +0 +0 +0 +2 overlap/);
    expect(out).toMatch(/often +4 +4 +0 +0 +0 +4 +4 overlap/);
    expect(out).toMatch(/main +4 +2, 2026-12-01 00:30:00Z +2, 2026-12-01 00:30Z +often \(2\)/);
    expect(out).toMatch(
      /hourly +2026-12-01 02:00:00 CET +2026-12-01 01:00:00Z +1 +overlap +often__run__1__\d+ is still running/,
    );
  });

  it("prints JSON that says everything, and the same for the same seed", async () => {
    const args = ["--to", "+1d", "--duration", "5m-50m", "--seed", "x", "--outage", "+4h/+3h", "--list", "--json"];
    const [one, two] = await Promise.all([simulate(...args), simulate(...args)]);
    expect(one.code).toBe(0);
    expect(one.out).toBe(two.out);
    const report = JSON.parse(one.out);
    expect(report).toMatchObject({
      from: "2026-12-01T00:00:00.000Z",
      to: "2026-12-02T00:00:00.000Z",
      outages: [{ from: "2026-12-01T04:00:00.000Z", to: "2026-12-01T07:00:00.000Z" }],
      assumptions: { duration: "5m-50m", requestMs: 1_000, seed: "x" },
      // The outage ends at 07:00, which is a slot of both: 3 older ones of hourly, 6 of often.
      totals: { slots: 24 + 48, started: 72 - 3 - 6, coalesced: 9, missed: { "outside-window": 0 } },
      notSimulated: ["by-hand"],
      limits: [],
    });
    expect(report.policies.map(({ policy }: { policy: string }) => policy)).toEqual(["hourly", "often"]);
    expect(report.slots).toHaveLength(72);
    expect(report.slots.filter(({ state }: { state: string }) => state === "coalesced")).toHaveLength(9);
    expect(report.problems.length).toBe(Math.min(20, report.problemsCount));
  });

  it("exits with 1 where a limit is exceeded, and with 0 at the limit", async () => {
    const args = ["--to", "+2h", "--duration", "often=40m", "--request-time", "0s"];
    const at = await simulate(
      ...args,
      "--max-overlaps",
      "6",
      "--max-skipped",
      "6",
      "--max-missed",
      "0",
      "--max-peak",
      "2",
    );
    expect(at.code).toBe(0);
    const over = await simulate(...args, "--max-overlaps", "5", "--max-peak", "1", "--json");
    expect(over.code).toBe(1);
    expect(JSON.parse(over.out).limits).toEqual([
      { limit: "overlaps", max: 5, is: 6, isOver: true },
      { limit: "peak", max: 1, is: 2, isOver: true },
    ]);
    const missed = await simulate("--to", "+1d", "--outage", "+30m/+5h", "hourly", "--max-missed", "0");
    expect(missed.code).toBe(0);
    const paused = await simulate("--to", "+1d", "--pause", "hourly=+0h/+5h", "--max-skipped", "3");
    expect(paused.code).toBe(1);
    expect(paused.out).toContain("over the limit: skipped ");
  });

  it("exits with 2 for wrong use, and says what to write", async () => {
    const cases: readonly [readonly string[], string][] = [
      [["--to", "soon"], '--to "soon" is no time: write now, '],
      [["--max-missed", "-1"], "write a whole number from 0 on"],
    ];
    const ended = await Promise.all(cases.map(([args]) => simulate(...args)));
    for (const [index, [, said]] of cases.entries())
      expect(ended[index]).toMatchObject({ code: 2, out: "", err: expect.stringContaining(said) });
  });

  it("writes all of a long answer before it ends, even to a slow reader", async () => {
    const args = ["--config", example("demo"), ...from, "--to", "+2h", "--list", "--json"];
    const { code, out } = await runHere(["simulate", ...args], environment);
    expect(code).toBe(0);
    expect(out.length).toBeGreaterThan(1_000_000);
    expect(JSON.parse(out).slots).toHaveLength(9_360);
  });

  it("takes the examples of config/ as they are, by the hour, the week and the month", async () => {
    for (const [name, to] of [
      ["first-light", "+30d"],
      ["watch-only", "+7d"],
      ["demo", "+1h"],
    ] as const) {
      const args = ["simulate", "--config", example(name), ...from, "--to", to, "--duration", "2s"];
      expect(await runHere(args, environment)).toMatchObject({ code: 0, out: expect.stringContaining("Assumed: ") });
    }
    const tooMany = ["simulate", "--config", example("demo"), ...from, "--to", "+30d"];
    expect(await runHere(tooMany, environment)).toMatchObject({
      code: 2,
      err: expect.stringContaining("there are more than 1000000 slots, which is the most"),
    });
  });
});

describe("syncline plan", () => {
  const plan = (...args: string[]) => runHere(["plan", "--config", file, ...from, ...args], environment);

  it("names the busiest minutes with their policies", async () => {
    const { out } = await plan("--count", "1", "--peaks", "2");
    // 25 instants of hourly and often together, 24 of often alone.
    expect(out).toMatch(
      /starts due +minute \(utc\) +of\n3 +2026-12-01 00:00Z +often \(2\), hourly\n3 +2026-12-01 01:00Z /,
    );
    const json = JSON.parse((await plan("--count", "1", "--peaks", "1", "--json")).out);
    expect(json.policies).toHaveLength(3);
    expect(json.peaks).toEqual([
      {
        from: "2026-12-01T00:00:00.000Z",
        starts: 3,
        policiesCount: 2,
        policies: [
          { policy: "often", starts: 2 },
          { policy: "hourly", starts: 1 },
        ],
      },
    ]);
    expect(json.requestsPerDay).toBeUndefined();
  });

  it("estimates the requests a day of each service, and names what it assumes", async () => {
    const args = ["--config", example("watch-only"), "--from", "2026-11-30", "--requests", "--pages", "5"];
    const { code, out } = await runHere(["plan", ...args], environment);
    expect(code).toBe(0);
    // 144 counts of approvals, 24 readings of the triggers (5 pages each), one count of the
    // conflicts.
    expect(out).toMatch(/main +0 +0 +265 +0 +265 +345,600/);
    expect(out).toContain("every list has 5 pages of 100 items");
    expect(out).toContain("nothing fails, so nothing is repeated");
    const days = JSON.parse((await runHere(["plan", ...args, "--to", "+4d", "--json"], environment)).out);
    expect(days.requestsPerDay).toEqual([
      { service: "main", starts: 0, feeds: 0, polls: 265, masks: 0, total: 265, possible: 345_600 },
    ]);
  });

  it("exits with 2 for a time that is none", async () => {
    expect(await plan("--to", "never", "--peaks")).toMatchObject({
      code: 2,
      err: expect.stringContaining('--to "never"'),
    });
    expect(await plan("--to", "-1h")).toMatchObject({
      code: 2,
      err: expect.stringContaining("--to is not after --from"),
    });
  });
});
