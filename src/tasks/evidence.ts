// Evidence: where the feeds stood before a run, what has appeared since, and which of it belongs to
// the run. Called by run.ts and verify.ts; reads the FeedStore, never the service.
import * as z from "zod";
import { isJsonObject } from "../core/json.ts";
import type { ListName } from "../core/list-name.ts";
import { refuseNewer } from "../core/newer-version.ts";
import type { Feed } from "../model/feed.ts";
import type { Task } from "../model/task.ts";
import type { SeenItem } from "../store/feed-mirror.ts";
import type { FeedStatus } from "../store/feed-store.ts";
import type { StartEntry } from "../store/start-entry.ts";
import { type Attribution, attributeTo, surelyBeforeMs } from "./attribution.ts";
import type { FollowedLists, RunDependencies } from "./contracts.ts";

const baselineSchema = z.object({
  activities: z.int().nullable(),
  conflictDetails: z.int().nullable(),
  conflictsKnown: z.int().exactOptional(),
  conflictsBefore: z.object({ of: z.enum(["syncJob", "repository"]), count: z.int() }).exactOptional(),
  approvals: z.int().exactOptional(),
});

/**
 * The sequence of each feed before the request; null: it was not read in time. `conflictsKnown`:
 * then that of the last reading, however old. `conflictsBefore`: their number, after a whole walk.
 */
export type Baseline = Readonly<z.infer<typeof baselineSchema>>;

/** No feed was read. */
const emptyBaseline: Baseline = { activities: null, conflictDetails: null };

const followed = ["activities", "conflictDetails"] as const satisfies readonly ListName[];
/** A dead waiter causes walks for this long: more than two of the longest sleeps of a live one. */
const waiterForMs = 150_000;

/** The feed of a task's repository. */
export function feedOf(task: Task, list: ListName): Feed {
  return { service: task.service, repository: task.repository, list };
}

/** Registers this task as a waiter of both feeds, and has them read. */
export async function follow(
  task: Task,
  deps: FollowedLists,
  options: { nowMs: number; hurry: boolean },
): Promise<void> {
  for (const list of followed) await waitForFeed(feedOf(task, list), task, deps, options);
}

/** Registers this task as a waiter of a feed, and has it read. */
export async function waitForFeed(
  feed: Feed,
  task: Task,
  deps: FollowedLists,
  { nowMs, hurry }: { nowMs: number; hurry: boolean },
): Promise<void> {
  await deps.feeds.waitFor(feed, task.id, { nowMs, untilMs: nowMs + waiterForMs });
  await deps.requestWalk(feed, { hurry });
}

/** Removes this task from the waiters. */
export async function unfollow(task: Task, deps: Pick<FollowedLists, "feeds">): Promise<void> {
  for (const list of [...followed, "approvals"] as const) await deps.feeds.leave(feedOf(task, list), task.id);
}

/** The sequence of both feeds, from walks that began after `sinceMs`. */
export async function baselineSince(
  task: Task,
  deps: Pick<FollowedLists, "feeds">,
  sinceMs: number,
): Promise<Baseline> {
  const [activities, conflictDetails] = await Promise.all(
    followed.map((list) => deps.feeds.status(feedOf(task, list))),
  );
  const conflicts = seqSince(conflictDetails, sinceMs);
  const known = conflicts === null ? { conflictsKnown: conflictDetails?.seq ?? 0 } : {};
  return { activities: seqSince(activities, sinceMs), conflictDetails: conflicts, ...known };
}

/** Writes a baseline for the journal. */
export function writeBaseline(baseline: Baseline): string {
  return JSON.stringify({ v: 1, ...baseline });
}

/** Reads a baseline of the journal; unreadable text is empty. @throws NewerVersionError */
export function parseBaseline(text: string | undefined): Baseline {
  if (text === undefined || text === "") return emptyBaseline;
  const value: unknown = JSON.parse(text);
  refuseNewer("baseline", isJsonObject(value) ? value["v"] : undefined);
  const parsed = baselineSchema.safeParse(value);
  return parsed.success ? parsed.data : emptyBaseline;
}

/** What appeared since a baseline. `ours`: the activities of this start. */
export interface Appeared extends Attribution {
  readonly activities: FeedStatus;
  readonly conflictDetails: FeedStatus;
  /** True when the mapping names an activity's sync job and whether it is final. */
  readonly attributable: boolean;
  /** An activity of the sync job appeared that could be of this start, whatever the clocks say. */
  readonly syncJobSeen: boolean;
  /** True when any activity appeared since the baseline. */
  readonly grew: boolean;
  /**
   * Conflicts since the baseline, of this sync job where the mapping says so; undefined: unknown.
   */
  readonly newConflicts: number | undefined;
  /** Conflicts that may be older than the start: no walk came right before it. */
  readonly perhapsNewConflicts: number;
}

