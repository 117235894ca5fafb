// The operations about followed lists: what was read, and what is open. Listed by operations.ts.
import * as z from "zod";
import { toIso } from "../../core/instant.ts";
import { type Feed, type ListName, listNames } from "../../model/feed.ts";
import { feedsOf, type OpenItems, readFeedItems, readFeeds } from "../../queries/feeds.ts";
import type { QueryContext } from "../../queries/query-context.ts";
import { notFound } from "../problem.ts";
import {
  type ApiOperation,
  cutTo,
  isAllOfLimit,
  nameOf,
  type OperationRequest,
  operation,
  pages,
} from "./operation.ts";
import * as schemas from "./schemas.ts";

/** The list of these names. @throws WebError when no policy of the caller may follow it. */
export function feedOf({ set }: QueryContext, { service, repository, list }: Record<keyof Feed, string>): Feed {
  const feed = feedsOf(set).find(
    (one) => one.service === service && (one.repository ?? "~") === repository && one.list === list,
  );
  if (feed !== undefined) return feed;
  throw notFound(`no policy follows ${list} of ${service}, repository ${repository}`, "/api/v1/feeds lists them");
}

/** An answer about lists, of which there may be too many. */
function ofLists(item: z.ZodType): z.ZodType {
  const description =
    "lists that were read, and that this answer leaves out: there are too many; as NDJSON or CSV in the header Syncline-Lists-Left-Out, unless 0";
  return z.object({ items: z.array(item), listsLeftOut: z.int().meta({ description }) });
}

/** Lists and what is open in them. */
export const feedOperations: readonly ApiOperation[] = [
  operation({
    path: "/feeds",
    name: "listFeeds",
    summary: "The followed lists: how old their reading is, what is new since yesterday",
    answer: ofLists(schemas.feedSchema),
    isList: true,
    read: async ({ context, cache }) => {
      const { lines, leftOut } = await cache.of("feeds", context, readFeeds);
      const items = lines.map(({ note, fresh, whole = null }) => ({
        ...note.feed,
        items: note.count,
        newSinceYesterday: fresh.count,
        isNewSinceYesterdayAtLeast: fresh.isMore,
        lastRead: toIso(note.walkEndedAtMs),
        tookMs: note.walkTookMs ?? null,
        lastReadWhole: toIso(note.wholeWalkBeganAtMs),
        readWholeBecause: whole,
        failingSince: toIso(note.failingSinceMs),
        failure: note.failure ?? null,
        fieldsChanged: toIso(note.shapeChangedAtMs),
        fieldChanges: note.shapeChange ?? null,
      }));
      return { items, listsLeftOut: leftOut.length };
    },
  }),
  operation({
    path: "/feeds/{service}/{repository}/{list}/items",
    name: "listFeedItems",
    summary: "The newest items of a list as the mapping reads them; repository `~`: the service's default",
    in: z.strictObject({
      service: nameOf.service,
      repository: nameOf.repository,
      list: z.enum(listNames),
    }),
    query: z.strictObject({ limit: pages.limit }),
    answer: z.object({ items: z.array(schemas.feedItemSchema), isAll: isAllOfLimit }),
    isList: true,
    read: async ({ context }, { limit, ...feed }) => {
      const found = await readFeedItems(context, feedOf(context, feed), limit + 1);
      const toAnswer = (item: (typeof found)[number]) => ({
        ...item,
        firstSeen: toIso(item.seenAtMs),
        started: toIso(item.startedAtMs),
      });
      return cutTo(found.map(toAnswer), limit);
    },
  }),
  openOperation("/conflicts", "listConflicts", "Open conflicts per sync job, most first", "conflictDetails"),
  openOperation("/approvals", "listApprovals", "Open approvals per sync job, most first", "approvals"),
];

function openOperation(path: string, name: string, summary: string, list: ListName & OpenItems["list"]): ApiOperation {
  const read = async ({ context, cache }: OperationRequest) => {
    const { open, leftOut } = await cache.of("feeds", context, readFeeds);
    const items = open.filter((one) => one.list === list);
    return {
      items: items.map(({ service, repository, syncJobId = null, open: count, fresh, oldestMs, atMs }) => ({
        ...{ service, repository, syncJobId, open: count },
        ...{ newSinceYesterday: fresh.count, isNewSinceYesterdayAtLeast: fresh.isMore },
        ...{ oldestSinceAtLeast: toIso(oldestMs), counted: toIso(atMs) },
      })),
      listsLeftOut: leftOut.filter((one) => one.list === list).length,
    };
  };
  return operation({ path, name, summary, answer: ofLists(schemas.openSchema), isList: true, read });
}
