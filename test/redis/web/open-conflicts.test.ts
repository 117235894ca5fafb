// Open conflicts, as the last whole reading of their list counted them: on Now, in the API, in
// `status` and in the digest no policy with some counts as well.
import { expect, it } from "vitest";
import { acknowledge } from "../../../src/actions/acknowledge.ts";
import { totalOfSyncJob } from "../../../src/feeds/list-totals.ts";
import { FeedStore } from "../../../src/store/feed-store.ts";
import { History } from "../../../src/store/history.ts";
import { keepPolicySet } from "../../../src/store/kept-policies.ts";
import { redisTimeMs, type Store } from "../../../src/store/redis.ts";
import { runHere } from "../../support/commands-here.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { type WebFixture, webForTest } from "../../support/web-fixture.ts";
import { type Story, setOfStory } from "../../support/web-story.ts";

const of = (syncJob: number, more: Story[string]["more"] = {}) => ({
  action: { kind: "run", syncJobs: [syncJob, syncJob + 100] } as const,
  ...more,
});
const follow = { until: "settled", deadlineMs: 60_000, conflictsMax: 3, quietForMs: 1, unreadableForMs: 1 } as const;
const story: Story = {
  payroll: { endings: ["ok"], more: of(11, { owner: "Ana, 4711" }) },
  archive: { endings: ["ok"], more: of(12) },
  tolerant: { endings: ["ok"], more: of(13, { follow: { ...follow, blockedAfterMs: undefined } }) },
  settled: { endings: ["conflicts"], more: of(14) },
};
const web = await webForTest({ story });
await keepPolicySet(web.store, setOfStory(story), "host/1");
// The runs of this hour end two minutes after it has begun, or have ended already.
const nowMs = await redisTimeMs(web.store);
const endedMs = Math.min(Math.floor(nowMs / 3_600_000) * 3_600_000 + 120_000, nowMs);
const walkOf = async (store: Store, startedAtMs: number, ...jobs: [string, number][]) => {
  const count = jobs.reduce((sum, [, open]) => sum + open, 0);
  const totals = new Map([["all", count], ...jobs.map(([job, open]) => [totalOfSyncJob(job), open] as const)]);
  const feed = { service: "main", repository: "HR", list: "conflictDetails" } as const;
  await new FeedStore(store).endWalk(feed, { startedAtMs, count, whole: true, totals });
};
const walk = (startedAtMs: number, ...jobs: [string, number][]) => walkOf(web.store, startedAtMs, ...jobs);
await walk(endedMs + 1, ["11", 1]);
await walk(endedMs + 2, ["11", 2], ["111", 1], ["13", 3]);

const attention = async () =>
  (await (await web.ask("/api/v1/attention")).json()) as { items: object[]; counts: object };
const commandAt = async ({ parts }: WebFixture, ...args: string[]) => {
  const { prefix, url } = parts.context().target;
  return runHere([...args, "--prefix", prefix, "--redis-url", url]);
};
const command = (...args: string[]) => commandAt(web, ...args);
const conflicts = {
  ...{ name: "payroll", state: "conflicts", since: new Date(endedMs + 1).toISOString() },
  what: "3 conflicts to settle at main (sync job 11: 2, 111: 1)",
};

it("a policy with open conflicts is one item, and not among those that are well", async () => {
  const { items, counts } = await attention();
  expect(items).toMatchObject([conflicts]);
  expect(counts).toEqual({ conflicts: 1, ok: 3 });
  const page = await (await web.ask("/")).text();
  expect(page).toContain("<h1>1 thing needs a person</h1>");
  expect(page).toContain("<title>1 needs a person");
  expect(page.replace(/<[^>]+>/g, " ").replace(/\s+/g, " ")).toMatch(
    / 1 conflicts 3 well conflicts payroll 3 conflicts/,
  );
});

it("status and the digest say the same", async () => {
  const { code, out } = await command("status");
  expect([code, out.split("\n")[0]]).toEqual([1, "4 policies: 1 conflicts, 3 ok"]);
  expect(out).toMatch(
    /\nconflicts +payroll .*3 conflicts to settle at main \(sync job 11: 2, 111: 1\); owner: Ana, 4711/,
  );
  const { title, lines } = JSON.parse((await command("digest", "--json")).out);
  expect(title).toBe("Not fine, 1 needs a person: 1 with conflicts to settle, 3 well of 4 policies");
  expect(lines).toEqual([
    expect.stringMatching(/^payroll: 3 conflicts to settle at main .*: Ana, 4711$/),
    "had trouble, and well again now: settled (1)",
  ]);
});

/** The open conflicts of each policy, by the API and by `status`. */
async function countsAt(one: WebFixture) {
  const { items } = JSON.parse(await (await one.ask("/api/v1/policies")).text());
  const { policies } = JSON.parse((await commandAt(one, "status", "--json")).out);
  const byName = (all: Record<string, unknown>[], name: string) =>
    Object.fromEntries(all.map((policy) => [policy[name], policy["openConflicts"]]));
  return [byName(items, "name"), byName(policies, "policy")];
}

