// A service that is down, as the first page, the API and `status` tell it: one trouble, with what
// it holds up, whose that is, and that it heals by itself.
import { expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { isDenied } from "../../../src/core/limiter.ts";
import type { Outcome } from "../../../src/model/outcome.ts";
import { FeedStore } from "../../../src/store/feed-store.ts";
import { History } from "../../../src/store/history.ts";
import { keepPolicySet } from "../../../src/store/kept-policies.ts";
import { redisTimeMs, type Store } from "../../../src/store/redis.ts";
import { ServiceLimiter } from "../../../src/store/service-limiter.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { createToken } from "../../../src/web/tokens.ts";
import { runHere } from "../../support/commands-here.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { webForTest } from "../../support/web-fixture.ts";
import { type Story, setOfStory } from "../../support/web-story.ts";

const service = "billing";
const story: Story = {
  ledger: { endings: ["ok", "open"], more: { service, owner: "Ana, 4711" } },
  // What was skipped waits for no service.
  prices: { endings: ["ok", "skipped"], more: { service } },
  orders: { endings: ["ok", "failed"], more: { service, owner: "Bob" } },
  contracts: { endings: ["ok"] },
};
const web = await webForTest({ story });
await keepPolicySet(web.store, setOfStory(story), "host/1");
const limits = { concurrencyMax: undefined, requestsPerSecond: undefined, probeEveryMs: 60_000, leaseMs: 10_000 };
const breakDown = async (store: Store) => {
  const parts = { store, clock: systemClock, log: silentLog };
  const permit = await new ServiceLimiter({ ...limits, service, failuresMax: 1 }, parts).acquire({ isRead: true });
  if (!isDenied(permit)) await permit.release({ kind: "server", retryAfterMs: undefined });
};
await breakDown(web.store);
for (const list of ["activities", "conflictDetails", "approvals"] as const)
  await new FeedStore(web.store).failWalk({ service, repository: "HR", list }, "no answer", {
    beganAtMs: 0,
    waitMs: 0,
  });

it("one outage is one item, with what it holds up and whose that is", async () => {
  const { items } = (await (await web.ask("/api/v1/attention")).json()) as { items: object[] };
  expect(items).toMatchObject([
    {
      ...{ about: "service", name: "billing", state: "down", healsByItself: true, owner: "Ana, 4711; Bob" },
      ...{ policies: ["ledger", "orders", "prices"], policiesCount: 3 },
      what: expect.stringMatching(
        /^1 policy waits for it: ledger; 1 policy failed by it, .*: orders; 1 policy needs it .*: prices; cannot be read meanwhile: activities of billing, repository HR, conflictDetails .*, approvals .*; last failure: server$/,
      ),
    },
  ]);
});

it("the first page says that no person must act, and that tonight's run waits", async () => {
  const html = await (await web.ask("/")).text();
  expect(html).toContain("<h1>Not all is well: 1 trouble heals by itself, nothing needs a person</h1>");
  expect(html).toContain("<title>1 trouble heals by itself");
  const text = html.replace(/<[^>]+>/g, " ").replace(/\s+/g, " ");
  expect(text).toMatch(
    /owner: Ana, 4711; Bob; none is named for prices heals by itself All of it goes on when the service answers/,
  );
  expect(text).toMatch(/ ledger its run of \d\d:\d\d UTC waits until billing answers /);
  expect(text).toMatch(/ prices run sync job 42 /);
});

it("the page of services asks for no person either", async () => {
  expect(await (await web.ask("/services")).text()).not.toMatch(/needs? a person/);
});

it("status and the policy's page say that its run waits", async () => {
  const { prefix, url } = web.parts.context().target;
  const { out } = await runHere(["status", "--prefix", prefix, "--redis-url", url]);
  expect(out).toMatch(/\nservice-down +ledger .* its run of \d\d:\d\d UTC waits until billing answers/);
  expect(await (await web.ask("/policies/ledger")).text()).toMatch(/its run of \d\d:\d\d UTC waits until billing/);
});

it("a service that throttles on and on is told since when, and needs a person", async () => {
  const own = await webForTest({ story: { contracts: { endings: ["ok"] } } });
  const parts = { store: own.store, clock: systemClock, log: silentLog };
  const throttle = async (retryAfterMs: number) => {
    const limiter = new ServiceLimiter({ ...limits, service: "main", failuresMax: 9 }, parts);
    const permit = await limiter.acquire({ isRead: true });
    if (!isDenied(permit)) await permit.release({ kind: "throttled", retryAfterMs });
  };
  await throttle(9_000);
  const first = (await (await own.ask("/api/v1/attention")).json()) as { items: object[] };
  expect(first.items).toMatchObject([
    { state: "throttled", healsByItself: true, what: expect.stringMatching(/for \ds$/) },
  ]);
  // The same a quarter of an hour later, when the next answer is no better.
  const [key, { redis }] = [own.store.key("limiter", "main"), own.store];
  const sinceMs = Number(await redis.hget(key, "throttledSinceMs")) - 900_000;
  await redis.hset(key, { throttledSinceMs: sinceMs, throttledUntilMs: Date.now() - 1_000 });
  // Longer than an answer is kept, however long its reading took.
  await throttle(600_000);
  const told = async () => JSON.parse(await (await own.ask("/api/v1/attention")).text()).items;
  const what = expect.stringMatching(/again and again since .*, now until /);
  await expect.poll(told, { interval: 300 }).toMatchObject([{ state: "throttled", healsByItself: false, what }]);
});

it("what one sync job needs a person for is no part of another's outage", async () => {
  const failed = { status: "not-started", reason: "server-error" } as const;
  // How sync job 43 ended, after 42 failed by the outage.
  const ends = {
    alike: [failed],
    again: [failed, failed],
    refused: [{ status: "failed", reason: "refused" }],
    unknown: [{ status: "unknown", reason: "unreachable" }],
    blocked: [{ status: "blocked", reason: "approval-waiting" }],
    conflicts: [{ status: "conflicts", reason: "new-conflicts" }],
    "run-well": [{}],
  } as const;
  const more = { service, action: { kind: "run", syncJobs: [42, 43] } as const };
  const names = Object.keys(ends);
  const own = await webForTest({ story: Object.fromEntries(names.map((name) => [name, { endings: [], more }])) });
  for (const [policy, others] of Object.entries(ends)) {
    const all = [failed, ...others].map((end, index) => ({ ...end, target: index === 0 ? "42" : "43" }));
    for (const [index, end] of all.entries()) {
      const finishedAt = new Date(Date.parse(testOutcome().finishedAt) + index).toISOString();
      const named = { policy, service, taskId: `${policy}__run__${end.target}__${index}`, finishedAt };
      await new History(own.store).record(testOutcome({ ...named, ...end }));
    }
  }
  const items = async () => {
    const told = JSON.parse(await (await own.ask("/api/v1/attention")).text()).items;
    return told.map(({ name, healsByItself }: Record<string, unknown>) => [name, healsByItself]);
  };
  const needed = ["refused", "unknown", "blocked", "conflicts"].map((name) => [name, false]);
  expect(await items()).toEqual([["alike", true], ["again", false], ...needed, ["run-well", true]]);
  await breakDown(own.store);
  await expect.poll(items, { interval: 300 }).toEqual([[service, true], ...needed]);
});

it("a miss is made up for by the next run, until two intervals have no success", async () => {
  const slots: Story = {
    once: { endings: ["ok", "missed"] },
    again: { endings: ["ok", "missed", "missed", "missed"] },
    ...{ "late-once": { endings: [] }, "late-again": { endings: [] }, due: { endings: [] } },
  };
  const own = await webForTest({ story: slots });
  const nowMs = await redisTimeMs(own.store);
  const hoursAgo = (hours: number) => new Date(nowMs - hours * 3_600_000).toISOString();
  const end = (policy: string, hours: number, as: Partial<Outcome> = {}) => {
    const at = { slot: hoursAgo(hours), finishedAt: hoursAgo(hours) };
    return new History(own.store).record(testOutcome({ policy, taskId: `${policy}__run__42__${hours}`, ...at, ...as }));
  };
  const tooLate = { status: "missed", reason: "too-late" } as const;
  await end("late-once", 1);
  await end("late-once", 0, tooLate);
  await end("late-again", 4);
  for (const hours of [2, 1, 0]) await end("late-again", hours, tooLate);
  await end("due", 4);
  await new SlotLedger(own.store).openWatermarks([{ policy: "due", schedule: "x" }], nowMs - 10_800_000);
  const told = async () => {
    const { items } = JSON.parse(await (await own.ask("/api/v1/attention")).text());
    return items.map(({ name, state, healsByItself, slot }: Record<string, unknown>) => [
      ...[name, state, healsByItself, slot],
    ]);
  };
  // Its slot is the missed one, where that is known: not that of the last run that ended well.
  await expect.poll(told, { interval: 300 }).toEqual([
    ["once", "missed", true, null],
    ["again", "missed", false, null],
    ["late-once", "missed", true, hoursAgo(0)],
    ["late-again", "missed", false, hoursAgo(0)],
    ["due", "unplanned", false, new Date(Math.ceil((nowMs - 10_800_000 + 1) / 3_600_000) * 3_600_000).toISOString()],
  ]);
});

it("a run that goes on is not started again for a slot that was missed before", async () => {
  const more = { service, expect: { kind: "successBy", at: "06:00", on: "*" } } as const;
  const { token, line } = createToken({ name: "boss", scope: "admin", services: [] });
  const headers = { authorization: `Bearer ${token}` };
  const story: Story = { going: { endings: ["ok", "missed"], more } };
  const own = await webForTest({ story, tokens: () => line });
  const nowMs = await redisTimeMs(own.store);
  const late = { sinceMs: nowMs, fromMs: nowMs - 60_000, atMs: nowMs, toldMs: nowMs, why: "it had not ended" };
  const state = JSON.stringify({ v: 1, expect: "", judgedMs: nowMs, late, sinks: [] });
  await own.store.redis.hset(own.store.key("notifications", "deadlines"), "going", state);
  const id = `going__run__42__${Math.floor(nowMs / 1_000)}`;
  const journal = new StartJournal(own.store);
  await journal.claim(id, "me");
  const task = { id, kind: "run", service, repository: "HR", target: "42" } as const;
  await journal.beginSending(task, "me", { startByMs: 9e15, baseline: "" });
  const told = async () => JSON.parse(await (await own.ask("/api/v1/attention", { headers })).text()).items;
  const nextStep = expect.stringMatching(/^Its run has not ended yet: /);
  await expect.poll(told, { interval: 300 }).toMatchObject([{ name: "going", state: "missed", nextStep }]);
  const page = await (await own.ask("/", { headers })).text();
  expect([page.includes("Acknowledge…"), page.includes("Run now…")]).toEqual([true, false]);
});
