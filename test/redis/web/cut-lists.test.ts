// What pages and the API leave out where there is much: they say so, and their links have the rest.
import { expect, it } from "vitest";
import { listNames } from "../../../src/model/feed.ts";
import { Changes } from "../../../src/store/changes.ts";
import { FeedStore } from "../../../src/store/feed-store.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { type WebFixture, webForTest } from "../../support/web-fixture.ts";
import { setOfStory } from "../../support/web-story.ts";

const places = Array.from({ length: 101 }, (_, index) => `p${String(index).padStart(3, "0")}`);
const set = setOfStory(Object.fromEntries(places.map((name) => [name, { endings: [], more: { repository: name } }])));
const last = places.at(-1) ?? "";
const webOf = () => webForTest({ story: {}, set });

const textOf = (page: string) => page.replace(/<[^>]+>/g, " ").replace(/\s+/g, " ");

/** Counts open conflicts of a repository, as a walk does. */
async function walk(feeds: FeedStore, repository: string, open: number): Promise<void> {
  const feed = { service: "main", repository, list: "conflictDetails" } as const;
  const totals = new Map([["all", open], ...(open === 0 ? [] : [["job 42", open] as const])]);
  await feeds.keepKnowledge(feed, "{}");
  await feeds.endWalk(feed, { startedAtMs: 1, count: open, whole: true, totals });
}

it("shows what is open in the only list that was read, of however many", async () => {
  const web = await webOf();
  await walk(new FeedStore(web.store), last, 3);
  const get = async (path: string) => JSON.parse(await (await web.ask(`/api/v1${path}`)).text());
  const open = { items: [{ repository: last, syncJobId: "42", open: 3 }], listsLeftOut: 0 };
  expect(await get("/conflicts")).toMatchObject(open);
  expect((await get("/feeds")).items).toMatchObject([{ repository: last, list: "conflictDetails" }]);
  const page = await (await web.ask("/feeds")).text();
  expect(textOf(page)).toContain(`conflictDetails of main, repository ${last}`);
});

it("tells how many lists it leaves out, of all but those with something open", async () => {
  const web = await webOf();
  const feeds = new FeedStore(web.store);
  const all = places.flatMap((repository) => listNames.map((list) => ({ service: "main", repository, list })));
  await Promise.all(all.map((feed) => feeds.keepKnowledge(feed, "{}")));
  await walk(feeds, last, 3);
  await feeds.failWalk({ service: "main", repository: last, list: "masks" }, "it is locked", {
    beganAtMs: 0,
    waitMs: 0,
  });
  const get = async (path: string) => JSON.parse(await (await web.ask(`/api/v1${path}`)).text());
  expect(await get("/conflicts")).toMatchObject({ items: [{ repository: last }], listsLeftOut: 0 });
  expect(await get("/approvals")).toMatchObject({ items: [], listsLeftOut: 1 });
  const { items, listsLeftOut } = await get("/feeds");
  expect([items.length, listsLeftOut]).toEqual([600, 6]);
  const headerOf = async (path: string) => (await web.ask(`/api/v1${path}`)).headers.get("syncline-lists-left-out");
  const paths = ["feeds?format=csv", "feeds?format=ndjson", "approvals?format=csv"].map((path) => `/${path}`);
  expect(await Promise.all(paths.map(headerOf))).toEqual(["6", "6", "1"]);
  expect(await Promise.all(["/feeds", "/conflicts?format=csv"].map(headerOf))).toEqual([null, null]);
  expect(items.slice(0, 2)).toMatchObject([{ list: "conflictDetails" }, { failure: "it is locked" }]);
  expect(textOf(await (await web.ask("/feeds")).text())).toMatch(/600 lists .* 6 more were read and are not shown/);
});

