// What pages say, as text: no browser is needed for it.
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { feedId } from "../../../src/model/feed.ts";
import type { Outcome } from "../../../src/model/outcome.ts";
import { readFeeds } from "../../../src/queries/feeds.ts";
import { FeedStore } from "../../../src/store/feed-store.ts";
import { History } from "../../../src/store/history.ts";
import { Pauses, Quarantines } from "../../../src/store/pauses.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { createToken } from "../../../src/web/tokens.ts";
import { createWebApp } from "../../../src/web/web-app.ts";
import { startWebServer } from "../../../src/web/web-server.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { webForTest } from "../../support/web-fixture.ts";
import { setOfStory, smallStory } from "../../support/web-story.ts";

const minuteMs = 60_000;
const noFacts = {
  syncJobId: undefined,
  startedAtMs: undefined,
  finished: undefined,
  succeeded: undefined,
  label: undefined,
};
const nowMs = await redisTimeMs(await storeForTest(redisForTest()));
const justBefore = new Date(nowMs - minuteMs);
const schedule: Policy["schedule"] = {
  kind: "cron",
  expressions: [`${justBefore.getUTCMinutes()} ${justBefore.getUTCHours()} * * *`],
  timezone: "UTC",
  dst: { gap: "next", overlap: "first" },
  spreadMs: 0,
};
const expectation = { kind: "successBy", at: "06:00", on: "*" } as const;
const ofOneObject: Policy["action"] = { kind: "apply", objects: [{ kind: "syncJob", id: 7, fields: {} }] };
const story = {
  ...smallStory,
  "due-before": { endings: [], more: { schedule } },
  lonely: { endings: [] },
  invoices: { endings: ["ok", "failed", "failed"] as const, more: { owner: "Ana, 4711" } },
  "of-one-object": { endings: [], more: { action: ofOneObject } },
  "of-no-job": { endings: [] },
  "of-no-rights": { endings: [] },
  overdue: { endings: [], more: { expect: expectation } },
};
const web = await webForTest({ story });

/** A run of a sync job that the service refused with these words. */
const fails = (policy: string, target: string, said: string, reason: "refused" | "no-access" = "refused") => {
  const detail = `RunSyncJob (POST /syncJobs/${target}/run): status 400; the service says: ${said}`;
  const at = new Date(nowMs).toISOString();
  const ended = { status: "failed", reason, slot: at, finishedAt: at, detail } as const;
  const taskId = `${policy}__run__${target}__${nowMs}`;
  return new History(web.store).record(testOutcome({ ...ended, policy, taskId, target }));
};
for (const target of ["997", "998", "999"]) await fails("invoices", target, `nothing with the id ${target}`);
await fails("invoices", "996", "it is locked");
await fails("of-no-job", "42", "nothing with the id 42");
await fails("of-no-rights", "42", "the caller lacks rights", "no-access");

const textOf = async (path: string) =>
  (await (await web.ask(path)).text())
    .replace(/<[^>]+>/g, " ")
    .replace(/\s+/g, " ")
    .trim();

it("the next 24 hours reach to now of tomorrow; the hour picker stands before lanes", async () => {
  const text = await textOf("/next");
  expect(text).toMatch(/The hour from .*Show .* due-before .* requests an hour/);
  const { services, slots, from, to } = (await (await web.ask("/api/v1/plan")).json()) as {
    services: { hours: object[] }[];
    slots: { policy: string }[];
    from: string;
    to: string;
  };
  expect(slots.filter(({ policy }) => policy === "due-before")).toHaveLength(1);
  expect(services[0]?.hours).toHaveLength(25);
  expect(Date.parse(to)).toBeGreaterThanOrEqual(nowMs + 24 * 60 * minuteMs);
  expect(Date.parse(from) % (60 * minuteMs)).toBe(0);
});

it("the next 24 hours show no slot that has passed, when asked for the hour of now", async () => {
  const page = await (await web.ask(`/next?at=${String(new Date(nowMs).getUTCHours()).padStart(2, "0")}:00`)).text();
  const slots = page.slice(page.indexOf('id="slots"')).replace(/<[^>]+>/g, " ");
  expect(slots).toMatch(/:\d\d UTC\s+suspended\s+skipped/);
});

