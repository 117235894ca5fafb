// What the feeds knew before a run and what they show since. Called by run.ts; reads the feed book, never the service.
import * as z from "zod";
import { isJsonObject } from "../core/json.ts";
import type { ListName } from "../core/list-name.ts";
import { refuseNewer } from "../core/newer-version.ts";
import type { FeedStatus } from "../store/feed-book.ts";
import type { SeenItem } from "../store/seen-item.ts";
import type { StartEntry } from "../store/start-entry.ts";
import type { Feed } from "../tasks/feed.ts";
import type { Task } from "../tasks/task.ts";
import { type Attribution, attributeTo, surelyBeforeMs } from "./attribution.ts";
import type { WorkParts } from "./parts.ts";

const baselineSchema = z.object({
  activities: z.int().nullable(),
  conflictDetails: z.int().nullable(),
  conflictsKnown: z.int().exactOptional(),
  conflictsBefore: z.object({ of: z.enum(["syncJob", "repository"]), count: z.int() }).exactOptional(),
  approvals: z.int().exactOptional(),
});

/**
 * Up to where each feed was known before the request; null: it could not be read in time. `conflictsKnown`: where that is so of the
 * conflicts, up to where they had been read at some time. `conflictsBefore`: how many conflicts there
 * were, where a walk had seen them all. `approvals`: absent where nobody read them.
 */
export type Baseline = Readonly<z.infer<typeof baselineSchema>>;

/** Nothing was known. */
const emptyBaseline: Baseline = { activities: null, conflictDetails: null };

const followed = ["activities", "conflictDetails"] as const satisfies readonly ListName[];
/** A waiter that dies stops costing walks after this time; more than two of the longest sleeps of one that lives. */
const waiterForMs = 150_000;

/** The feed of a task's repository. */
export function feedOf(task: Task, list: ListName): Feed {
  return { service: task.service, repository: task.repository, list };
}

/** Says that this task waits for both feeds, and makes sure that somebody reads them. */
export async function follow(task: Task, parts: WorkParts, options: { nowMs: number; hurry: boolean }): Promise<void> {
  for (const list of followed) await waitForFeed(feedOf(task, list), task, parts, options);
}

/** Says that this task waits for a feed, and makes sure that somebody reads it. */
export async function waitForFeed(
  feed: Feed,
  task: Task,
  parts: WorkParts,
  { nowMs, hurry }: { nowMs: number; hurry: boolean },
): Promise<void> {
  await parts.book.waitFor(feed, task.id, { nowMs, untilMs: nowMs + waiterForMs });
  await parts.read(feed, { hurry });
}

/** Says that this task waits no more. */
export async function unfollow(task: Task, parts: WorkParts): Promise<void> {
  for (const list of [...followed, "approvals"] as const) await parts.book.leave(feedOf(task, list), task.id);
}

/** Where both feeds stand, counting only walks that began after this instant; null for a feed without such a walk. */
export async function baselineSince(task: Task, parts: WorkParts, sinceMs: number): Promise<Baseline> {
  const [activities, conflictDetails] = await Promise.all(
    followed.map((list) => parts.book.status(feedOf(task, list))),
  );
  const conflicts = seqSince(conflictDetails, sinceMs);
  const known = conflicts === null ? { conflictsKnown: conflictDetails?.seq ?? 0 } : {};
  return { activities: seqSince(activities, sinceMs), conflictDetails: conflicts, ...known };
}

/** A baseline as it stands in the journal. */
export function writeBaseline(baseline: Baseline): string {
  return JSON.stringify({ v: 1, ...baseline });
}

/** Reads a baseline from the journal; what cannot be read is empty. @throws NewerVersionError when a newer version wrote it. */
export function parseBaseline(text: string | undefined): Baseline {
  if (text === undefined || text === "") return emptyBaseline;
  const value: unknown = JSON.parse(text);
  refuseNewer("baseline", isJsonObject(value) ? value["v"] : undefined);
  const parsed = baselineSchema.safeParse(value);
  return parsed.success ? parsed.data : emptyBaseline;
}

/** What appeared since a baseline. `ours`: the activities of the sync job that this start left. */
export interface Appeared extends Attribution {
  readonly activities: FeedStatus;
  readonly conflictDetails: FeedStatus;
  /** True when the mapping says whose an activity is and whether it is final. */
  readonly attributable: boolean;
  /** True when an activity of the sync job appeared since the baseline that could be of this start, however far apart the clocks are. */
  readonly syncJobSeen: boolean;
  /** True when anything at all appeared in the activities since the baseline. */
  readonly grew: boolean;
  /** Conflicts that appeared since the baseline, of this sync job where the mapping says so; undefined when nobody can say. */
  readonly newConflicts: number | undefined;
  /** Conflicts that may be older than the start, since they were not read right before it. */
  readonly perhapsNewConflicts: number;
}