it("says that more may be new than the five thousand items that it looks at", async () => {
  const web = await webOf();
  const feeds = new FeedStore(web.store);
  const facts = { syncJobId: "42", startedAtMs: 1, finished: true, succeeded: true, label: undefined };
  const ids = Array.from({ length: 5_001 }, (_, index) => `c${index}`);
  const items = ids.map((id) => ({ id, fingerprint: id, ...facts }));
  const feed = { service: "main", repository: last, list: "conflictDetails" } as const;
  await feeds.takeIn(feed, { generation: 0 }, { items, sinceSeq: 0 });
  await walk(feeds, last, items.length);
  const cut = { newSinceYesterday: 5_000, isNewSinceYesterdayAtLeast: true };
  for (const list of ["feeds", "conflicts"])
    expect(JSON.parse(await (await web.ask(`/api/v1/${list}`)).text()).items).toMatchObject([cut]);
  expect(textOf(await (await web.ask("/feeds")).text()).match(/ 5000\+ /g)).toHaveLength(2);
  const path = `/api/v1/feeds/main/${last}/conflictDetails/items?limit=1000`;
  const newest = JSON.parse(await (await web.ask(path)).text());
  expect([newest.items.length, newest.isAll]).toEqual([1_000, false]);
});

/** The rows of an audit's exports, by the links of its page. */
async function exportsOf(web: WebFixture, path: string) {
  const page = await (await web.ask(path)).text();
  const links = page.matchAll(/href="([^"]+)" download="audit/g).map(([, href = ""]) => href.replaceAll("&amp;", "&"));
  const [csv, ndjson] = await Promise.all(
    [...links].map(async (href) => {
      const answer = await web.ask(href);
      expect([href, answer.status]).toEqual([href, 200]);
      return (await answer.text()).trim().split("\n");
    }),
  );
  const names = (ndjson ?? []).map((line) => JSON.parse(line).policy);
  expect(csv?.length).toBe(names.length + 1);
  return { names, text: textOf(page) };
}

it("exports the rows of an audit whose filter is a part of a name", async () => {
  const web = await webOf();
  const all = await exportsOf(web, "/audit?policy=P09");
  expect(all.names).toEqual(places.slice(90, 100));
  const one = await exportsOf(web, "/audit?policy=p042&from=2026-02-28");
  expect(one.names).toEqual(["p042"]);
});

it("says which rows an audit of more than a hundred policies exports", async () => {
  const web = await webOf();
  const first = await exportsOf(web, "/audit");
  expect(first.names).toEqual(places.slice(0, 100));
  expect(first.text).toContain("Export of policies 1 to 100 of 101");
  const last = await exportsOf(web, "/audit?page=7");
  expect(last.names).toEqual(places.slice(90));
  expect(last.text).toContain("Export of policies 91 to 101 of 101");
});

it("links all changes that are kept where a page does not show them", async () => {
  const web = await webOf();
  const changes = new Changes(web.store);
  const change = { actor: "ana", what: "pause", subject: "policy p001", before: null, after: null, reason: null };
  await Promise.all(Array.from({ length: 1_001 }, () => changes.add(change)));
  const page = await (await web.ask("/changes")).text();
  const [, href = ""] = /The newest 200; .*href="(\/api[^"]+)"/.exec(page) ?? [];
  expect(JSON.parse(await (await web.ask(href)).text()).items).toHaveLength(1_001);
  const isAll = async (limit: number) =>
    JSON.parse(await (await web.ask(`/api/v1/changes?limit=${limit}`)).text()).isAll;
  expect([await isAll(1_000), await isAll(1_001)]).toEqual([false, true]);
  const lines = await web.ask("/api/v1/changes?limit=1000&format=ndjson");
  expect(lines.headers.get("syncline-is-all")).toBe("false");
});

/** Writes slots of a policy, its last ones by default, each with a task of so many sync jobs. */
async function writeSlots(
  { store }: WebFixture,
  policy: string,
  slots: number,
  syncJobs: number,
  { everyMs = 3_600_000, beganMs = (Math.floor(Date.now() / 3_600_000) - slots - 1) * 3_600_000 } = {},
): Promise<void> {
  const ledger = new SlotLedger(store);
  const targets = Array.from({ length: syncJobs }, (_, index) => `${index + 1}`);
  const started = { state: "started", detail: "", kind: "run", targets } as const;
  const records = Array.from({ length: slots }, (_, index) => ({ slotMs: beganMs + index * everyMs, ...started }));
  await ledger.openWatermarks([{ policy, schedule: "every hour" }], beganMs - 1);
  const plan = { expectedWatermarkMs: beganMs - 1, newWatermarkMs: records.at(-1)?.slotMs ?? beganMs, records };
  await ledger.record([{ policy, ...plan, tasks: [] }]);
}