it("the next 24 hours say that they are being worked out, then they come", async () => {
  const known = Promise.withResolvers<void>();
  const context = () => {
    const { readStates, ...given } = web.parts.context();
    return { ...given, readStates: (names: readonly string[]) => known.promise.then(() => readStates(names)) };
  };
  // At first no page waits, then each does.
  let patience = Promise.resolve();
  const clock = { ...web.parts.clock, sleep: () => patience };
  const app = createWebApp({ ...web.parts, context, clock });
  const ask = () => app.request("http://127.0.0.1/next");
  const [first, plan] = [await ask(), app.request("http://127.0.0.1/api/v1/plan")];
  expect([first.status, first.headers.get("refresh")]).toEqual([200, "2"]);
  expect(await first.text()).toMatch(/in work<.* are being worked out, which takes a few seconds/);
  known.resolve();
  expect(await (await plan).json()).toHaveProperty("slots");
  patience = new Promise(() => {});
  const then = await ask();
  expect([then.headers.get("refresh"), await then.text()]).toEqual([null, expect.stringContaining("requests an hour")]);
});

it("the next 24 hours are known before a caller asks for them", async () => {
  let readings = 0;
  // What is read holds: its clock stands still.
  const clock = { ...systemClock, monotonicMs: () => 0 };
  const meter = { answered: () => {}, read: () => (readings += 1) };
  const server = await startWebServer({ host: "127.0.0.1", port: 0 }, { ...web.parts, clock, meter });
  onTestFinished(() => server.stop());
  await expect.poll(() => readings).toBe(2);
  const page = async () => (await fetch(`http://127.0.0.1:${server.port}/next`)).text();
  await expect.poll(page).toContain("requests an hour");
  expect(readings).toBe(2);
});

it("a look ahead that fails after its page has come is told to the next one", async () => {
  const [asked, known] = [Promise.withResolvers<void>(), Promise.withResolvers<never>()];
  let nowMs = 0;
  let patience = Promise.resolve();
  const clock = { ...web.parts.clock, monotonicMs: () => nowMs, sleep: () => patience };
  let isFirst = true;
  const context = () => {
    const { readStates, ...given } = web.parts.context();
    const failing = (names: readonly string[]) => {
      if (!isFirst) return readStates(names);
      isFirst = false;
      asked.resolve();
      return known.promise;
    };
    return { ...given, readStates: failing };
  };
  const app = createWebApp({ ...web.parts, context, clock });
  const ask = () => app.request("http://127.0.0.1/next");
  const [first, plan] = [await ask(), app.request("http://127.0.0.1/api/v1/plan")];
  expect([first.status, first.headers.get("refresh")]).toEqual([200, "2"]);
  await asked.promise;
  nowMs = 29_000;
  known.reject(new Error("Redis went away"));
  expect((await plan).status).toBeGreaterThanOrEqual(500);
  nowMs += 2_000;
  patience = new Promise(() => {});
  expect((await ask()).status).toBeGreaterThanOrEqual(500);
});

it("a task that has ended has no step that is called now", async () => {
  const { slots } = (await (await web.ask("/api/v1/policies/archive")).json()) as { slots: { slot: string }[] };
  const id = `archive__run__42__${Date.parse(slots.at(-1)?.slot ?? "") / 1_000}`;
  const journal = new StartJournal(web.store);
  await journal.claim(id, "me");
  const task = { id, kind: "run", service: "main", repository: "HR", target: "42" } as const;
  await journal.beginSending(task, "me", { startByMs: 9e15, baseline: "" });
  await journal.noteDoubt(id, { kind: "crash", detail: "its worker died" });
  const text = await textOf(`/tasks/${id}`);
  expect(text).toMatch(/ended .* no good answer its worker died/);
  expect(text).toContain("the start was permitted");
  expect(text).not.toContain("now no good answer");
});

it("the story of a slot says what its deadline came to", async () => {
  const day = new Date(nowMs - 24 * 60 * minuteMs).toISOString().slice(0, 10);
  const text = await textOf(`/policies/overdue/slots/${day}T05:00:00Z`);
  expect(text).toMatch(/expected by 06:00, so by 06:00 UTC: late/);
});

it("the story of a task in flight says that no worker is alive to go on with it", async () => {
  const { token, line } = createToken({ name: "boss", scope: "admin", services: [] });
  const own = await webForTest({ story: { alone: { endings: [] } }, tokens: () => line });
  const authorization = `Bearer ${token}`;
  const headers = { authorization, "content-type": "application/json", "idempotency-key": "k" };
  const body = JSON.stringify({ reason: "x" });
  const started = await own.ask("/api/v1/policies/alone/runs", { method: "POST", headers, body });
  const { tasks } = (await started.json()) as { tasks: string[] };
  await own.store.redis.del(own.store.key("processes"));
  const page = await (await own.ask(`/tasks/${tasks[0]}`, { headers: { authorization } })).text();
  expect(page).toMatch(/role missing.*no worker is alive: nothing that is queued/);
  const story = await (await own.ask(`/api/v1/tasks/${tasks[0]}`, { headers: { authorization } })).json();
  const missing = expect.stringContaining("no worker is alive");
  expect(story).toMatchObject({ deadline: null, missingRoles: expect.arrayContaining([missing]) });
  expect(story).toMatchObject({ tasks: [{ isInFlight: true, now: expect.any(String), cancelled: null }] });
});

