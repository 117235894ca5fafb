// Adds the pages to the application: asks the queries and hands what they find to the templates.
import type { Hono } from "hono";
import { html } from "hono/html";
import { selectorOf } from "../../model/label.ts";
import { reaches, type Scope } from "../../model/scope.ts";
import { readAttention } from "../../queries/attention.ts";
import { policiesNamed, readAudits } from "../../queries/audit-policy.ts";
import { comingSlots, slotsWithin } from "../../queries/coming-slots.ts";
import { failedSpans } from "../../queries/failed.ts";
import { readFeedItems, readFeeds } from "../../queries/feeds.ts";
import { commonZone } from "../../queries/next-day.ts";
import type { QueryContext } from "../../queries/query-context.ts";
import {
  readChangeOf,
  readChanges,
  readChangesOf,
  readFailedOf,
  readFailedTasks,
  readHandRuns,
  readLine,
  readNewestOutcomes,
  readNowMs,
  readPausesInForce,
  readStoryAt,
  readTaskAt,
  readUsualRuns,
} from "../../queries/records.ts";
import { showFeed } from "../../queries/service-words.ts";
import { readDaySlots, readPolicyDays, readSlotStrips, readSlots } from "../../queries/slot-strips.ts";
import { mayPauseLabel } from "../acts.ts";
import { hasSession } from "../admission.ts";
import { type AnswerCache, heldBriefly, heldLong, readTimeAhead } from "../answer-cache.ts";
import { feedOf } from "../api/feed-operations.ts";
import { instant, policyOf } from "../api/operation.ts";
import { type Caller, checkWhole } from "../identity.ts";
import { notFound } from "../problem.ts";
import { Representation, send } from "../representation.ts";
import type { WebEnv } from "../web-env.ts";
import { addActPages, doneLine } from "./acts.ts";
import { apiPage } from "./api.ts";
import { auditPage, auditRowsMax, readAuditFilter, spanOf } from "./audit.ts";
import { changesPage, changesShown } from "./changes.ts";
import { failedPage } from "./failed.ts";
import { feedPage, feedsPage, itemsShown } from "./feeds.ts";
import { handRunsPage, handRunsShown } from "./hand-runs.ts";
import { type Frame, page } from "./layout.ts";
import type { Html } from "./marks.ts";
import { frequentFrom, hoursAhead, instantAt, nextDayPage, nextDayToCome } from "./next-day.ts";
import { nowPage, nowTitle } from "./now.ts";
import { readParameters, wrongParameters } from "./parameters.ts";
import { choicesOf, policiesPage, readFilter, selectLines, stripSlots } from "./policies.ts";
import { policyPage, policySlots } from "./policy.ts";
import { type RunView, runPage } from "./run.ts";
import { servicesPage } from "./services.ts";
import { dayPage, daySlotsMax, daySpans } from "./slots.ts";

const newestShown = 10;

/** What a page is asked for. */
interface PageRequest {
  readonly context: QueryContext;
  readonly cache: AnswerCache;
  readonly param: (name: string) => string;
  readonly query: Readonly<Record<string, string>>;
  /** Whether the caller may do what needs a scope. */
  readonly may: (needed: Scope) => boolean;
  readonly caller: Caller;
}

/** A page without its frame. */
interface Page extends Omit<Frame, "caller" | "canSignOut"> {
  readonly content: Html;
  /** What was asked is being worked out: the page asks again by itself. */
  readonly isToCome?: true;
  /** What of the address makes no sense for what is known. */
  readonly wrong?: readonly string[];
}

type Pages = Readonly<Record<string, (request: PageRequest) => Promise<Page>>>;

/** What tells of the policies of the caller's view alone. */
const pagesOfPolicies: Pages = {
  "/": now,
  "/policies": policies,
  "/policies/:name": policy,
  "/policies/:name/by-hand": (asked) => handRuns(asked, policyOf(asked.context, asked.param("name")).name),
  "/policies/:name/days/:date": day,
  "/policies/:name/slots/:instant": slot,
  "/tasks/:id": task,
  "/failed": failed,
  "/next": nextDay,
  "/audit": audit,
  "/services": services,
};

/** What tells of more: not for callers who are held to labels. */
const wholePages: Pages = {
  "/by-hand": (asked) => handRuns(asked, undefined),
  "/feeds": feeds,
  "/feeds/:service/:repository/:list": feed,
  "/changes": changes,
};

