import { gunzipSync } from "node:zlib";
import { expect, it, vi } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { costlyReasons } from "../../../src/model/feed.ts";
import { deletionByHand } from "../../../src/model/task.ts";
import { FeedStore } from "../../../src/store/feed-store.ts";
import { History } from "../../../src/store/history.ts";
import { keepPolicySet } from "../../../src/store/kept-policies.ts";
import { Pauses, Quarantines } from "../../../src/store/pauses.ts";
import { operations } from "../../../src/web/api/operations.ts";
import { runHere } from "../../support/commands-here.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { webForTest } from "../../support/web-fixture.ts";
import { setOfStory, smallStory } from "../../support/web-story.ts";

const web = await webForTest();
const get = async (path: string, headers: Record<string, string> = {}) => {
  const answer = await web.ask(`/api/v1${path}`, { headers });
  return { status: answer.status, headers: answer.headers, body: JSON.parse(await answer.text()) };
};

it("says how each policy is, by name and by health", async () => {
  const { body } = await get("/policies");
  expect(Object.fromEntries(body.items.map(({ name, health }: Record<string, string>) => [name, health]))).toEqual({
    approvals: "blocked",
    archive: "unknown",
    "contracts-nightly": "ok",
    deliveries: "ok",
    invoices: "failing",
    "just-added": "new",
    personnel: "conflicts",
    suspended: "paused",
  });
  for (const list of ["outcomes", "failed", "audit"]) {
    const own = await get(`/${list}?label=team%3Dfinance&limit=50`);
    expect([list, own.status, JSON.stringify(own.body.items).includes('"invoices"')]).toEqual([list, 200, true]);
    expect(JSON.stringify(own.body.items)).not.toMatch(/"policy":"(?!invoices)/);
    expect((await get(`/${list}?label=team%3Dnone`)).body.items).toEqual([]);
    expect((await get(`/${list}?label=team`)).status).toBe(400);
  }
  const failing = (await get("/policies?health=failing&label=team%3Dfinance")).body.items;
  expect(failing).toMatchObject([{ name: "invoices", inARow: 4, needsPerson: true, last: { reason: "server-error" } }]);
});

it("lists what failed since an instant, with what ended just then", async () => {
  const all = (await get("/failed")).body.items.map(({ outcome }: { outcome: Record<string, string> }) => outcome);
  const since = all[2].finishedAt;
  const later = (await get(`/failed?since=${since}`)).body.items;
  const expected = all.filter(({ finishedAt }: Record<string, string>) => (finishedAt ?? "") >= since);
  expect(later.map(({ id }: Record<string, string>) => id)).toEqual(
    expected.map(({ taskId }: Record<string, string>) => taskId),
  );
  expect(later.length).toBeLessThan(all.length);
  expect((await get("/failed?since=18:00")).body.errors).toMatchObject([{ pointer: "/since" }]);
});

it("goes through pages without a gap, and links the next one", async () => {
  const seen: string[] = [];
  let path: string | undefined = "/outcomes?policy=contracts-nightly&limit=7";
  for (let page = 0; path !== undefined && page < 20; page += 1) {
    const { body, headers } = await get(path);
    seen.push(...body.items.map(({ taskId }: Record<string, string>) => taskId));
    path = /<\/api\/v1(.*)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
    expect(path === undefined).toBe(body.next === null);
  }
  expect(seen).toHaveLength(63);
  expect(new Set(seen).size).toBe(63);
  const names = (await get("/policies?limit=3")).body;
  expect((await get(`/policies?limit=3&after=${names.next}`)).body.items[0].name).toBe("deliveries");
});

it("links the next page of what was asked, not of a name for it", async () => {
  const first = await get("/policies/contracts-nightly/slots?limit=1");
  const next = /<\/api\/v1(.*)>; rel="next"/.exec(first.headers.get("link") ?? "")?.[1] ?? "";
  const second = await get(next);
  expect([second.status, second.body.items.length]).toEqual([200, 1]);
  expect(second.body.items).not.toEqual(first.body.items);
});

it("packs what it sends by gzip where that is taken, but no events", async () => {
  // Its clock stands still: a page drawn twice says the same.
  const still = await webForTest({ clock: { ...systemClock, monotonicMs: () => 0 } });
  const ask = (path: string) => still.ask(path, { headers: { "accept-encoding": "gzip" } });
  for (const path of ["/", "/api/v1/policies", "/api/v1/outcomes?format=ndjson", "/api/v1/outcomes?format=csv"]) {
    const packed = await ask(path);
    const plain = await still.ask(path);
    expect([path, packed.headers.get("content-encoding")]).toEqual([path, "gzip"]);
    expect([path, plain.headers.get("content-encoding")]).toEqual([path, null]);
    const tag = packed.headers.get("etag") ?? "";
    expect((await still.ask(path, { headers: { "accept-encoding": "gzip", "if-none-match": tag } })).status).toBe(304);
    expect(gunzipSync(await packed.arrayBuffer()).toString()).toBe(await plain.text());
  }
  const events = await ask("/events");
  expect(events.headers.get("content-encoding")).toBeNull();
  await events.body?.cancel();
});

it("tells the story of a slot, and says when there is none", async () => {
  const { slots } = (await get("/policies/invoices?slots=1")).body;
  const story = (await get(`/slots/invoices/${slots[0].slot}`)).body;
  expect(story).toMatchObject({ isSlot: true, tasks: [{ outcome: { status: "failed", evidence: "direct" } }] });
  const between = new Date(Date.parse(slots[0].slot) + 60_000).toISOString();
  expect((await get(`/slots/invoices/${between}`)).body).toMatchObject({ isSlot: false, slot: slots[0].slot });
});

it("says what needs a person, the worst first, each with a next step", async () => {
  const { items } = (await get("/attention")).body;
  expect(items.map(({ name, state }: Record<string, string>) => [name, state])).toEqual([
    ["invoices", "failing"],
    ["archive", "unknown"],
    ["approvals", "blocked"],
    ["personnel", "conflicts"],
  ]);
  expect(items.every(({ nextStep }: Record<string, string>) => nextStep !== "")).toBe(true);
});

it("gives lists as lines of JSON and as CSV that no spreadsheet runs", async () => {
  const lines = await web.ask("/api/v1/outcomes?limit=3", { headers: { accept: "application/x-ndjson" } });
  const items = (await lines.text()).trim().split("\n");
  expect(items.map((line) => JSON.parse(line).v)).toEqual([1, 1, 1]);
  const csv = await web.ask("/api/v1/failed?limit=3", { headers: { accept: "text/csv" } });
  expect(csv.headers.get("content-type")).toContain("text/csv");
  expect((await csv.text()).split("\r\n")[0]).toBe("id,isCorrected,outcome");
  // Pages fit together, also an empty one.
  const csvOf = async (query: string) => (await web.ask(`/api/v1/outcomes?format=csv&${query}`)).text();
  const [one = "", none = ""] = await Promise.all([csvOf("limit=1"), csvOf("service=none")]);
  expect(none).toMatch(/^v,taskId,.*,offendingItems\r\n$/);
  expect(one.split("\r\n")[0]).toBe(none.trim());
  // A link's word counts, whatever its caller accepts.
  const json = await get("/outcomes?format=json&limit=3", { accept: "text/csv" });
  expect([json.headers.get("content-type"), json.body.items.length]).toEqual(["application/json", 3]);
  expect(json.body.next).toMatch(/~/);
});

it("says what is wrong with a request, where, and what to do", async () => {
  expect(await get("/outcomes?limit=0&status=fine&colour=red")).toMatchObject({
    status: 400,
    body: {
      type: "urn:syncline:problem:bad-request",
      errors: [{ pointer: "/limit" }, { pointer: "/status" }, { pointer: "/colour" }],
    },
  });
  expect((await get("/outcomes?limit=1&limit=2")).body.errors).toEqual([
    { pointer: "/limit", detail: "is given twice" },
  ]);
  expect(await get("/policies/invoice")).toMatchObject({
    status: 404,
    body: { hint: expect.stringContaining("policies") },
  });
  expect((await get("/policies?after=gone")).status).toBe(400);
  expect((await get("/nothing")).headers.get("content-type")).toBe("application/problem+json");
});

it("answers nothing anew to a caller that has it already", async () => {
  const tag = (await web.ask("/api/v1/pauses")).headers.get("etag") ?? "";
  for (const known of [tag, tag.replace("W/", ""), `"other", ${tag}`, "*"]) {
    const again = await web.ask("/api/v1/pauses", { headers: { "if-none-match": known } });
    expect([known, again.status, await again.text()]).toEqual([known, 304, ""]);
  }
  expect((await web.ask("/api/v1/pauses", { headers: { "if-none-match": '"other"' } })).status).toBe(200);
});

it("reads the pauses once for all who ask at about the same time", async () => {
  const still = await webForTest({ clock: { ...systemClock, monotonicMs: () => 0 } });
  const read = vi.spyOn(still.store.redis, "hvals");
  const answers = await Promise.all(times(20, "/api/v1/pauses").map((path) => still.ask(path)));
  expect([read.mock.calls.length, ...answers.map(({ status }) => status)]).toEqual([1, ...times(20, 200)]);
});

it("answers every operation, and describes it", async () => {
  const description = (await get("/openapi.json")).body;
  const { slots } = (await get("/policies/invoices?slots=1")).body;
  const { id } = (await get("/policies/invoices/by-hand")).body.items[0];
  for (const { path } of operations) {
    const asked = path
      .replace("services/{name}", "services/main")
      .replace("{id}", id)
      .replace("{service}/{repository}/{list}", "main/HR/conflictDetails")
      .replace("{name}", "invoices")
      .replace("{policy}", "invoices")
      .replace("{instant}", slots[0].slot);
    expect([path, (await get(asked)).status]).toEqual([path, 200]);
    const { responses } = description.paths[`/api/v1${path}`].get;
    for (const status of [200, 304, 500]) expect([path, responses[status]]).toEqual([path, expect.anything()]);
  }
});

it("lists what became of a policy's slots, of its days, and its next ones", async () => {
  const first = (await get("/policies/contracts-nightly/slots?limit=3")).body;
  expect(first.items.map(({ ending }: Record<string, string>) => ending)).toEqual(times(3, "succeeded"));
  const { slot } = first.items[1];
  const [only] = (await get(`/policies/contracts-nightly/slots?since=${slot}&until=${slot}`)).body.items;
  expect(only).toEqual(first.items[1]);
  const seen = [];
  for (let after = ""; after !== "end" && seen.length < 99; ) {
    const { items, next } = (await get(`/policies/contracts-nightly/slots?limit=10${after}`)).body;
    seen.push(...items);
    after = next === null ? "end" : `&after=${next}`;
  }
  expect(seen).toHaveLength(66);
  const days = (await get("/policies/invoices/days?days=3")).body.items;
  const failed = days.map(({ statuses }: { statuses: Record<string, number> }) => statuses["failed"] ?? 0);
  expect(failed.reduce((sum: number, count: number) => sum + count)).toBe(4);
  expect((await get("/policies/invoices/plan?count=4")).body.items).toHaveLength(4);
});

it("tells one task, also of a run by hand, and who asked for it", async () => {
  const [run] = (await get("/policies/invoices/by-hand")).body.items;
  expect(run).toMatchObject({ actor: "ana@desk", reason: "the books close today", outcome: { status: "succeeded" } });
  const story = (await get(`/tasks/${run.id}`)).body;
  expect(story).toMatchObject({ origin: "manual", policy: "invoices", tasks: [{ taskId: run.id }] });
  const [alone] = (await get("/policies/-/by-hand")).body.items;
  expect(alone).toMatchObject({ policy: "by-hand.run", target: "77" });
  expect((await get(`/tasks/${alone.id}`)).body.verdict).toContain("by hand");
  expect((await get("/tasks/invoices__run__42__1")).status).toBe(404);
});

it("plans the next hours: what starts, falls away and meets, hour by hour", async () => {
  const { services, slots, cutAt, asOf, from, to } = (await get("/plan")).body;
  const dayMs = 86_400_000;
  expect([Date.parse(asOf) - Date.parse(from) < dayMs / 24, Date.parse(to) - Date.parse(asOf)]).toEqual([true, dayMs]);
  const [main] = services;
  expect([services.length, main.hours.length, cutAt]).toEqual([1, 25, null]);
  const states = Map.groupBy(slots, ({ state }: Record<string, string>) => state);
  expect([states.get("started")?.length, states.get("skipped")?.length]).toEqual([main.slots, main.away]);
  expect([...new Set(states.get("skipped")?.map(({ policy }: Record<string, string>) => policy))]).toEqual([
    "suspended",
  ]);
  // All of them start sync job 42: the first of each instant runs, the others meet it.
  expect(main.meets).toBeGreaterThanOrEqual(main.slots * 0.7);
  expect(main.requests).toBeGreaterThan(main.slots - main.meets);
});

it("counts what is open per sync job, of the last whole reading", async () => {
  expect((await get("/conflicts")).body.items).toMatchObject([
    { service: "main", repository: "HR", syncJobId: "4711", open: 3, newSinceYesterday: 3 },
    { syncJobId: null, open: 1 },
  ]);
  const approval = { syncJobId: "42", open: 1, newSinceYesterday: 1, isNewSinceYesterdayAtLeast: false };
  expect((await get("/approvals")).body.items).toMatchObject([approval]);
});

it("tells how lists are read, and their newest items", async () => {
  const { items } = (await get("/feeds")).body;
  const feeds = new Map(items.map((item: Record<string, unknown>) => [item["list"], item]));
  expect(feeds.get("conflictDetails")).toMatchObject({ items: 5, newSinceYesterday: 5, failure: null });
  expect(feeds.get("conflictDetails")).toMatchObject({ isNewSinceYesterdayAtLeast: false });
  expect(feeds.get("approvals")).toMatchObject({ fieldChanges: expect.stringContaining("state is gone") });
  const newest = (await get("/feeds/main/HR/conflictDetails/items?limit=2")).body.items;
  expect(newest.map(({ id }: Record<string, string>) => id)).toEqual(["c5", "c4"]);
  expect((await get("/feeds/main/~/conflictDetails/items")).status).toBe(404);
});

it("says why a list is read whole from the third time in a row on, as status does", async () => {
  // Time flies, so that each request reads anew.
  let flownMs = 0;
  const clock = { ...systemClock, monotonicMs: () => (flownMs += 3_600_000) };
  const own = await webForTest({ story: {}, set: setOfStory(smallStory), clock });
  const feeds = new FeedStore(own.store);
  const feed = { service: "main", repository: "HR", list: "masks" } as const;
  await feeds.keepKnowledge(feed, "{}");
  const told = async () => {
    await feeds.endWalk(feed, { startedAtMs: 1, count: 1, whole: true, because: "no-order" });
    return JSON.parse(await (await own.ask("/api/v1/feeds")).text()).items[0].readWholeBecause;
  };
  expect([await told(), await told(), await told()]).toEqual([null, null, costlyReasons["no-order"]]);
});

it("audits what was planned, and exports it by a link", async () => {
  const { items, next } = (await get("/audit?limit=3")).body;
  expect(items.map(({ policy }: Record<string, string>) => policy)).toEqual([
    "approvals",
    "archive",
    "contracts-nightly",
  ]);
  expect(next).toBe("contracts-nightly");
  // Its story has a slot each hour, and its schedule one a night.
  expect(items[2].findings[0]).toMatchObject({ problem: "no-slot" });
  const csv = await web.ask("/api/v1/audit?policy=invoices&format=csv");
  expect([csv.headers.get("content-type"), (await csv.text()).split(",")[0]]).toEqual([
    "text/csv; charset=utf-8",
    "policy",
  ]);
  expect((await get("/outcomes?format=xml")).status).toBe(400);
  expect((await get("/declared")).body).toEqual({ items: [], next: null });
});

it("says who asks, which sinks wait, and which policies hang on a service", async () => {
  expect((await get("/me")).body).toEqual({ name: "local", scope: "read", services: null, labels: null });
  expect((await get("/services/main")).body.policies[0]).toEqual({ name: "invoices", health: "failing" });
  expect((await get("/services/none")).status).toBe(404);
  expect((await get("/sinks")).body).toEqual({ items: [] });
});

it("shows a run that ended well and is unusual below what is bad", async () => {
  const at = new Date().toISOString();
  const named = { policy: "deliveries", taskId: "deliveries__run__42__unusual", slot: at, finishedAt: at };
  const far = { durationMs: 2_820_000, unusual: ["duration" as const], usualMs: 720_000 };
  await new History(web.store).record(testOutcome({ ...named, ...far }));
  const items = async () => (await get("/attention")).body.items;
  await expect
    .poll(async () => (await items()).at(-1), { interval: 300 })
    .toMatchObject({
      ...{ name: "deliveries", state: "unusual", acknowledged: null },
      what: "unusual: sync job 42 took 47m, usually 12m",
    });
  const { body } = await get("/policies?health=ok");
  expect(body.items.find(({ name }: Record<string, string>) => name === "deliveries").unusual).toContain("took 47m");
  const page = await (await web.ask("/")).text();
  expect(page).toContain("<h1>4 things need a person</h1>");
  expect(page.replace(/<[^>]+>/g, " ").replace(/\s+/g, " ")).toMatch(/usually 12m since [^.]* worth a look Look at/);
});

it("counts what is only unusual as worth a look, not as what needs a person", async () => {
  const own = await webForTest({ story: { calm: { endings: ["ok"] } } });
  const named = { policy: "calm", taskId: "calm__run__42__unusual", finishedAt: new Date().toISOString() };
  await new History(own.store).record(
    testOutcome({ ...named, durationMs: 2_820_000, unusual: ["duration"], usualMs: 720_000 }),
  );
  const headline = async () => /<h1>.*<\/h1>/.exec(await (await own.ask("/")).text())?.[0];
  await expect.poll(headline, { interval: 300 }).toBe("<h1>Nothing needs a person, 1 thing is worth a look</h1>");
});

it("says why a policy is in quarantine, also while a person pauses it", async () => {
  const { store } = web;
  const note = "slot failed: the disk is full";
  const pause = { scope: "all", name: "", note: "ticket 7", actor: "ana@desk", untilMs: null } as const;
  await new Quarantines(store).count(
    { policy: "archive", slotMs: Date.now(), isSuccess: false, note },
    { after: 1, forMs: 3_600_000 },
  );
  await new Pauses(store).set(pause);
  await expect
    .poll(async () => (await get("/attention")).body.items[0], { interval: 300 })
    .toMatchObject({ name: "archive", state: "quarantined", what: expect.stringContaining("the disk is full") });
  const [quarantine] = await new Quarantines(store).all();
  const [policy] = (await get("/policies?health=quarantined")).body.items;
  const since = new Date(quarantine?.sinceMs ?? 0).toISOString();
  expect(policy).toMatchObject({ name: "archive", since, pause: { isQuarantine: true, since } });
  await keepPolicySet(store, setOfStory(smallStory), "host/1");
  const { prefix, url } = web.parts.context().target;
  const { out } = await runHere(["status", "archive", "--prefix", prefix, "--redis-url", url]);
  expect(out).toMatch(/\nquarantined +archive .*until .*1 slot failed; slot failed: the disk is full/);
});

it("lists the outcomes of policies that are gone, too", async () => {
  const own = await webForTest({ story: { kept: { endings: ["ok"] }, unused: { endings: [] } } });
  await new History(own.store).recordAlone(testOutcome({ policy: "retired", taskId: "retired__run__42__1" }));
  const text = await (await own.ask("/api/v1/outcomes")).text();
  expect(text).toContain('"policy":"kept"');
  expect(text).toContain('"policy":"retired"');
  const of = async (name: string) => {
    const answer = await own.ask(`/api/v1/outcomes?policy=${name}`);
    const { items = [] } = JSON.parse(await answer.text());
    return [answer.status, items.map(({ policy }: Record<string, string>) => policy)];
  };
  expect(await of("retired")).toEqual([200, ["retired"]]);
  expect(await of("by-hand.run")).toEqual([200, ["by-hand.run"]]);
  expect(await of(deletionByHand)).toEqual([200, []]);
  expect(await of("never")).toEqual([404, []]);
});

it("answers of a slot in the last hours of the year 9999, which UTC has past it", async () => {
  const dst = { gap: "next", overlap: "first" } as const;
  const west = { kind: "once", at: "9999-12-31T23:59:00", timezone: "America/New_York", dst, spreadMs: 0 } as const;
  const own = await webForTest({ story: { never: { endings: [], more: { schedule: west } } } });
  const [policy] = JSON.parse(await (await own.ask("/api/v1/policies")).text()).items;
  expect(policy).toMatchObject({ name: "never", next: "9999-12-31T23:59:59.999Z" });
});

it("lists the first deletion by hand within ten seconds", async () => {
  let passedMs = 0;
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + passedMs };
  const own = await webForTest({ story: { kept: { endings: ["ok"] } }, clock });
  const ended = async () => (await own.ask("/api/v1/outcomes")).text();
  expect(await ended()).not.toContain(deletionByHand);
  const taskId = `${deletionByHand}__delete__42__m1`;
  await new History(own.store).recordAlone(testOutcome({ policy: deletionByHand, taskId }));
  passedMs = 10_000;
  expect(await ended()).toContain(`"policy":"${deletionByHand}"`);
});

function times<Item>(count: number, item: Item): Item[] {
  return Array.from({ length: count }, () => item);
}