it("a policy says by which pauses it is held, and which of them is a quarantine", async () => {
  const own = await webForTest({ story: { alone: { endings: ["ok"] } } });
  const pause = { scope: "service", name: "main", note: "an upgrade", actor: "ana", untilMs: null } as const;
  await new Pauses(own.store).set(pause);
  const ending = { policy: "alone", slotMs: nowMs, isSuccess: false, note: "the disk is full" };
  await new Quarantines(own.store).count(ending, { after: 1, forMs: 60 * minuteMs });
  const text = async (path: string) => (await (await own.ask(path)).text()).replace(/<[^>]+>/g, "");
  const policy = await text("/policies/alone");
  expect(policy).toMatch(/paused with service main by ana since .*, until it is resumed: an upgrade/);
  expect(policy).toMatch(/quarantined by syncline since .*, until .*Z: .*the disk is full/);
  const slot = await text(`/policies/alone/slots/${new Date(nowMs).toISOString()}`);
  expect(slot).toContain("paused now with service main by ana: an upgrade");
  expect(slot).toMatch(/quarantined now by syncline: .*the disk is full/);
});

it("the only good run is compared with none, the next with it, an unknown never", async () => {
  const end = async (minutes: number, more: Partial<Outcome> = {}) => {
    const atMs = nowMs - minutes * minuteMs;
    const [slot, finishedAt] = [new Date(atMs).toISOString(), new Date(atMs + minuteMs).toISOString()];
    const taskId = `lonely__run__42__m${atMs}`;
    const times = { slot, startedAt: slot, finishedAt, durationMs: minuteMs, ...more };
    await new History(web.store).record(testOutcome({ taskId, policy: "lonely", origin: "manual", ...times }));
    return (await web.ask(`/tasks/${taskId}`)).text();
  };
  expect(await end(9)).toContain("It took 1m. It is the only good run so far");
  expect(await end(5)).toContain("It took 1m: as usual");
  expect(await end(3, { status: "unknown", evidence: "none" })).not.toContain("It took");
});

it("the first page shows what ended just now without a policy", async () => {
  const own = await webForTest({ story: { calm: { endings: ["ok"] } } });
  const page = await (await own.ask("/")).text();
  expect(page).toMatch(/by-hand\.run<span class="under"><a href="\/tasks\/by-hand\.run__run__77__m\d+">/);
});

it("a policy in trouble says first what to do, and whom to ask", async () => {
  expect(await textOf("/policies/archive")).toMatch(
    /unknown .* Look at the service whether it ran before you replay it owner: none is named needs a person last unknown/,
  );
  expect(await textOf("/policies/invoices")).toMatch(/ owner: Ana, 4711 needs a person last failed/);
});

it("a policy's condition is said once", async () => {
  expect(await textOf("/policies/just-added")).toMatch(/just-added no outcome yet (?!no)/);
  const late = { sinceMs: nowMs, fromMs: nowMs - minuteMs, atMs: nowMs, toldMs: nowMs, why: "no slot began" };
  const state = JSON.stringify({ v: 1, expect: "", judgedMs: nowMs, late, sinks: [] });
  await web.store.redis.hset(web.store.key("notifications", "deadlines"), "overdue", state);
  expect(await textOf("/policies/overdue")).toMatch(/overdue late for \d\d:\d\d/);
  expect(await textOf("/?")).toMatch(/late overdue for \d\d:\d\d/);
});