/** Adds the pages. */
export function addPages(app: Hono<WebEnv>, cache: AnswerCache): void {
  const api: Page = { title: "API", content: apiPage(), isStatic: true };
  const pages: Pages = { ...pagesOfPolicies, ...wholePages, "/api": async () => api };
  for (const [path, read] of Object.entries(pages)) {
    app.get(path, async (c) => {
      const param = (name: string) => c.req.param(name) ?? "";
      const { caller, context } = c.get("acting");
      if (wholePages[path] !== undefined) checkWhole(caller);
      const may = (needed: Scope) => reaches(caller.scope, needed);
      const { query, wrong } = readParameters(path, c.req.query());
      const found = await read({ context, cache, param, query, may, caller });
      const { content, isToCome, wrong: alsoWrong = [], ...frame } = found;
      if (isToCome) c.header("refresh", "2");
      const id = c.req.query("done");
      // The page asks on, and the record of what a form did stays as it is.
      const change = (of: string) => {
        const key = `done ${JSON.stringify([caller.name, of])}`;
        return cache.of(key, context, (at) => readChangeOf(at, caller.name, of), heldLong);
      };
      const told = { policies: context.set.policies, isAgain: c.req.query("again") !== undefined };
      const done = id === undefined ? "" : doneLine(await change(id), told);
      const notUsed = wrongParameters([...wrong, ...alsoWrong]);
      const canSignOut = hasSession(c);
      const show = async () => {
        const shown = await page({ ...frame, caller, canSignOut }, html`${done}${notUsed}${content}`);
        return new Representation(`${shown}`, "text/html; charset=UTF-8");
      };
      const name = `page ${JSON.stringify([caller.name, caller.scope, caller.labels, canSignOut, frame.title])}`;
      const isUsual = id === undefined && notUsed.length === 0;
      // What the templates make is an object, whatever its type says.
      return send(c, await (isUsual ? cache.made(Object(content), name, show) : show()));
    });
  }
  addActPages(app);
}

async function now({ context, cache, may, caller }: PageRequest): Promise<Page> {
  const attention = await cache.of("attention", context, readAttention);
  const outcomes = await cache.of("newest", context, (at) => readNewestOutcomes(at, attention.lines, newestShown));
  const mayOperate = may("operate");
  // Those of one view see the same: what is made is kept with it.
  const reach = { mayOperate, seesLists: caller.labels === undefined, seesAll: !context.view.isNarrowed };
  const content = cache.made(attention, `now ${mayOperate}`, () => nowPage(attention, outcomes, reach));
  return { title: cache.made(attention, "title", () => nowTitle(attention)), here: "now", content };
}

async function policies({ context, cache, query, may, caller }: PageRequest): Promise<Page> {
  const attention = await cache.of("attention", context, readAttention);
  const filter = readFilter(query);
  const asked = JSON.stringify(query);
  const selected = cache.made(attention, `selected ${asked}`, () => selectLines(attention.lines, filter));
  const names = selected.shown.map(({ policy: { name } }) => name);
  const strips = await cache.of(`strips ${names.join()}`, context, (at) => readSlotStrips(at, names, stripSlots));
  const isByLabels = caller.labels !== undefined;
  // Who is held to labels pauses what has these, too.
  const selector = selectorOf([caller.labels ?? [], filter.label || []].flat().flatMap((one) => one.split(",")));
  const subject = { scope: selector === "" ? "all" : "label", name: selector } as const;
  // The filter takes the name of a label alone, and a pause does not.
  const isSubject = selector === "" || selector.split(",").every((one) => one.includes("="));
  const mayPause = isByLabels ? mayPauseLabel(caller, selector) : may("admin") && !context.view.isNarrowed;
  const { policies: all } = context.set;
  const show = () => {
    const choices = cache.made(all, "choices", () => choicesOf(all));
    const more = { strips, choices, isByLabels, pausable: mayPause && isSubject ? subject : undefined };
    return policiesPage(attention, filter, selected, more);
  };
  const content = cache.made(attention, `policies ${caller.scope} ${asked}`, show);
  return { title: "Policies", here: "policies", content };
}

