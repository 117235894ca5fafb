// The followed lists: open conflicts and approvals per sync job, how old each reading is, and the
// newest items of one list.
import { html } from "hono/html";
import type { Feed } from "../../model/feed.ts";
import type { FeedsView, OpenItems, readFeedItems } from "../../queries/feeds.ts";
import { showFeed } from "../../queries/service-words.ts";
import { type Html, mark, tag } from "./marks.ts";
import { nothing, section, table, tookText, when } from "./parts.ts";

/** How many items the page of a list shows. */
export const itemsShown = 100;
const openShown = 200;

/** The address of a list's page; `~`: the repository that the service chooses. */
function feedPath({ service, repository, list }: Feed): string {
  return `/feeds/${[service, repository ?? "~", list].map(encodeURIComponent).join("/")}`;
}

/** Shows what is open, and the lists. */
export function feedsPage({ nowMs, lines, leftOut, open }: FeedsView): Html {
  const rows = lines.map(({ note, fresh, whole }) => {
    const {
      feed,
      count,
      walkEndedAtMs,
      walkTookMs,
      failure,
      failingSinceMs,
      costlyWalks,
      shapeChange,
      shapeChangedAtMs,
    } = note;
    const state =
      failure !== undefined
        ? tag("bad", "cross", "unreadable")
        : whole === undefined
          ? mark("ok", "read")
          : tag("warn", "clock", "read whole");
    const notes = [
      failure && html`since ${when(failingSinceMs, nowMs)}: ${failure}`,
      whole && html`all of it, ${costlyWalks} times in a row: ${whole}`,
      shapeChange && html`fields changed ${when(shapeChangedAtMs, nowMs)}: ${shapeChange}`,
    ].filter((words) => words !== undefined);
    return [
      state,
      html`<a class="name" href="${feedPath(feed)}">${showFeed(feed)}</a>${notes.map((words) => html`<span class="under">${words}</span>`)}`,
      `${count}`,
      freshText(fresh),
      when(walkEndedAtMs, nowMs),
      tookText(walkTookMs),
      when(note.wholeWalkBeganAtMs, nowMs),
    ];
  });
  const columns = [
    ...(["state", ["list", "wide"], ["items", "num"], ["new in 24h", "num"], "last read", ["took", "num"]] as const),
    "last read whole",
  ];
  const none = "Nothing has been read yet: a list is read while a run or a poll waits for it.";
  const cut =
    leftOut.length === 0
      ? ""
      : html`<p class="notice">${tag("warn", "bar", "not all")} ${lines.length} lists are looked into, first those that cannot be read or have something open; ${leftOut.length} more were read and are not shown.</p>`;
  return html`<h1>Feeds</h1>${cut}
${section("open", "Open at the services", openTable(open, nowMs))}
${section("lists", "Lists", table("Followed lists", columns, rows, { none }))}`;
}

function freshText({ count, isMore }: OpenItems["fresh"]): string {
  return `${count}${isMore ? "+" : ""}`;
}

function openTable(open: readonly OpenItems[], nowMs: number): Html {
  const rows = open
    .slice(0, openShown)
    .map((one) => [
      one.list === "approvals" ? tag("warn", "bar", "approvals") : mark("conflicts"),
      one.syncJobId === undefined
        ? html`<span class="none">not said</span>`
        : html`<span class="name">${one.syncJobId}</span>`,
      html`<a href="${feedPath(one)}">${showFeed(one)}</a>`,
      `${one.open}`,
      one.fresh.count === 0 && !one.fresh.isMore ? nothing : freshText(one.fresh),
      when(one.oldestMs, nowMs),
      when(one.atMs, nowMs),
    ]);
  const columns = [
    ...(["open", "sync job", ["list", "wide"], ["number", "num"], ["new in 24h", "num"], "oldest, at least"] as const),
    "counted",
  ];
  const none = "No conflict and no approval is known to be open.";
  const more =
    open.length > openShown ? html`<p class="quiet">The ${openShown} with most; the API has ${open.length}.</p>` : "";
  return html`${table("Open conflicts and approvals, most first", columns, rows, { none })}${more}`;
}

/** Shows the newest items of a list. */
export function feedPage(feed: Feed, items: Awaited<ReturnType<typeof readFeedItems>>, nowMs: number): Html {
  const rows = items.map(({ id, syncJobId, label, finished, succeeded, startedAtMs, seenAtMs }) => [
    when(seenAtMs, nowMs),
    html`<code>${id}</code>`,
    syncJobId ?? nothing,
    finished === undefined
      ? nothing
      : finished
        ? succeeded === false
          ? mark("failed")
          : mark("succeeded", "finished")
        : mark("started", "goes on"),
    when(startedAtMs, nowMs),
    label ?? nothing,
  ]);
  const columns = ["first seen", "id", "sync job", "state", "began", ["label", "wide"]] as const;
  const all = table("Items, newest first", columns, rows, { none: "Nothing of this list is kept." });
  return html`<p class="crumbs"><a href="/feeds">Feeds</a></p><h1>${showFeed(feed)}</h1>
<p class="quiet">As the mapping reads them; newest first, at most ${itemsShown}.</p>${all}`;
}
