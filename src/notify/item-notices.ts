// Makes the notices about new items of a feed, with what the mapping extracts and nothing else.
// Pure; called by app/create-consumers.ts.
import { cutText, toPlainText } from "../core/plain-text.ts";
import { hashText } from "../core/stable-hash.ts";
import { type Feed, feedId, type ItemFacts } from "../model/feed.ts";
import type { Notice } from "../model/notice.ts";

/** A new item, and its place in the order of discovery. */
export interface NewItem extends ItemFacts {
  readonly firstSeq: number;
  readonly seenAtMs: number | undefined;
}

/** The most items that a notice names: this keeps its data under 16 KiB. */
const itemsNamedMax = 20;
/** The most items of one walk that notices name; `count` counts them all. */
const itemsPerWalkMax = 10_000;
const namedInTitleMax = 3;
const charactersMax = { id: 100, label: 80, syncJobId: 40, labelInTitle: 60, title: 300 };

/** Notices about these items in order, a few each. The same items give the same ids. */
export function itemNotices(feed: Feed, items: readonly NewItem[], nowMs: number): Notice[] {
  const notices: Notice[] = [];
  const named = items.slice(0, itemsPerWalkMax);
  const leftOut = items.length - named.length;
  for (let from = 0; from < named.length; from += itemsNamedMax) {
    const part = named.slice(from, from + itemsNamedMax);
    const data = {
      list: feed.list,
      repository: feed.repository,
      count: items.length,
      first: from + 1,
      items: part.map(toData),
      ...(leftOut === 0 ? {} : { leftOut }),
    };
    notices.push({
      v: 1,
      id: `items-${hashText(JSON.stringify([feedId(feed), part.map(({ firstSeq, id }) => [firstSeq, id])]), 32)}`,
      kind: "items",
      at: new Date(part.at(-1)?.seenAtMs ?? nowMs).toISOString(),
      orderKey: feedId(feed),
      policy: null,
      service: feed.service,
      title: titleOf(feed, part, { from, count: items.length }),
      data,
    });
  }
  return notices;
}

function titleOf(
  { list, repository }: Feed,
  part: readonly NewItem[],
  { from, count }: { from: number; count: number },
) {
  const where = `${list}${repository === null ? "" : ` of ${toPlainText(repository, charactersMax.labelInTitle)}`}`;
  const names = part
    .slice(0, namedInTitleMax)
    .map(({ id, label }) => toPlainText(label ?? id, charactersMax.labelInTitle));
  const which = from === 0 ? "" : `, from number ${from + 1}`;
  const more = part.length > namedInTitleMax ? ", …" : "";
  return cutText(`${where}: ${count} new${which} (${names.join(", ")}${more})`, charactersMax.title);
}

function toData({ id, label, syncJobId, startedAtMs, finished, succeeded }: NewItem): Record<string, string | boolean> {
  return {
    id: toPlainText(id, charactersMax.id),
    ...(label === undefined ? {} : { label: toPlainText(label, charactersMax.label) }),
    ...(syncJobId === undefined ? {} : { syncJobId: toPlainText(syncJobId, charactersMax.syncJobId) }),
    ...(startedAtMs === undefined ? {} : { startedAt: new Date(startedAtMs).toISOString() }),
    ...(finished === undefined ? {} : { finished }),
    ...(succeeded === undefined ? {} : { succeeded }),
  };
}