async function policy({ context, cache, param, query, may }: PageRequest): Promise<Page> {
  const about = policyOf(context, param("name"));
  const { name } = about;
  const span = daySpans.find((one) => String(one) === query["days"]) ?? 365;
  const view = await cache.of(`policy ${name} ${span}`, context, async (at) => {
    const nowMs = await readNowMs(at);
    const [line, { slots, isAll }, days, { runs: byHand }, changed] = await Promise.all([
      readLine(at, about),
      readSlots(at, name, { count: policySlots.past }),
      readPolicyDays(at, about, span),
      readHandRuns(at, name, policySlots.byHand),
      readChangesOf(at, about),
    ]);
    const coming = comingSlots(about, nowMs, policySlots.coming);
    const followers = at.set.policies.filter(({ after }) => after?.policy === name).map((one) => one.name);
    const showsActive = at.set.services.get(about.service)?.syncJob !== undefined;
    const known = { line, nowMs, days, byHand, followers, showsActive, coming };
    const isCut = !isAll && slots.length < policySlots.past;
    return { ...known, changes: changed, slots: slots.toReversed(), isCut };
  });
  return { title: name, here: "policies", content: drawn(cache, view, may, policyPage) };
}

async function day({ context, cache, param, may }: PageRequest): Promise<Page> {
  const about = policyOf(context, param("name"));
  const date = param("date");
  const view = await cache.of(`day ${about.name} ${date}`, context, async (at) => {
    const found = await readDaySlots(at, about, date, daySlotsMax);
    if (found === undefined) throw notFound(`${date.slice(0, 40)} is no day`, "write one such as 2026-11-22");
    const [line, changed] = await Promise.all([readLine(at, about), readChangesOf(at, about)]);
    return { ...found, line, date, changes: changed, nowMs: await readNowMs(at) };
  });
  return { title: `${about.name}, ${date}`, here: "policies", content: drawn(cache, view, may, dayPage) };
}

async function slot({ context, cache, param, may }: PageRequest): Promise<Page> {
  const about = policyOf(context, param("name"));
  const instantMs = parseInstant(param("instant"));
  const view = await cache.of(`slot ${about.name} ${instantMs}`, context, async (at) => {
    const [story, usual, nowMs] = await Promise.all([
      readStoryAt(at, about, instantMs),
      readUsualRuns(at, about.name),
      readNowMs(at),
    ]);
    return { policy: about, story, usual, nowMs, ...(await readFailedOf(at, story)) };
  });
  return {
    title: `${about.name}, ${view.story.slot ?? "no slot"}`,
    here: "policies",
    content: drawn(cache, view, may, runPage),
  };
}

async function task({ context, cache, param, may }: PageRequest): Promise<Page> {
  const id = param("id");
  const view = await cache.of(`task ${id}`, context, async (at): Promise<RunView> => {
    const story = await readTaskAt(at, id);
    if (story === undefined) throw notFound(`nothing is known of a task ${id}`, "its outcome may be kept no longer");
    const about = at.set.policies.find(({ name }) => name === story.policy);
    const usual = await readUsualRuns(at, story.policy);
    return { policy: about, story, usual, nowMs: await readNowMs(at), ...(await readFailedOf(at, story)) };
  });
  return { title: view.story.tasks[0]?.name ?? id, here: "policies", content: drawn(cache, view, may, runPage) };
}

async function handRuns({ context, cache, may }: PageRequest, name: string | undefined): Promise<Page> {
  const view = await cache.of(`by hand ${name ?? "-"}`, context, async (at) => ({
    runs: (await readHandRuns(at, name, handRunsShown)).runs,
    nowMs: await readNowMs(at),
  }));
  const content = drawn(cache, view, may, ({ runs, nowMs }, mayOperate) =>
    handRunsPage(runs, name, { nowMs, mayOperate }),
  );
  return { title: "By hand", here: "policies", content };
}

async function nextDay({ context, cache, query }: PageRequest): Promise<Page> {
  const frame = { title: "Next 24 hours", here: "next" } as const;
  const day = await cache.soon(readTimeAhead(cache, context, hoursAhead));
  if (day === undefined) return { ...frame, content: nextDayToCome(context.set.policies.length), isToCome: true };
  const { at: clock = "" } = query;
  const fromMs = instantAt(day, clock);
  const { cutMs, rows } = day.line;
  const list = () => {
    const within = (beginMs: number, endMs: number) =>
      slotsWithin(context.set.policies, beginMs - 1, endMs - 1, frequentFrom);
    if (fromMs !== undefined) return within(fromMs, fromMs + 3_600_000);
    if (cutMs === undefined) return { slots: rows, isCut: false };
    // Of the slots just before the cut some have no row.
    const later = within(Math.max(cutMs - 60_000, day.nowMs + 1), day.range.toMs);
    const key = ({ policy, slotMs }: (typeof later.slots)[number]) => `${slotMs} ${policy.name}`;
    const known = new Set(rows.map(key));
    return { ...later, slots: [...rows, ...later.slots.filter((slot) => !known.has(key(slot)))] };
  };
  const pauses = await cache.of("pauses", context, readPausesInForce);
  const show = () => nextDayPage(day, { ...cache.made(day, `slots ${fromMs}`, list), fromMs, pauses });
  const wrong = clock === "" || fromMs !== undefined ? [] : [`at=${clock} is skipped by the clocks of ${day.timezone}`];
  const content = fromMs === undefined ? cache.made(day, "page", show) : show();
  return { ...frame, wrong, content };
}

