// `report` over seeded days: outcomes of two spans, in a set that runs and one policy that is gone.
import { beforeAll, describe, expect, it } from "vitest";
import { dayAfter, localDate } from "../../src/core/instant.ts";
import type { Outcome } from "../../src/model/outcome.ts";
import { History } from "../../src/store/history.ts";
import { runHere } from "../support/commands-here.ts";
import { keepSet } from "../support/kept-set.ts";
import { testOutcome } from "../support/outcomes.ts";
import { testPolicy } from "../support/policies.ts";
import { redisForTest, storeForTest } from "../support/redis.ts";

const target = redisForTest();
const store = await storeForTest(target);
const history = new History(store, { timezoneOf: () => "Europe/Vienna" });
const dayMs = 86_400_000;

const policy = (name: string, team: string) => testPolicy({ name, labels: { team }, timezone: "Europe/Vienna" });

const today = localDate(Date.now(), "Europe/Vienna");

/** A task whose slot was at noon so many days ago, or now. */
async function ended(name: string, daysAgo: number, changes: Partial<Outcome> = {}): Promise<void> {
  const slot = daysAgo === 0 ? new Date().toISOString() : `${dayAfter(today, -daysAgo)}T11:00:00.000Z`;
  const taskId = `${name}__run__42__${Math.floor(Date.parse(slot) / 1_000)}`;
  await history.record(testOutcome({ taskId, policy: name, slot, finishedAt: slot, ...changes }));
}

const report = (...args: string[]) =>
  runHere(["report", ...args, "--prefix", target.prefix, "--redis-url", target.url], {});
async function rows(...args: string[]) {
  const { out } = await report(...args, "--json");
  return JSON.parse(out);
}

beforeAll(async () => {
  await keepSet(store, [policy("well", "hr"), policy("ill", "it"), policy("slow", "hr"), policy("idle", "it")]);
  for (let daysAgo = 0; daysAgo < 14; daysAgo += 1) {
    await ended("well", daysAgo, { durationMs: 60_000 });
    await ended("slow", daysAgo, { durationMs: daysAgo < 7 ? 300_000 : 100_000 });
  }
  await ended("ill", 1, { status: "failed", reason: "run-failed", evidence: "direct" });
  await ended("ill", 2, { status: "unknown", reason: "answer-lost" });
  await ended("ill", 3, { status: "conflicts", reason: "new-conflicts", newConflicts: 4 });
  await ended("ill", 4, { status: "skipped", reason: "overlap", startedAt: null, durationMs: null });
  await ended("gone", 5);
});

describe("syncline report", () => {
  it("says per policy and in all what happened, worst first, against the days before", async () => {
    const { all, policies, before } = await rows();
    expect(policies.map((row: { policy: string }) => row.policy)).toEqual(["ill", "gone", "idle", "slow", "well"]);
    expect(policies[0]).toMatchObject({
      ...{ service: "main", slower: null },
      now: { ended: 3, good: 0, bad: 3, skipped: 1, missed: 0, newConflicts: 4, statuses: { failed: 1, unknown: 1 } },
      before: { ended: 0 },
    });
    expect(all.now).toMatchObject({ ended: 18, good: 15, bad: 3, skipped: 1, newConflicts: 4, longestMs: 300_000 });
    expect(all.before).toMatchObject({ ended: 14, good: 14, bad: 0, longestMs: 100_000 });
    expect(Date.parse(before.to) - Date.parse(before.from)).toBe(6 * dayMs);
    const { out, err } = await report();
    expect(out).toMatch(/^\d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d \(7 days\), changes against \S+ to \S+\n/);
    expect(out).toContain("5 policies: 18 ended, 15 good, 3 bad (");
    expect(out).toMatch(/\nill +3 +0 +3 .* 1 (failed|conflicts|unknown), .*1 skipped, 4 new conflicts/);
    expect(out).toMatch(/\nslow +7 +7 +0 +\dm\d\ds \+\d{3}%/);
    expect(err).toContain("nothing ended, was skipped or missed: idle");
    expect(err).toContain("no longer configured: gone");
  });

  it("shows which policies take longer and longer, and none that may not", async () => {
    const { policies } = await rows("--slower");
    expect(policies.map((row: { policy: string }) => row.policy)).toEqual(["slow"]);
    expect(policies[0].slower).toBeGreaterThan(2.7);
    expect(policies[0].slower).toBeLessThan(3.3);
    expect((await report("--slower", "well")).out).toContain("no policy is known to take a tenth longer than before");
  });

  it("counts some policies, by name, service and label, and some days", async () => {
    const names = async (...args: string[]) =>
      (await rows(...args)).policies.map((row: { policy: string }) => row.policy).toSorted();
    expect(await names("well", "ill")).toEqual(["ill", "well"]);
    expect(await names("--service", "main")).toEqual(["idle", "ill", "slow", "well"]);
    expect(await names("--label", "team=hr")).toEqual(["slow", "well"]);
    expect((await rows("well", "--since", "yesterday", "--until", "today")).all.now).toMatchObject({ ended: 1 });
    expect((await rows("well", "--since", "today")).all).toMatchObject({ now: { ended: 1 }, before: { ended: 1 } });
    expect((await rows("well", "--since", "20d")).all).toMatchObject({ now: { ended: 14 }, before: { ended: 0 } });
  });

  it("says when it reaches beyond what is kept, or beyond the beginning of a policy", async () => {
    const { notes, from } = await rows("well", "--since", "500d");
    expect(Math.round((Date.now() - Date.parse(from)) / dayMs)).toBeLessThanOrEqual(400);
    expect(notes.join("\n")).toMatch(/^days before \S+ are no longer kept: the report begins there\n/);
    expect(notes.join("\n")).toMatch(/younger than \S+, with fewer days to count: well/);
    expect((await rows("--since", "500d")).notes.join("\n")).toMatch(/days to count: (\w+, ){2}\w+ and 1 more \(/);
    expect((await rows("well", "--since", "10d")).notes).toEqual([]);
  });

  it("prints Markdown for a chat or a page", async () => {
    const { out } = await report("--markdown", "--limit", "1");
    const lines = out.split("\n");
    expect(lines[0]).toMatch(/^## \d{4}/);
    expect(lines.slice(-3)).toEqual([
      "| policy | ended | good | bad | median | p95 | longest | besides |",
      "| --- | --: | --: | --: | --: | --: | --: | --- |",
      expect.stringMatching(/^\| ill \| 3 \| 0 \| 3 \|/),
    ]);
    expect((await report("--limit", "1")).err).toContain("only 1 of 5 policies; --limit shows more");
  });

  it.each([
    [["--since", "tomorrow"], /in the future/],
    [["wel"], /there is no policy wel; did you mean well\?/],
    [["--since", "last week"], /--since "last week" is no time: write/],
    [["--service", "mian"], /there is no service mian; did you mean main\?/],
    [["--label", "team=xx"], /no such policy has the label team=xx/],
  ])("refuses %j", async (args, message) => {
    expect(await report(...args)).toMatchObject({ code: 2, out: "", err: expect.stringMatching(message) });
  });

  it("takes what was done by hand for no policy that was removed", async () => {
    await ended("by-hand.delete", 1);
    const { notes } = await rows();
    expect(notes).toContain("no longer configured: gone");
    expect((await rows()).policies.map((row: { policy: string }) => row.policy)).toContain("by-hand.delete");
  });
});
