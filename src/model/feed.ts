// A feed: one list of a repository, for which runs wait or which polls read. Its walk is a job of
// the queue.
import * as z from "zod";
import { getOrMake } from "../core/get-or-make.ts";
import { isJsonObject } from "../core/json.ts";
import { parseVersioned } from "../core/newer-version.ts";
import { hashText } from "../core/stable-hash.ts";

/** The lists that can be followed, polled and mapped. Source: service-interface §4.1 */
export const listNames = ["activities", "conflictDetails", "approvals", "triggers", "authActivities", "masks"] as const;

/** One of the six lists. */
export type ListName = (typeof listNames)[number];

/** The lists whose walks a run may wait for. */
export const awaitedLists = ["activities", "conflictDetails", "approvals"] as const satisfies readonly ListName[];

const feedWalkSchema = z.strictObject({
  v: z.literal(1),
  kind: z.literal("feed-walk"),
  service: z.string().min(1),
  repository: z.string().nullable(),
  list: z.enum(listNames),
});

/** The walk of a feed in the queue: one per feed, however many tasks wait. */
export type FeedWalk = Readonly<z.infer<typeof feedWalkSchema>>;

/** The name of a feed: service, repository and list. */
export type Feed = Pick<FeedWalk, "service" | "repository" | "list">;

/** Why a walk read the whole list. Those in `costlyReasons` are logged: they cost too much. */
export const wholeReasons = [
  "first",
  "resumed",
  "short",
  "audit",
  "wanted",
  "polled",
  "no-order",
  "order-lost",
  "links-not-kept",
  "link-expired",
  "last-page-unknown",
  "last-page-moved",
  "open-item-moved",
  "first-page-new",
  "both-ends-grew",
  "count-differs",
  "count-unreadable",
  "open-items",
] as const;

/** One of these reasons. */
export type WholeReason = (typeof wholeReasons)[number];

/** The reasons of costly walks, in the words that operators read. */
export const costlyReasons: Readonly<Partial<Record<WholeReason, string>>> = {
  "no-order": "new items may stand anywhere in it",
  "order-lost": "a new item stood at the end that does not grow",
  "links-not-kept": "its links carry a credential, so Syncline stores none to resume from",
  "link-expired": "the service does not know a link of its pages any more",
  "last-page-unknown": "no page with an item was known to resume from",
  "last-page-moved": "its last page does not begin with a known item",
  "open-item-moved": "the first item that was not finished has left its page",
  "first-page-new": "all of its first page is new",
  "both-ends-grew": "it grew at both of its ends",
  "count-differs": "the service's count shows more changes than its ends do",
  "count-unreadable": "the service does not say how many items it holds",
  "open-items": "more than ten pages hold items that the mapping does not call finished",
};

/** The facts of one item. Texts are the mapping's; `fingerprint` changes when any field changes. */
export interface ItemFacts {
  readonly id: string;
  readonly fingerprint: string;
  readonly syncJobId: string | undefined;
  /** When it began, milliseconds UTC by the service's clock. */
  readonly startedAtMs: number | undefined;
  readonly finished: boolean | undefined;
  readonly succeeded: boolean | undefined;
  readonly label: string | undefined;
  /** The facts that the mapping names and could not read of it; undefined: none. */
  readonly unread?: readonly string[] | undefined;
}

/** Tells a feed walk of any version from a task. */
export function isFeedWalk(value: unknown): boolean {
  return isJsonObject(value) && value["kind"] === "feed-walk";
}

/** Reads the walk of a feed from the queue. @throws NewerVersionError or ZodError. */
export function parseFeedWalk(value: unknown): FeedWalk {
  return parseVersioned("feed walk", feedWalkSchema, value);
}

const ids = new WeakMap<Feed, string>();

/** A feed's name in Redis and in the queue: a readable start, then a hash of all three parts. */
export function feedId(feed: Feed): string {
  const make = ({ service, repository, list }: Feed) =>
    `${list}-${hashText(JSON.stringify([service, repository, list]))}`;
  return getOrMake(ids, feed, make);
}