async function feeds({ context, cache, may }: PageRequest): Promise<Page> {
  const view = await cache.of("feeds", context, readFeeds);
  return { title: "Feeds", here: "feeds", content: drawn(cache, view, may, feedsPage) };
}

async function feed({ context, cache, param, may }: PageRequest): Promise<Page> {
  const about = feedOf(context, { service: param("service"), repository: param("repository"), list: param("list") });
  const view = await cache.of(`feed ${JSON.stringify(about)}`, context, async (at) => ({
    items: await readFeedItems(at, about, itemsShown),
    nowMs: await readNowMs(at),
  }));
  const content = drawn(cache, view, may, ({ items, nowMs }) => feedPage(about, items, nowMs));
  return { title: showFeed(about), here: "feeds", content };
}

async function audit({ context, cache, query, may }: PageRequest): Promise<Page> {
  const filter = readAuditFilter(query);
  const fitting = policiesNamed(context.set.policies, filter.policy);
  const pageCount = Math.max(1, Math.ceil(fitting.length / auditRowsMax));
  const at = Math.min(filter.page, pageCount);
  const before = (at - 1) * auditRowsMax;
  const shown = fitting.slice(before, before + auditRowsMax);
  const name = `audit ${JSON.stringify([filter, at])}`;
  const reports = await cache.of(name, context, (asked) => readAudits(asked, shown, spanOf(filter)), heldLong);
  const { from, to } = filter;
  const wrong = to !== "" && from > to ? [`from=${from} is after to=${to}: no day is between them`] : [];
  const place = { pages: pageCount, before, after: fitting[before - 1]?.name, all: fitting.length };
  const content = drawn(cache, reports, may, () => auditPage(reports, { ...filter, page: at }, place));
  return { title: "Audit", here: "audit", wrong, content };
}

async function services({ context, cache, may, caller }: PageRequest): Promise<Page> {
  const attention = await cache.of("attention", context, readAttention);
  const mayPause = may("admin") && caller.labels === undefined;
  const content = cache.made(attention, `services ${mayPause}`, () => servicesPage(attention, context, mayPause));
  return { title: "Services", here: "services", content };
}

async function failed({ context, cache, query, may }: PageRequest): Promise<Page> {
  const asked = failedSpans.find((one) => one === query["since"]);
  // A page for each span, of the same tasks.
  const read = async (at: QueryContext) => ({
    list: await cache.of("failed", at, readFailedTasks),
    nowMs: await readNowMs(at),
  });
  const view = await cache.of(`failed since ${asked}`, context, read, heldBriefly);
  const content = drawn(cache, view, may, ({ list, nowMs }, mayOperate) => {
    const seesChanges = !context.view.isNarrowed;
    return failedPage(list, { asked, seesChanges, nowMs, timezone: commonZone(context.set) }, mayOperate);
  });
  return { title: "Failed", here: "failed", content };
}

async function changes({ context, cache, may }: PageRequest): Promise<Page> {
  const view = await cache.of("changes", context, async (at) => ({
    newest: await readChanges(at, changesShown),
    nowMs: await readNowMs(at),
  }));
  const content = drawn(cache, view, may, ({ newest, nowMs }) => changesPage(newest, context, nowMs));
  return { title: "Changes", here: "changes", content };
}

/** What a page shows of a view, drawn once for all who may do the same. */
function drawn<View extends object>(
  cache: AnswerCache,
  view: View,
  may: PageRequest["may"],
  draw: (view: View, mayOperate: boolean) => Html,
): Html {
  const mayOperate = may("operate");
  return cache.made(view, `drawn ${mayOperate}`, () => draw(view, mayOperate));
}

/** @throws WebError for a text that is no instant. */
function parseInstant(text: string): number {
  const instantMs = instant.safeParse(text).data;
  if (instantMs !== undefined) return instantMs;
  throw notFound(`${text.slice(0, 40)} is no instant`, "write one such as 2026-11-22T02:30:00Z");
}