it.each([
  ["/next?at=25:99", "at=25:99 is no time of day: write one such as 14:30"],
  ["/next?at=2026-11-22T14:30:00Z", "is no time of day"],
  ["/next?from=14:30", "from=14:30 is not asked for here: this page knows at"],
  ["/audit?from=2026-02-30", "from=2026-02-30 is no day: write one such as 2026-11-22"],
  ["/audit?to=yesterday&page=0", "to=yesterday is no day: write one such as 2026-11-22. .*page=0 is no page"],
  ["/audit?from=2026-11-22&to=2026-11-21", "from=2026-11-22 is after to=2026-11-21"],
  ["/failed?since=1h", "since=1h is not known: write one of 18:00, 24h, 7d, all"],
  ["/policies?health=fine", "health=fine is not known: write one of quarantined, failing"],
  [`/policies?q=${"x".repeat(101)}`, "is too long: write at most 100 characters"],
  ["/policies/invoices?days=400", "days=400 is not known: write one of 30, 90, 365"],
  ["/changes?page=2", "page=2 is not asked for here"],
  ["/feeds?__proto__=1", "__proto__=1 is not asked for here"],
  ["/next?constructor=1", "constructor=1 is not asked for here"],
  ["/policies/invoices/days/2026-02-30", "2026-02-30 is no day. Write one such as 2026-11-22"],
  ["/policies/invoices/slots/2026-02-30T02:30:00Z", "2026-02-30T02:30:00Z is no instant. Write one such as"],
])("a page tells what of its address makes no sense: %s", async (path, told) => {
  expect(await textOf(path)).toMatch(new RegExp(told));
});

it("a page tells nothing of an address that makes sense", async () => {
  for (const path of [
    "/next?at=14:30",
    "/audit?from=2026-02-28&to=&page=2",
    "/failed?since=all",
    "/policies?q=&page=3",
  ])
    expect(await textOf(path)).not.toContain("In the address");
});

it("a policy whose only slot has passed does not run by hand only", async () => {
  const dst = { gap: "next", overlap: "first" } as const;
  const past = { kind: "once", at: "2020-01-01T02:30:00", timezone: "UTC", dst, spreadMs: 0 } as const;
  const passed = { endings: [], more: { schedule: past } };
  const own = await webForTest({ story: {}, set: setOfStory({ passed }) });
  const text = await (await own.ask("/policies/passed")).text();
  expect([text.includes("None is ahead."), text.includes("by hand only")]).toEqual([true, false]);
});

it("a day ahead is not called one without slots", async () => {
  const date = new Date(nowMs + 2 * 24 * 60 * minuteMs).toISOString().slice(0, 10);
  expect(await textOf(`/policies/lonely/days/${date}`)).toContain("none has come due yet or was due");
});

it("the page of the API stands still, as it cannot change", async () => {
  const page = await (await web.ask("/api")).text();
  const has = ["listOutcomes", "data-static", "live.js"].map((words) => page.includes(words));
  expect(has).toEqual([true, true, false]);
});

it("a policy that applies one object names it", async () => {
  expect(await textOf("/policies?q=of-one-object")).toContain("apply sync job 7 ·");
});

it("a page of another version is styled, and asks again the next time", async () => {
  const [, own = ""] = /href="(\/assets\/[^"]*style\.css)"/.exec(await (await web.ask("/")).text()) ?? [];
  const [same, other] = [await web.ask(own), await web.ask("/assets/0123456789ab/style.css")];
  expect(same.headers.get("cache-control")).toContain("immutable");
  expect([other.status, other.headers.get("cache-control")]).toEqual([200, "no-cache"]);
  expect(await other.text()).toBe(await same.text());
  expect((await web.ask("/assets/0123456789ab/none.css")).status).toBe(404);
});

it("a request that is wrong gets other advice than a caller who is not let in", async () => {
  const { items } = (await (await web.ask("/api/v1/attention")).json()) as {
    items: { name: string; nextStep: string }[];
  };
  const adviceOn = (policy: string) => items.find(({ name }) => name === policy)?.nextStep;
  expect(adviceOn("of-no-job")).toMatch(/is the sync job there/);
  expect(adviceOn("of-no-rights")).toMatch(/check the token and its rights/);
});

it("failures that differ in the number of their sync job only say their cause once", async () => {
  const text = await textOf("/failed");
  expect(text.match(/nothing with the id \d+/g)).toHaveLength(1);
  expect(text).toMatch(/sync job 996 .*it is locked/);
});

it("a time in which nothing failed is not called all of the failed list", async () => {
  const own = await webForTest({ story: {}, set: setOfStory({ a: { endings: [] } }) });
  const at = new Date(nowMs - 10 * 24 * 60 * minuteMs).toISOString();
  const failed = testOutcome({ policy: "a", taskId: "a__run__42__1", status: "failed", slot: at, finishedAt: at });
  await new History(own.store).record(failed);
  expect(await (await own.ask("/failed?since=24h")).text()).toContain("Nothing of this time waits to be done over.");
});

