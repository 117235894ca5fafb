// What is gone, and what still waits, on a real feed store (src/tasks/baseline.ts).
import { describe, expect, it, onTestFinished } from "vitest";
import { beginTotals } from "../../../src/feeds/list-totals.ts";
import { createItemMapper, type ItemMapper } from "../../../src/feeds/mapping.ts";
import { walkFeed } from "../../../src/feeds/walk-feed.ts";
import type { ItemFacts } from "../../../src/model/feed.ts";
import type { Task } from "../../../src/model/task.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { FeedStore } from "../../../src/store/feed-store.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import type { StartEntry } from "../../../src/store/start-entry.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { takeBaseline, writeBaseline } from "../../../src/tasks/baseline.ts";
import { appearedSince, approvalsSince, conflictChange, returnedConflicts } from "../../../src/tasks/evidence.ts";
import { feedOf } from "../../../src/tasks/followed-lists.ts";
import type { ProcessDependencies } from "../../../src/tasks/process-task.ts";
import type { TaskEnding } from "../../../src/tasks/step.ts";
import { startListServer } from "../../support/list-server.ts";
import { followWaits, testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { testDeps } from "../../support/task-deps.ts";
import { TestLog } from "../../support/test-log.ts";

const target = redisForTest();

const store = await storeForTest(target);
const journal = new StartJournal(store);
const book = new FeedStore(store);

const taskOf = (id: string): Task => ({
  v: 1,
  id,
  kind: "run",
  policy: "nightly",
  service: id,
  repository: null,
  target: "42",
  slotMs: 0,
  origin: "manual",
  covers: [],
  startByMs: 9_999_999_999_999,
});

function partsFor({ unknown }: { unknown?: string } = {}): ProcessDependencies {
  const reader: ItemMapper = {
    read: () => item("none"),
    keyedBy: "",
    mappedBy: "",
    knows: (fact) => fact !== unknown,
    failures: () => ({ count: 0, last: "", item: "" }),
  };
  return testDeps(store, {
    itemMapper: () => reader,
    journal,
    feeds: book,
  });
}

const item = (id: string, syncJobId = "42"): ItemFacts => ({
  id,
  fingerprint: "f",
  syncJobId,
  startedAtMs: undefined,
  finished: undefined,
  succeeded: undefined,
  label: `name of ${id}`,
});

type List = "activities" | "conflictDetails" | "approvals";

/** A walk that shows these items: of the whole list unless said otherwise. */
async function walk(task: Task, list: List, items: readonly ItemFacts[], whole = true): Promise<void> {
  const startedAtMs = await redisTimeMs(store);
  const feed = feedOf(task, list);
  const status = await book.status(feed);
  await book.takeIn(feed, status, { items, sinceSeq: status.seq });
  const counting = beginTotals(list);
  counting?.add(items);
  await book.endWalk(feed, { startedAtMs, count: items.length, whole, totals: whole ? counting?.counts() : undefined });
}

const follow = { ...testPolicy().follow, ...followWaits, blockedAfterMs: 5 };

/** A start after a baseline of these lists; `entry` as the journal would hold it. */
async function startAfter(task: Task, lists: Readonly<Partial<Record<List, readonly ItemFacts[]>>>, deps = partsFor()) {
  const sinceMs = await redisTimeMs(store);
  for (const list of ["activities", "conflictDetails", "approvals"] as const)
    if (lists[list] !== undefined) await walk(task, list, lists[list]);
  return startNow(task, deps, sinceMs);
}

async function startNow(task: Task, deps: ProcessDependencies, sinceMs: number) {
  const { baseline, isTaken, lacks } = await takeBaseline(task, deps, { sinceMs, follow });
  expect([isTaken, lacks]).toEqual([true, []]);
  await journal.claim(task.id, "me");
  await journal.beginSending(task, "me", { startByMs: task.startByMs, baseline: writeBaseline(baseline) });
  return journal.claim(task.id, "me");
}

const nothing = { activities: [], conflictDetails: [], approvals: [] };
const over: TaskEnding = { status: "succeeded", evidence: "direct", reason: "completed", detail: "", newConflicts: 1 };

async function changeOf(task: Task, entry: StartEntry, { ending = over, deps = partsFor() } = {}) {
  return conflictChange(task, deps, { entry, appeared: await appearedSince(task, deps, entry), ending });
}

describe("conflicts from before a run", () => {
  const before = [item("1"), item("2"), item("3"), item("9", "43")];

  it("are gone or still there, of this sync job alone", async () => {
    const task = taskOf("job");
    const entry = await startAfter(task, { ...nothing, conflictDetails: before });
    await walk(task, "conflictDetails", [item("3"), item("4")]);
    expect(await changeOf(task, entry)).toEqual({ goneConflicts: 2, stillConflicts: 1 });
  });

  it("are those of the repository where the mapping does not say whose a conflict is", async () => {
    const task = taskOf("repository");
    const deps = partsFor({ unknown: "syncJobId" });
    const entry = await startAfter(task, { ...nothing, conflictDetails: before }, deps);
    await walk(task, "conflictDetails", [item("3"), item("4")]);
    expect(await changeOf(task, entry, { deps })).toEqual({ goneConflicts: 3, stillConflicts: 1 });
    // The mapping has changed meanwhile: the two counts speak of different things.
    expect(await changeOf(task, entry)).toEqual({});
  });

  it("are not spoken of after a walk of one end, nor of a run that is not over", async () => {
    const task = taskOf("end");
    const entry = await startAfter(task, { ...nothing, conflictDetails: before });
    await walk(task, "conflictDetails", [item("4")], false);
    expect(await changeOf(task, entry)).toEqual({});
    await walk(task, "conflictDetails", before);
    expect(await changeOf(task, entry)).toEqual({ goneConflicts: 1, stillConflicts: 2 });
    await walk(task, "conflictDetails", [], false);
    expect(await changeOf(task, entry)).toEqual({});
    await walk(task, "conflictDetails", before);
    expect(await changeOf(task, entry, { ending: { ...over, status: "timed-out" } })).toEqual({});
    // Failed, and its conflicts were not read after its end.
    expect(await changeOf(task, entry, { ending: { ...over, status: "failed", newConflicts: undefined } })).toEqual({});
  });

  it("are not spoken of when the last walk before the start was one of an end", async () => {
    const task = taskOf("end-before");
    await walk(task, "conflictDetails", before);
    const sinceMs = (await redisTimeMs(store)) + 1;
    await expect.poll(() => redisTimeMs(store)).toBeGreaterThan(sinceMs);
    await walk(task, "activities", []);
    await walk(task, "conflictDetails", [item("4")], false);
    const { baseline } = await takeBaseline(task, partsFor(), { sinceMs, follow });
    expect(baseline).not.toHaveProperty("conflictsBefore");
  });

  it("are not spoken of when they come back: the numbers contradict each other", async () => {
    const task = taskOf("back");
    await walk(task, "conflictDetails", before);
    const entry = await startAfter(task, nothing);
    await walk(task, "conflictDetails", [item("1")]);
    expect(await changeOf(task, entry)).toEqual({});
  });
});

describe("conflicts from before a run, on two pages that shift while they are read", () => {
  const conflict = (conflictId: number) => ({ conflictId, syncJobId: conflictId === 4 ? 42 : 43 });
  const conflicts = (...ids: readonly number[]) => ids.map(conflict);

  /** A worker's walks of a service's conflicts in pages of three. */
  async function startConflicts(task: Task) {
    const server = await startListServer({ syncconflictdetails: conflicts(1, 2, 3, 4, 5) }, 3);
    const service = new SyncService({ baseUrl: server.url, token: staticToken("x") });
    onTestFinished(async () => {
      service.close();
      await server.stop();
    });
    const { service: name, repository } = task;
    await book.addWaiter(feedOf(task, "conflictDetails"), "run", { nowMs: 1, untilMs: 9e15 });
    let walks = 0;
    const log = new TestLog();
    /**
     * Answers how many requests it took. `slips`: 1 is deleted between the pages, and 4 slips;
     * `given`: the same befell a poll, whose pages it takes.
     */
    const read = async (how?: "slips" | "given") => {
      const before = server.asked.length;
      walks += 1;
      const nowMs = (await redisTimeMs(store)) + walks * 60_000;
      const first = { url: "p:1", nextLink: "p:2", items: conflicts(1, 2, 3) };
      const beganAtMs = nowMs;
      const given = how === "given" ? { beganAtMs, pages: [first, { url: "p:2", items: conflicts(5) }] } : undefined;
      const change = () => {
        server.lists["syncconflictdetails"] = conflicts(2, 3, 4, 5);
      };
      if (how === "slips") server.afterFirst = change;
      if (how === "given") change();
      await walkFeed(
        { v: 1, kind: "feed-walk", service: name, repository, list: "conflictDetails" },
        {
          feeds: book,
          nowMs: async () => nowMs,
          service: () => service,
          denialOf: async () => undefined,
          itemMapper: () => createItemMapper("conflictDetails", { id: "item.conflictId", syncJobId: "item.syncJobId" }),
          pace: { gapMs: 0, fastestMs: 0, slowestMs: 0 },
          readings: { newerThan: async () => given },
          log,
        },
        new AbortController().signal,
      );
      return server.asked.length - before;
    };
    const start = (id = task.id) => startAfter({ ...task, id }, { activities: [], approvals: [] });
    const evidenceOf = async (entry: StartEntry) => {
      const appeared = await appearedSince(task, partsFor(), entry);
      return { entry, appeared };
    };
    const change = async (entry: StartEntry) =>
      conflictChange(task, partsFor(), { ...(await evidenceOf(entry)), ending: over });
    const returned = async (entry: StartEntry) => returnedConflicts(task, partsFor(), await evidenceOf(entry));
    /** How the second readings ended. */
    const again = () => log.named("list.read-again").map(({ reader, result }) => [reader, result].join(" "));
    return { server, read, start, change, returned, again };
  }

  it.each([
    ["slips", 5, ["walk other"]],
    ["given", 1, []],
  ] as const)("are not gone when they slip over the boundary: %s", async (how, requests, told) => {
    const { read, start, change, again } = await startConflicts(taskOf(how));
    await read();
    expect(await read()).toBe(3);
    const entry = await start();
    expect(await read(how)).toBe(requests);
    expect(await change(entry)).toEqual({});
    expect(await read()).toBe(3);
    expect(await change(entry)).toEqual({ goneConflicts: 0, stillConflicts: 1 });
    expect(again()).toEqual(told);
  });

  it("are not back afterwards when they slipped right before its start", async () => {
    const { read, start, returned } = await startConflicts(taskOf("slipped before"));
    await read();
    await read("slips");
    const entry = await start();
    await read();
    expect(await returned(entry)).toBe(0);
  });

  it("are gone, or back, where a second reading shows the same", async () => {
    const { server, read, start, change, returned, again } = await startConflicts(taskOf("gone twice"));
    await read();
    const entry = await start();
    server.lists["syncconflictdetails"] = conflicts(1, 2, 3, 5);
    expect(await read()).toBe(5);
    expect(await change(entry)).toEqual({ goneConflicts: 1, stillConflicts: 0 });
    const later = await start("gone twice, later");
    server.lists["syncconflictdetails"] = conflicts(1, 2, 3, 4, 5);
    expect(await read()).toBe(5);
    expect(await returned(later)).toBe(1);
    expect(again()).toEqual(["walk same", "walk same"]);
  });

  it("and new ones cost no second reading", async () => {
    const { server, read, start, change } = await startConflicts(taskOf("new ones"));
    await read();
    const entry = await start();
    server.lists["syncconflictdetails"] = conflicts(1, 2, 3, 4, 5, 6);
    expect(await read()).toBe(3);
    expect(await change(entry)).toEqual({ goneConflicts: 0, stillConflicts: 1 });
  });
});

describe("approvals that appeared since a start", () => {
  const waitingFor = async (task: Task, entry: StartEntry, deps = partsFor()) => {
    const nowMs = (entry.sentAtMs ?? 0) + 60_000;
    const found = await approvalsSince(task, deps, { entry, follow, nowMs });
    return found === undefined ? undefined : { ...found, waiting: found.waiting.map(({ id }) => id) };
  };

  it("wait until a walk of the whole list does not show them any more", async () => {
    const task = taskOf("approvals");
    const entry = await startAfter(task, { ...nothing, approvals: [item("1")] });
    expect(await waitingFor(task, entry)).toMatchObject({ waiting: [], ofSyncJob: true });
    await walk(task, "approvals", [item("1"), item("2"), item("3", "43"), item("4")]);
    expect(await waitingFor(task, entry)).toMatchObject({ waiting: ["2", "4"], ofSyncJob: true });
    await walk(task, "approvals", [item("1"), item("4")]);
    expect(await waitingFor(task, entry)).toMatchObject({ waiting: ["4"] });
    await walk(task, "approvals", [item("1")]);
    expect(await waitingFor(task, entry)).toMatchObject({ waiting: [] });
  });

  it("are all of the repository where their claimant is unknown", async () => {
    const task = taskOf("unjoined");
    const entry = await startAfter(task, nothing);
    await walk(task, "approvals", [item("2"), item("3", "43")]);
    const deps = partsFor({ unknown: "syncJobId" });
    expect(await waitingFor(task, entry, deps)).toMatchObject({ waiting: ["2", "3"], ofSyncJob: false });
  });

  it("are those whose claimant cannot be read where none of its own waits", async () => {
    const task = taskOf("unread");
    const entry = await startAfter(task, nothing);
    const unread = { ...item("2"), syncJobId: undefined, unread: ["syncJobId"] };
    await walk(task, "approvals", [unread, item("3", "43")]);
    expect(await waitingFor(task, entry)).toMatchObject({ waiting: ["2"], ofSyncJob: false });
    await walk(task, "approvals", [unread, item("3", "43"), item("4")]);
    expect(await waitingFor(task, entry)).toMatchObject({ waiting: ["4"], ofSyncJob: true });
  });

  it("are not looked for when the start of the run is not long ago", async () => {
    const task = taskOf("young");
    const entry = await startAfter(task, nothing);
    await walk(task, "approvals", [item("2")]);
    const nowMs = entry.sentAtMs ?? 0;
    expect(await approvalsSince(task, partsFor(), { entry, follow, nowMs })).toBeUndefined();
  });

  it("are not known, and hold up no start, when the approvals cannot be read", async () => {
    const task = taskOf("unreadable");
    const sinceMs = await redisTimeMs(store);
    for (const list of ["activities", "conflictDetails"] as const) await walk(task, list, []);
    expect((await takeBaseline(task, partsFor(), { sinceMs, follow })).isTaken).toBe(false);
    await book.failWalk(feedOf(task, "approvals"), "server: 500", { beganAtMs: 0, waitMs: 0 });
    const { baseline, isTaken, lacks } = await takeBaseline(task, partsFor(), { sinceMs, follow });
    expect([isTaken, lacks, baseline.approvals]).toEqual([true, ["approvals"], undefined]);
    await journal.claim(task.id, "me");
    await journal.beginSending(task, "me", { startByMs: task.startByMs, baseline: writeBaseline(baseline) });
    const entry = await journal.claim(task.id, "me");
    expect(await waitingFor(task, entry)).toMatchObject({ waiting: [], unseenWhy: "were not read before it" });
    // Somebody reads them all the same, or nobody would notice when they can be read again.
    expect(await book.waiting(feedOf(task, "approvals"), await redisTimeMs(store))).toBe(1);
  });
});
