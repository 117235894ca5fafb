// A feed: one list of one service that somebody follows. Its walk travels through the queue like a task.
import * as z from "zod";
import { isJsonObject } from "../core/json.ts";
import { listNames } from "../core/list-name.ts";
import { parseVersioned } from "../core/newer-version.ts";
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

/** What is kept of one item. Texts are what the mapping made of it; `fingerprint` changes when any field changes. */
export interface ItemFacts {
  readonly id: string;
  readonly fingerprint: string;
  readonly syncJobId: string | undefined;
  /** When it began, milliseconds UTC by the service's clock. */
  readonly startedAtMs: number | undefined;
  readonly finished: boolean | undefined;
  readonly succeeded: boolean | undefined;
  readonly label: string | undefined;
}

/** Tells the walk of a feed, of whatever version, from a task. */
export function isFeedWalk(value: unknown): boolean {
  return isJsonObject(value) && value["kind"] === "feed-walk";
}

/**
 * Reads the walk of a feed from the queue.
 * @throws NewerVersionError for one of a newer version; ZodError when it is none.
 */
export function parseFeedWalk(value: unknown): FeedWalk {
  return parseVersioned("feed walk", feedWalkSchema, value);
}

/** A feed's name in Redis and in the queue: readable at the front, unique by a hash of all three parts. */
export function feedId(feed: Feed): string {
  return `${feed.list}-${hashText(JSON.stringify([feed.service, feed.repository, feed.list]))}`;
}