it("the count of a policy is also told where it is tolerated", async () => {
  const counts = { payroll: 3, archive: 0, tolerant: 3, settled: 0 };
  expect(await countsAt(web)).toEqual([counts, counts]);
});

it("no count is told of a list not read, or whose conflicts name no sync job", async () => {
  const story = { archive: { endings: ["ok"], more: of(12) } } as const;
  const own = await webForTest({ story });
  await keepPolicySet(own.store, setOfStory(story), "host/1");
  const unknown = { archive: null };
  expect(await countsAt(own)).toEqual([unknown, unknown]);
  const feed = { service: "main", repository: "HR", list: "conflictDetails" } as const;
  const walk = { startedAtMs: nowMs, count: 1, whole: true, totals: new Map([["all", 1]]) };
  await new FeedStore(own.store).endWalk(feed, walk);
  await expect.poll(() => countsAt(own)).toEqual([unknown, unknown]);
});

it("a count of long ago says when it was, and goes where the list cannot be counted", async () => {
  const story = { archive: { endings: ["ok"], more: of(12) } } as const;
  const own = await webForTest({ story });
  await keepPolicySet(own.store, setOfStory(story), "host/1");
  await walkOf(own.store, nowMs - 7_200_000, ["12", 1]);
  const known = { archive: 1 };
  await expect.poll(() => countsAt(own)).toEqual([known, known]);
  const counted = /1 conflict to settle at main \(sync job 12\), counted .*\d\d:\d\d/;
  expect((await commandAt(own, "status")).out).toMatch(counted);
  const { items } = JSON.parse(await (await own.ask("/api/v1/attention")).text());
  expect(items).toMatchObject([{ state: "conflicts", what: expect.stringMatching(counted) }]);
  const feed = { service: "main", repository: "HR", list: "conflictDetails" } as const;
  await new FeedStore(own.store).endWalk(feed, { startedAtMs: nowMs, count: 30_000, whole: true, totals: null });
  const unknown = { archive: null };
  await expect.poll(() => countsAt(own)).toEqual([unknown, unknown]);
  expect((await commandAt(own, "status")).out).toMatch(/^1 policy: 1 ok\n/);
});

it("known conflicts stay known after a run that ends well, until one leaves more", async () => {
  const { store } = web;
  const [policy] = setOfStory(story).policies;
  if (policy === undefined) throw new Error("no policy");
  await acknowledge(policy, { store, by: { actor: "ana", reason: "ticket 7", warn: () => {} } });
  const ends = async (slot: number, status: "succeeded" | "conflicts") => {
    const finishedAt = new Date(endedMs + slot).toISOString();
    const own = { policy: "payroll", target: "11", taskId: `payroll__run__11__${slot}`, finishedAt, status };
    await new History(store).record(testOutcome(own));
  };
  await ends(3, "succeeded");
  const known = async () => (await command("status", "payroll", "--json")).out;
  expect(JSON.parse(await known()).policies).toMatchObject([{ state: "conflicts", acknowledged: { actor: "ana" } }]);
  await ends(4, "conflicts");
  expect(JSON.parse(await known()).policies).toMatchObject([{ state: "conflicts", acknowledged: null }]);
});

it("known conflicts that were settled do not hide those that come later", async () => {
  const own = await webForTest({ story: { archive: { endings: ["ok"], more: of(12) } } });
  const [policy] = setOfStory({ archive: { endings: ["ok"], more: of(12) } }).policies;
  if (policy === undefined) throw new Error("no policy");
  const told = async () => (await (await own.ask("/api/v1/attention")).json()) as { items: object[] };
  const nowMs = await redisTimeMs(own.store);
  await walkOf(own.store, nowMs, ["12", 1]);
  await acknowledge(policy, { store: own.store, by: { actor: "ana", reason: "ticket 7", warn: () => {} } });
  await walkOf(own.store, nowMs + 60_000, ["12", 2]);
  expect((await told()).items).toMatchObject([{ state: "conflicts", acknowledged: { actor: "ana" } }]);
  await walkOf(own.store, nowMs + 120_000);
  await expect.poll(told, { interval: 300 }).toMatchObject({ items: [] });
  await walkOf(own.store, nowMs + 180_000, ["12", 2]);
  await expect.poll(told, { interval: 300 }).toMatchObject({ items: [{ state: "conflicts", acknowledged: null }] });
});

it("settled conflicts of one sync job do not hide what another waits for", async () => {
  const own = await webForTest({ story: { archive: { endings: [], more: of(12) } } });
  const history = new History(own.store);
  const left = { status: "conflicts", reason: "new-conflicts", target: "12" } as const;
  const waits = { status: "blocked", reason: "approval-waiting", target: "112" } as const;
  for (const end of [left, waits])
    await history.record(testOutcome({ ...end, policy: "archive", taskId: `archive__run__${end.target}__1` }));
  await walkOf(own.store, await redisTimeMs(own.store));
  const { items } = JSON.parse(await (await own.ask("/api/v1/attention")).text());
  expect(items).toMatchObject([{ name: "archive", state: "blocked" }]);
});
