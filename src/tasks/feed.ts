// A feed: one list of one service that somebody follows. Its walk travels through the queue like a task.
import * as z from "zod";
import { isJsonObject } from "../core/json.ts";
import { listNames } from "../core/list-name.ts";
import { hashText } from "../core/stable-hash.ts";

const feedWalkSchema = z.strictObject({
  v: z.literal(1),
  kind: z.literal("feed-walk"),
  service: z.string().min(1),
  repository: z.string().nullable(),
  list: z.enum(listNames),
});

/** The walk of a feed, as it stands in the queue: one per feed, whoever waits for it. `repository` null: the service's default. */
export type FeedWalk = Readonly<z.infer<typeof feedWalkSchema>>;

/** Which feed: service, repository and list. */
export type Feed = Pick<FeedWalk, "service" | "repository" | "list">;

/** Tells the walk of a feed from a task. */
export function isFeedWalk(value: unknown): value is FeedWalk {
  // The kind first: every task comes by here, and a schema that does not fit is a dear answer.
  return isJsonObject(value) && value["kind"] === "feed-walk" && feedWalkSchema.safeParse(value).success;
}

/** A feed's name in Redis and in the queue: readable at the front, unique by a hash of all three parts. */
export function feedId(feed: Feed): string {
  return `${feed.list}-${hashText(JSON.stringify([feed.service, feed.repository, feed.list]))}`;
}