it("shows sixty slots of a policy with ten sync jobs, and says when it shows fewer", async () => {
  const web = await webOf();
  await writeSlots(web, "p001", 61, 10);
  await writeSlots(web, "p002", 61, 100);
  await writeSlots(web, "p005", 60, 10);
  const read = async (name: string) => {
    const { slots, isAll } = JSON.parse(await (await web.ask(`/api/v1/policies/${name}`)).text());
    return [slots.length, isAll];
  };
  const pageOf = async (name: string) => textOf(await (await web.ask(`/policies/${name}`)).text());
  expect(await read("p001")).toEqual([60, false]);
  expect(await read("p005")).toEqual([60, true]);
  expect(await pageOf("p001")).not.toContain("only the newest");
  expect(await read("p002")).toEqual([20, false]);
  expect(await pageOf("p002")).toContain("only the newest 20 slots, as each has many tasks");
});

it("draws all slots of a day up to five hundred, and links how many more there are", async () => {
  const web = await webOf();
  const yesterdayMs = (Math.floor(Date.now() / 86_400_000) - 1) * 86_400_000;
  await writeSlots(web, "p004", 602, 1, { everyMs: 60_000, beganMs: yesterdayMs });
  const date = new Date(yesterdayMs).toISOString().slice(0, 10);
  const page = await (await web.ask(`/policies/p004/days/${date}`)).text();
  expect(page.match(/class="bar /g)).toHaveLength(500);
  const [said = ""] = /500 slots, .*/.exec(page) ?? [];
  expect(textOf(said)).toMatch(/^500 slots, the newest of the day, and 102 more: the API has them; /);
  const [, href = ""] = /href="([^"]+)"/.exec(said) ?? [];
  const { items } = JSON.parse(await (await web.ask(href.replaceAll("&amp;", "&"))).text());
  const oldest = new Date(yesterdayMs).toISOString();
  expect([items.length, items[0].slot, items.at(-1).slot]).toEqual([
    102,
    oldest.replace("00:00:00", "01:41:00"),
    oldest,
  ]);
});

it("says how many tasks of a slot it leaves out, and how many the API has", async () => {
  const web = await webOf();
  await writeSlots(web, "p003", 1, 102);
  const [{ slot }] = JSON.parse(await (await web.ask("/api/v1/policies/p003")).text()).slots;
  const page = textOf(await (await web.ask(`/policies/p003/slots/${slot}`)).text());
  expect(page).toContain("and 2 more tasks; the API has up to 1,000");
});

it("keeps a label that is one of many, and says that it lists some", async () => {
  const names = Array.from({ length: 202 }, (_, index) => `s${index}`);
  const labelled = names.map((store) => [store, { endings: [], more: { labels: { store } } }] as const);
  const web = await webForTest({ story: {}, set: setOfStory(Object.fromEntries(labelled)) });
  const list = await (await web.ask("/policies?label=store%3Ds99")).text();
  expect(list).toMatch(/<option value="store=s99" selected/);
  expect(list).toContain("and 1 more: ?label=NAME=VALUE");
});

it("cuts policies alone on the first page: a list that cannot be read stands there", async () => {
  const story = Object.fromEntries(places.map((name) => [name, { endings: ["failed"] as const }] as const));
  const web = await webForTest({ story });
  const feed = { service: "main", repository: "HR", list: "activities" } as const;
  await new FeedStore(web.store).failWalk(feed, "it is locked", { beganAtMs: 0, waitMs: 0 });
  const page = textOf(await (await web.ask("/")).text());
  expect(page).toContain("list activities of main, repository HR");
  expect(page).toContain("and 1 more: all policies, worst first");
});

it("shows a policy's change by hand behind a thousand newer ones", async () => {
  const web = await webOf();
  await writeSlots(web, "p006", 2, 1);
  const changes = new Changes(web.store);
  const change = { what: "pause", before: null, after: null, reason: null };
  await changes.add({ ...change, actor: "zoe", subject: "policy p006" });
  const newer = { ...change, actor: "ana", subject: "policy p001" };
  await Promise.all(Array.from({ length: 1_000 }, () => changes.add(newer)));
  expect(textOf(await (await web.ask("/policies/p006")).text())).toContain("pause by zoe");
});