/** Reads what appeared since a baseline, and whose it is. */
export async function appearedSince(task: Task, parts: WorkParts, entry: StartEntry): Promise<Appeared> {
  const baseline = parseBaseline(entry.baseline);
  const reader = parts.itemReader(feedOf(task, "activities"));
  const conflictReader = parts.itemReader(feedOf(task, "conflictDetails"));
  const [activities, conflictDetails] = await Promise.all([
    readSince(feedOf(task, "activities"), parts.book, baseline.activities ?? entry.knownSeq),
    readSince(feedOf(task, "conflictDetails"), parts.book, baseline.conflictDetails ?? baseline.conflictsKnown),
  ]);
  const hasBaseline = baseline.activities !== null;
  const began = hasBaseline ? activities.items : activities.items.filter(isNoOlderThan(sentAtMsOf(entry)));
  const conflicts = conflictReader?.knows("syncJobId")
    ? conflictDetails.items.filter(isOf(task))
    : conflictDetails.items;
  return {
    activities: activities.status,
    conflictDetails: conflictDetails.status,
    ...(await attribute(task, parts, { entry, activities: began.filter(isOf(task)) })),
    attributable:
      (hasBaseline || (entry.knownSeq !== undefined && (reader?.knows("startedAt") ?? false))) &&
      (reader?.knows("syncJobId") ?? false) &&
      (reader?.knows("finished") ?? false),
    syncJobSeen: activities.items.filter(isOf(task)).some(couldBeginAfter(sentAtMsOf(entry) - surelyBeforeMs)),
    grew: began.length > 0,
    ...countNew(baseline, conflicts.length),
  };
}

/** None since the last reading, however old that is, means none since the start; some may be older. */
function countNew(
  { conflictDetails, conflictsKnown }: Baseline,
  count: number,
): Pick<Appeared, "newConflicts" | "perhapsNewConflicts"> {
  if (conflictDetails !== null) return { newConflicts: count, perhapsNewConflicts: 0 };
  const isNone = conflictsKnown !== undefined && count === 0;
  return { newConflicts: isNone ? 0 : undefined, perhapsNewConflicts: count };
}

/**
 * A feed and what was discovered in it after this number, both of one moment: the status is read first, and what is newer than it does
 * not count yet. Otherwise a walk that ends in between would be known as ended, and what it found would not.
 */
async function readSince(
  feed: Feed,
  book: WorkParts["book"],
  seq: number | undefined,
): Promise<{ status: FeedStatus; items: readonly SeenItem[] }> {
  const status = await book.status(feed);
  const items = seq === undefined ? [] : await book.discoveredSince(feed, seq);
  return { status, items: items.filter(({ firstSeq }) => firstSeq <= status.seq) };
}

function couldBeginAfter(instantMs: number): (item: SeenItem) => boolean {
  return ({ startedAtMs = instantMs }) => startedAtMs >= instantMs;
}

/**
 * Where no walk came right before the start, all that appeared may be older than it: by days, when nobody had read the feed for days.
 * Then only what says that it began after the permission counts. No allowance for clocks: when in doubt, it is not ours.
 */
function isNoOlderThan(sentAtMs: number): (item: SeenItem) => boolean {
  return ({ startedAtMs }) => startedAtMs !== undefined && startedAtMs >= sentAtMs;
}

function sentAtMsOf({ sentAtMs, claimedAtMs }: StartEntry): number {
  return sentAtMs ?? claimedAtMs;
}

async function attribute(
  task: Task,
  parts: WorkParts,
  { entry, activities }: { entry: StartEntry; activities: readonly SeenItem[] },
): Promise<Attribution> {
  if (activities.length === 0)
    return { ours: [], mayBeOurs: [], mayBeginUntilMs: 0, confidence: undefined, others: 0, rivals: 0 };
  const attributed = await parts.journal.attribute(task, activities);
  const sentAtMs = sentAtMsOf(entry);
  const start = {
    taskId: task.id,
    sentAtMs,
    decidedAtMs: decidedAtMs(entry, parts.timing.verifyForMs),
    isAnswered: entry.answeredAtMs !== undefined && entry.lost === undefined,
  };
  return attributeTo(start, activities, attributed);
}

/**
 * Until when the service can have accepted the request, the newest of several. That it was found without an answer comes before a later
 * confirmation; and the death of a worker may be noticed hours later, while its request was under way no longer than another one waits for the answer.
 */
function decidedAtMs(entry: StartEntry, verifyForMs: number): number {
  const { lost, sends, lastSentAtMs = sentAtMsOf(entry), answeredAtMs = lastSentAtMs } = entry;
  // Whatever is noted of a missing answer is of the first one.
  if (sends > 1) return Math.min(answeredAtMs, lastSentAtMs + verifyForMs);
  if (lost?.atMs === undefined) return answeredAtMs;
  return lost.kind === "crash" ? Math.min(lost.atMs, lastSentAtMs + verifyForMs) : lost.atMs;
}

function isOf(task: Task): (item: SeenItem) => boolean {
  return (item) => item.syncJobId === task.target;
}

function seqSince(status: FeedStatus | undefined, sinceMs: number): number | null {
  return status?.walkStartedAtMs !== undefined && status.walkStartedAtMs >= sinceMs ? status.seq : null;
}
