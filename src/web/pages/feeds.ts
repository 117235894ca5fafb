// The followed lists: open conflicts and approvals per sync job, how old each reading is, and the
// newest items of one list.
import { html } from "hono/html";
import type { Feed } from "../../model/feed.ts";
import type { FeedsView, OpenItems, readFeedItems } from "../../queries/feeds.ts";
import { showFeed } from "../../queries/service-words.ts";
import { type Html, mark, tag } from "./marks.ts";
import { nothing, table, tookText, when } from "./parts.ts";

/** How many items the page of a list shows. */
export const itemsShown = 100;
const openShown = 200;

/** The address of a list's page; `~`: the repository that the service chooses. */
function feedPath({ service, repository, list }: Feed): string {
  return `/feeds/${[service, repository ?? "~", list].map(encodeURIComponent).join("/")}`;
}

/** Shows what is open, and the lists. */
export function feedsPage({ nowMs, lines, open }: FeedsView): Html {
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
      failure === undefined
        ? whole === undefined
          ? mark("ok", "read")
          : tag("warn", "clock", "read whole")
        : tag("bad", "cross", "unreadable");
    const notes = [
      ...(failure === undefined
        ? []
        : [html`<span class="under">since ${when(failingSinceMs, nowMs)}: ${failure}</span>`]),
      ...(whole === undefined
        ? []
        : [html`<span class="under">all of it, ${costlyWalks} times in a row: ${whole}</span>`]),
      ...(shapeChange === undefined
        ? []
        : [html`<span class="under">fields changed ${when(shapeChangedAtMs, nowMs)}: ${shapeChange}</span>`]),
    ];
    return [
      state,
      html`<a class="name" href="${feedPath(feed)}">${showFeed(feed)}</a>${notes}`,
      `${count}`,
      `${fresh.count}${fresh.isMore ? "+" : ""}`,
      when(walkEndedAtMs, nowMs),
      tookText(walkTookMs),
      when(note.wholeSinceMs, nowMs),
    ];
  });
  const columns = [
    { label: "state" },
    { label: "list", isWide: true as const },
    { label: "items", isNumber: true as const },
    { label: "new in 24h", isNumber: true as const },
    { label: "last read" },
    { label: "took", isNumber: true as const },
    { label: "last read whole" },
  ];
  const lists =
    rows.length === 0
      ? html`<p class="none">Nothing has been read yet: a list is read while a run or a poll waits for it.</p>`
      : table("Followed lists", columns, rows);
  return html`<h1>Feeds</h1>
<section aria-labelledby="open"><h2 id="open">Open at the services</h2>${openTable(open, nowMs)}</section>
<section aria-labelledby="lists"><h2 id="lists">Lists</h2>${lists}</section>`;
}

function openTable(open: readonly OpenItems[], nowMs: number): Html {
  if (open.length === 0) return html`<p class="none">No conflict and no approval is known to be open.</p>`;
  const rows = open
    .slice(0, openShown)
    .map((one) => [
      one.list === "approvals" ? tag("warn", "bar", "approvals") : mark("conflicts"),
      one.syncJobId === undefined
        ? html`<span class="none">not said</span>`
        : html`<span class="name">${one.syncJobId}</span>`,
      html`<a href="${feedPath(one)}">${showFeed(one)}</a>`,
      `${one.open}`,
      one.fresh === 0 ? nothing : `${one.fresh}`,
      when(one.oldestMs, nowMs),
      when(one.atMs, nowMs),
    ]);
  const columns = [
    { label: "open" },
    { label: "sync job" },
    { label: "list", isWide: true as const },
    { label: "number", isNumber: true as const },
    { label: "new in 24h", isNumber: true as const },
    { label: "oldest, at least" },
    { label: "counted" },
  ];
  const more = open.length > openShown ? html`<p class="quiet">The ${openShown} with most; the API has all.</p>` : "";
  return html`${table("Open conflicts and approvals, most first", columns, rows)}${more}`;
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
  const columns = [
    { label: "first seen" },
    { label: "id" },
    { label: "sync job" },
    { label: "state" },
    { label: "began" },
    { label: "label", isWide: true as const },
  ];
  const all =
    rows.length === 0
      ? html`<p class="none">Nothing of this list is kept.</p>`
      : html`<p class="quiet">As the mapping reads them; newest first, at most ${itemsShown}.</p>${table("Items, newest first", columns, rows)}`;
  return html`<p class="crumbs"><a href="/feeds">Feeds</a></p><h1>${showFeed(feed)}</h1>${all}`;
}
