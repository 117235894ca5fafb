import { expect, it } from "vitest";
import type { Outcome } from "../../src/model/outcome.ts";
import { History } from "../../src/store/history.ts";
import { runHere } from "../support/commands-here.ts";
import { keepPolicies } from "../support/kept-set.ts";
import { testOutcome } from "../support/outcomes.ts";
import { redisForTest, storeForTest } from "../support/redis.ts";

const target = redisForTest();
const store = await storeForTest(target);
const record = new History(store);

/** Of the last minutes: sync job, how it ended, and how long ago. */
async function ended(policy: string, target: string, agoMs: number, changes: Partial<Outcome> = {}): Promise<void> {
  const finishedAt = new Date(Date.now() - agoMs).toISOString();
  const taskId = `${policy}__run__${target}__${Math.floor(Date.parse(finishedAt) / 1_000)}`;
  await record.record(testOutcome({ taskId, policy, target, slot: finishedAt, finishedAt, ...changes }));
}

const history = (...args: string[]) =>
  runHere(["history", ...args, "--prefix", target.prefix, "--redis-url", target.url], {});
async function targets(...args: string[]): Promise<string[]> {
  const { out } = await history(...args, "--json");
  return JSON.parse(out).map(({ target }: Outcome) => target);
}

const hourMs = 3_600_000;

it("narrows by time, status, origin, sync job and service, newest first", async () => {
  await ended("a", "1", 3 * hourMs);
  await ended("b", "2", 2 * hourMs, { status: "failed", service: "other" });
  await ended("a", "3", hourMs, { status: "unknown", evidence: "none" });
  await ended("b", "4", hourMs / 2, { origin: "manual", taskId: "b__run__4__m1795228200123" });
  expect(await targets()).toEqual(["4", "3", "2", "1"]);
  expect(await targets("a")).toEqual(["3", "1"]);
  expect(await targets("--since", "150m", "--until", "45m")).toEqual(["3", "2"]);
  expect(await targets("--status", "failed,unknown")).toEqual(["3", "2"]);
  expect(await targets("--status", "good", "--limit", "1")).toEqual(["4"]);
  expect(await targets("--status", "bad")).toEqual(["3", "2"]);
  expect(await targets("--origin", "manual")).toEqual(["4"]);
  expect(await targets("--task", "2")).toEqual(["2"]);
  expect(await targets("--task", "b__run__4__m1795228200123")).toEqual(["4"]);
  expect(await targets("--service", "other")).toEqual(["2"]);
  const lines = (await history("--status", "bad", "--ndjson")).out.trim().split("\n");
  expect(lines.map((line) => JSON.parse(line).target)).toEqual(["3", "2"]);
  expect((await history("--since", "10m")).err).toMatch(/^no outcome: none of those that are kept fits/);
  expect((await history("--limit", "2")).err).toBe("only the newest 2; --limit shows more");
});

it("names tasks as people say them, in local time beside UTC, and ids on demand", async () => {
  const slot = "2026-11-20T01:30:00.000Z";
  const finishedAt = "2026-11-20T01:31:00.000Z";
  await record.record(testOutcome({ taskId: "n__run__42__1795138200", policy: "n", slot, finishedAt }));
  const { out } = await history("n", "--timezone", "Europe/Vienna");
  expect(out).toContain("2026-11-20 01:31:00Z  02:31 CET  n       sync job 42, slot 02:30 CET  succeeded");
  expect(out).not.toContain("n__run__42");
  expect((await history("n", "--timezone", "UTC")).out).toContain(
    "2026-11-20 01:31:00Z  n       sync job 42, slot 01:30Z  ",
  );
  expect((await history("n", "--ids")).out).toMatch(/n__run__42__1795138200$/);
});

it("reads and shows times in the zone of policies that run, and knows labels", async () => {
  await keepPolicies(
    store,
    `  - { name: tokyo, service: main, run: { syncJobs: [42] }, labels: { team: hr }, schedule: { cron: "30 10 * * *", timezone: Asia/Tokyo } }
  - { name: a, service: main, run: { syncJobs: [1] } }`,
  );
  const slot = "2026-11-20T01:30:00.000Z";
  const finishedAt = "2026-11-20T23:31:00.000Z";
  await record.record(testOutcome({ taskId: "tokyo__run__42__1", policy: "tokyo", slot, finishedAt }));
  const told = await history("--label", "team=hr");
  expect(told.out).toContain("2026-11-20 23:31:00Z  08:31 GMT+9  tokyo   sync job 42, slot 2026-11-20 10:30 GMT+9");
  expect(await targets("tokyo", "--since", "2026-11-21 08:31", "--until", "2026-11-21 08:31:01")).toEqual(["42"]);
  expect(await targets("tokyo", "--since", "2026-11-21 08:31:01")).toEqual([]);
  expect((await history("--label", "team=it")).err).toContain("no such policy has the label team=it");
  expect((await history("--service", "mian")).err).toContain("there is no service mian; did you mean main?");
});

it("says what it cannot understand, and what to write", async () => {
  const cases: readonly [readonly string[], string][] = [
    [["--since", "gestern"], '--since "gestern" is no time: write now, 02:30, 7d'],
    [["--since", "1d", "--until", "2d"], "--until is not after --since"],
    [["--timezone", "Europe/Wien"], "is no zone"],
    [["nosuch"], "nothing is known of a policy nosuch"],
    [["--status", "fialed"], "there is no status fialed: did you mean failed?"],
  ];
  for (const [args, said] of cases) {
    const { code, err } = await history(...args);
    expect(err).toContain(said);
    expect(code).toBe(2);
  }
});