it("feeds count what is new since yesterday of a long list, by its first items alone", async () => {
  const feeds = new FeedStore(web.store);
  const feed = { service: "main", repository: "HR", list: "activities" } as const;
  const [items, dayMs] = [web.store.key("feed-items", feedId(feed)), 86_400_000];
  const ids = Array.from({ length: 1_000 }, (_, index) => `${index}`);
  const item = (id: string, fingerprint = id) => ({ id, fingerprint, ...noFacts });
  const takeIn = (some: readonly string[], change?: string) =>
    feeds.takeIn(feed, { generation: 0 }, { items: some.map((id) => item(id, change)), sinceSeq: 0 });
  await takeIn(ids);
  for (const [id, text] of Object.entries(await web.store.redis.hgetall(items)))
    await web.store.redis.hset(items, id, text.replace(/@\d+/, `@${nowMs - 2 * dayMs}`));
  // Old ones that change are not new.
  await takeIn(ids.slice(0, 50), "changed");
  await takeIn(Array.from({ length: 7 }, (_, index) => `new-${index}`));
  await feeds.keepKnowledge(feed, "{}");
  await feeds.endWalk(feed, { startedAtMs: 1, count: 1_007, whole: true, because: "audit" });
  const newSinceYesterday = async () => {
    const { lines } = await readFeeds(web.parts.context());
    return lines.find(({ note }) => note.feed.list === "activities")?.fresh.count;
  };
  const read = vi.spyOn(FeedStore.prototype, "newest");
  expect(await newSinceYesterday()).toBe(7);
  expect(read.mock.calls.filter(([{ list }]) => list === "activities")).toEqual([[feed, 200]]);
  read.mockRestore();
  // More than those are new: all are read.
  await takeIn(Array.from({ length: 300 }, (_, index) => `newer-${index}`));
  expect(await newSinceYesterday()).toBe(307);
});

describe("an hour with more slots than are listed", () => {
  const hourMs = 60 * minuteMs;
  const fromMs = (Math.floor(nowMs / hourMs) + 3) * hourMs;
  const [before, hour] = [fromMs - hourMs, fromMs].map((ms) => new Date(ms).getUTCHours());
  const due = (expression: string) => ({
    endings: [],
    more: { schedule: { ...schedule, expressions: [expression] } as const },
  });
  const busy = Array.from({ length: 35 }, (_, index) => [`busy-${index}`, due(`* ${before},${hour} * * *`)]);
  const set = setOfStory({ ...Object.fromEntries(busy), seldom: due(`15 ${hour} * * *`) });
  const { token, line } = createToken({ name: "boss", scope: "admin", services: [] });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

  /** What the page says about the slot of `seldom`, while no time passes. */
  const pagesOfHour = async () => {
    const clock = { ...systemClock, monotonicMs: () => 0 };
    const own = await webForTest({ story: {}, set, clock, tokens: () => line });
    const pause = async (untilMs: number) => {
      const body = JSON.stringify({ target: "policy:seldom", until: new Date(untilMs).toISOString(), reason: "so" });
      expect((await own.ask("/api/v1/pauses", { method: "POST", headers, body })).status).toBe(200);
    };
    const ofSeldom = async () => {
      const text = await (await own.ask(`/next?at=${String(hour).padStart(2, "0")}:00`, { headers })).text();
      const [, starts] = / seldom +(\w+)/.exec(text.slice(text.indexOf('id="slots"')).replace(/<[^>]+>/g, " ")) ?? [];
      return starts;
    };
    return { pause, ofSeldom };
  };

  it("shows the first ones of all policies, wherever they stand in the files", async () => {
    const { ofSeldom } = await pagesOfHour();
    expect(await ofSeldom()).toBe("sync");
  });

  it("says how to see those behind the first 200 lines", async () => {
    const names = Array.from({ length: 201 }, (_, index) => `p${index}`);
    const set = setOfStory(Object.fromEntries(names.map((name) => [name, due(`15 ${hour} * * *`)])));
    const own = await webForTest({ story: {}, set });
    const text = await (await own.ask(`/next?at=${String(hour).padStart(2, "0")}:00`)).text();
    expect(text).toContain(
      "The first 200 lines; a later quarter of an hour has those of later instants, the page of a policy its own.",
    );
  });

  it("shows a slot at the very end of a pause as starting", async () => {
    const { pause, ofSeldom } = await pagesOfHour();
    await pause(fromMs + 15 * minuteMs);
    expect(await ofSeldom()).toBe("sync");
  });

  it("shows a slot as skipped as soon as a pause is set", async () => {
    const { pause, ofSeldom } = await pagesOfHour();
    expect(await ofSeldom()).toBe("sync");
    await pause(fromMs + hourMs);
    expect(await ofSeldom()).toBe("skipped");
  });
});