/** Reads what appeared since a baseline, and attributes it. */
export async function appearedSince(task: Task, deps: RunDependencies, entry: StartEntry): Promise<Appeared> {
  const baseline = parseBaseline(entry.baseline);
  const mapper = deps.itemMapper(feedOf(task, "activities"));
  const conflictMapper = deps.itemMapper(feedOf(task, "conflictDetails"));
  const [activities, conflictDetails] = await Promise.all([
    readSince(feedOf(task, "activities"), deps.feeds, baseline.activities ?? entry.knownSeq),
    readSince(feedOf(task, "conflictDetails"), deps.feeds, baseline.conflictDetails ?? baseline.conflictsKnown),
  ]);
  const hasBaseline = baseline.activities !== null;
  const began = hasBaseline ? activities.items : activities.items.filter(isNoOlderThan(sentAtMsOf(entry)));
  const conflicts = conflictMapper?.knows("syncJobId")
    ? conflictDetails.items.filter(isOf(task))
    : conflictDetails.items;
  return {
    activities: activities.status,
    conflictDetails: conflictDetails.status,
    ...(await attribute(task, deps, { entry, activities: began.filter(isOf(task)) })),
    attributable:
      (hasBaseline || (entry.knownSeq !== undefined && (mapper?.knows("startedAt") ?? false))) &&
      (mapper?.knows("syncJobId") ?? false) &&
      (mapper?.knows("finished") ?? false),
    syncJobSeen: activities.items.filter(isOf(task)).some(couldBeginAfter(sentAtMsOf(entry) - surelyBeforeMs)),
    grew: began.length > 0,
    ...countNew(baseline, conflicts.length),
  };
}

/** No new conflict since the last reading means none since the start; others may be older. */
function countNew(
  { conflictDetails, conflictsKnown }: Baseline,
  count: number,
): Pick<Appeared, "newConflicts" | "perhapsNewConflicts"> {
  if (conflictDetails !== null) return { newConflicts: count, perhapsNewConflicts: 0 };
  const isNone = conflictsKnown !== undefined && count === 0;
  return { newConflicts: isNone ? 0 : undefined, perhapsNewConflicts: count };
}

/**
 * A feed and what was discovered after a sequence. The status comes first: otherwise a walk could
 * count as ended without its items.
 */
async function readSince(
  feed: Feed,
  feeds: FollowedLists["feeds"],
  seq: number | undefined,
): Promise<{ status: FeedStatus; items: readonly SeenItem[] }> {
  const status = await feeds.status(feed);
  const items = seq === undefined ? [] : await feeds.discoveredSince(feed, seq);
  return { status, items: items.filter(({ firstSeq }) => firstSeq <= status.seq) };
}

function couldBeginAfter(instantMs: number): (item: SeenItem) => boolean {
  return ({ startedAtMs = instantMs }) => startedAtMs >= instantMs;
}

/** Without a walk right before the start, only an item that says that it began after it counts. */
function isNoOlderThan(sentAtMs: number): (item: SeenItem) => boolean {
  return ({ startedAtMs }) => startedAtMs !== undefined && startedAtMs >= sentAtMs;
}

function sentAtMsOf({ sentAtMs, claimedAtMs }: StartEntry): number {
  return sentAtMs ?? claimedAtMs;
}

async function attribute(
  task: Task,
  deps: RunDependencies,
  { entry, activities }: { entry: StartEntry; activities: readonly SeenItem[] },
): Promise<Attribution> {
  if (activities.length === 0)
    return { ours: [], mayBeOurs: [], mayBeginUntilMs: 0, confidence: undefined, others: 0, rivals: 0 };
  const attributed = await deps.journal.attribute(task, activities);
  const sentAtMs = sentAtMsOf(entry);
  const start = {
    taskId: task.id,
    sentAtMs,
    decidedAtMs: decidedAtMs(entry, deps.timing.verifyForMs),
    isAnswered: entry.answeredAtMs !== undefined && entry.doubt === undefined,
  };
  return attributeTo(start, activities, attributed);
}

/**
 * Until when the service can have accepted the newest request. A crash may be noticed hours later,
 * but its request took no longer than the wait for an answer.
 */
function decidedAtMs(entry: StartEntry, verifyForMs: number): number {
  const { doubt, sends, lastSentAtMs = sentAtMsOf(entry), answeredAtMs = lastSentAtMs } = entry;
  // A noted doubt is about the first request.
  if (sends > 1) return Math.min(answeredAtMs, lastSentAtMs + verifyForMs);
  if (doubt?.atMs === undefined) return answeredAtMs;
  return doubt.kind === "crash" ? Math.min(doubt.atMs, lastSentAtMs + verifyForMs) : doubt.atMs;
}

function isOf(task: Task): (item: SeenItem) => boolean {
  return (item) => item.syncJobId === task.target;
}

function seqSince(status: FeedStatus | undefined, sinceMs: number): number | null {
  return status?.readSinceMs !== undefined && status.readSinceMs >= sinceMs ? status.seq : null;
}
