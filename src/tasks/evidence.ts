// Evidence: what appeared in the feeds since a start, which of it belongs to the start, and what
// became of approvals and conflicts. Called by run.ts and verify.ts; reads the FeedStore, never the
// service.
import type { Follow } from "../config/policy-set.ts";
import { totalOfItem } from "../feeds/list-totals.ts";
import { approvalsAfterMs } from "../feeds/pace.ts";
import type { Feed } from "../model/feed.ts";
import type { Task } from "../model/task.ts";
import type { SeenItem } from "../store/feed-mirror.ts";
import type { FeedStatus } from "../store/feed-store.ts";
import { doubtOfOnlyRequest, type StartEntry, sentAtMsOf } from "../store/start-entry.ts";
import { type Attribution, attributeTo, surelyBeforeMs } from "./attribution.ts";
import { type Baseline, countConflicts, parseBaseline } from "./baseline.ts";
import { changesMax, feedOf, requestFeed } from "./followed-lists.ts";
import type { TaskEnding } from "./step.ts";
import type { FeedAccess, RunDependencies, StartDependencies } from "./step-dependencies.ts";
import { sendWithinMs } from "./timing.ts";

/** The most approvals since a start that are checked, the earliest first. */
const approvalsCheckedMax = 200;

/** What appeared since a baseline. `ours`: the activities of this start. */
export interface FeedEvidence extends Attribution {
  /** How far each of the two lists was read. */
  readonly activities: FeedStatus;
  readonly conflictDetails: FeedStatus;
  /**
   * True when the mapping names an activity's sync job and whether it is finished, and what is
   * older than the start can be told apart: by its baseline, or by sequence and `startedAt`.
   */
  readonly attributable: boolean;
  /** True when the mapping says whether an activity is finished, and which one it is. */
  readonly endsMapped: boolean;
  /** True when the activities were read right before the start. */
  readonly hasBaseline: boolean;
  /** An activity appeared that is or may be of the sync job, whatever the clocks say. */
  readonly syncJobSeen: boolean;
  /**
   * An activity appeared that is not judged and may be of this start: its sync job cannot be read,
   * or, without a baseline, it does not say that it began well before the start.
   */
  readonly unjudgedSeen: boolean;
  /** True when an activity appeared that, as far as is mapped, may be of this start. */
  readonly possibleSeen: boolean;
  /** New activities whose sync job is not mapped or cannot be read: any may be of this start. */
  readonly unnamed: readonly SeenItem[];
  /**
   * Conflicts since the baseline, of this sync job where the mapping says so; undefined: unknown.
   */
  readonly newConflicts: number | undefined;
  /**
   * More conflicts that may count: of a sync job that cannot be read, or older than the start,
   * since no walk came right before it. run.ts adds those of `returnedConflicts`.
   */
  readonly perhapsNewConflicts: number;
}

/** Reads what appeared since a baseline, and attributes it. */
export async function appearedSince(task: Task, deps: RunDependencies, entry: StartEntry): Promise<FeedEvidence> {
  const written = parseBaseline(entry.baseline);
  const activitiesSeq = written.activities ?? entry.knownSeq;
  const mapper = deps.itemMapper(feedOf(task, "activities"));
  const conflictMapper = deps.itemMapper(feedOf(task, "conflictDetails"));
  const [activities, conflictDetails] = await Promise.all([
    readSince(feedOf(task, "activities"), deps.feeds, activitiesSeq),
    readSince(feedOf(task, "conflictDetails"), deps.feeds, written.conflictDetails ?? written.conflictsKnown),
  ]);
  const baseline = withoutRestartedLists(written, {
    activities: activities.status,
    conflictDetails: conflictDetails.status,
  });
  const hasBaseline = baseline.activities !== null;
  const endsMapped = mapper?.knows("finished") ?? false;
  const isYounger = isNoOlderThan(sentAtMsOf(entry));
  const sinceStart = hasBaseline ? activities.items : activities.items.filter(isYounger);
  const isOfSyncJob = isOf(task);
  const mayBeOfSyncJob = (item: SeenItem) => isOfSyncJob(item) || isUnread(item);
  const isPossible = mapper?.knows("syncJobId") === true ? mayBeOfSyncJob : () => true;
  const mayHaveBegun = couldBeginAfter(sentAtMsOf(entry) - surelyBeforeMs);
  const isUnjudged = (item: SeenItem) =>
    hasBaseline ? isUnread(item) : mayHaveBegun(item) && isPossible(item) && (isUnread(item) || !isYounger(item));
  const isNamed = conflictMapper?.knows("syncJobId") === true;
  const conflicts = isNamed ? conflictDetails.items.filter(isOfSyncJob) : conflictDetails.items;
  const unread = isNamed ? conflictDetails.items.filter(isUnread) : [];
  return {
    activities: activities.status,
    conflictDetails: conflictDetails.status,
    ...(await ownActivities(task, deps, { entry, activities: sinceStart.filter(isOfSyncJob) })),
    attributable:
      (hasBaseline || (activitiesSeq !== undefined && (mapper?.knows("startedAt") ?? false))) &&
      (mapper?.knows("syncJobId") ?? false) &&
      endsMapped,
    endsMapped,
    hasBaseline,
    syncJobSeen: activities.items.some(mayBeOfSyncJob),
    unjudgedSeen: activities.items.some(isUnjudged),
    possibleSeen: sinceStart.some(isPossible),
    unnamed: sinceStart.filter((item) => isPossible(item) && !isOfSyncJob(item)),
    ...countNew(baseline, conflicts.length, unread.length),
  };
}

/**
 * Whether an activity under an id from before the baseline has changed since, and may be of the
 * start: a service may use an id again.
 */
export async function hasKnownChanged(task: Task, deps: RunDependencies, entry: StartEntry): Promise<boolean> {
  const { activities: seq } = parseBaseline(entry.baseline);
  if (seq === null) return false;
  const changed = await deps.feeds.changedSince(feedOf(task, "activities"), seq, changesMax);
  const isOfSyncJob = isOf(task);
  const mayHaveBegun = couldBeginAfter(sentAtMsOf(entry) - surelyBeforeMs);
  const mayBeOfStart = (item: SeenItem) => (isOfSyncJob(item) || isUnread(item)) && mayHaveBegun(item);
  return changed.length === changesMax || changed.some(mayBeOfStart);
}

/** The baseline without the sequence of a list that has begun anew since: all of it is new now. */
function withoutRestartedLists(
  { conflictsKnown, ...baseline }: Baseline,
  lists: Pick<FeedEvidence, "activities" | "conflictDetails">,
): Baseline {
  const isPresent = (seq: number | null | undefined, { beganSeq = 0 }: FeedStatus) => seq != null && seq >= beganSeq;
  return {
    ...baseline,
    activities: isPresent(baseline.activities, lists.activities) ? baseline.activities : null,
    conflictDetails: isPresent(baseline.conflictDetails, lists.conflictDetails) ? baseline.conflictDetails : null,
    ...(isPresent(conflictsKnown, lists.conflictDetails) ? { conflictsKnown } : {}),
  };
}

/** No new conflict since the last reading means none since the start; others may be older. */
function countNew(
  { conflictDetails, conflictsKnown }: Baseline,
  count: number,
  unread: number,
): Pick<FeedEvidence, "newConflicts" | "perhapsNewConflicts"> {
  if (conflictDetails !== null) return { newConflicts: count, perhapsNewConflicts: unread };
  const isNone = conflictsKnown !== undefined && count === 0;
  return { newConflicts: isNone ? 0 : undefined, perhapsNewConflicts: count + unread };
}

/**
 * A feed and what was discovered after a sequence. The status comes first: otherwise a walk could
 * count as ended without its items.
 */
async function readSince(
  feed: Feed,
  feeds: FeedAccess["feeds"],
  seq: number | undefined,
): Promise<{ status: FeedStatus; items: readonly SeenItem[] }> {
  const status = await feeds.status(feed);
  const items = seq === undefined ? [] : await feeds.discoveredSince(feed, seq);
  return { status, items: items.filter(({ firstSeq }) => firstSeq <= status.seq) };
}

function couldBeginAfter(instantMs: number): (item: SeenItem) => boolean {
  return ({ startedAtMs = instantMs }) => latestMs(startedAtMs) >= instantMs;
}

/** Without a walk right before the start, only an item that says that it began after it counts. */
function isNoOlderThan(sentAtMs: number): (item: SeenItem) => boolean {
  return ({ startedAtMs }) => startedAtMs !== undefined && latestMs(startedAtMs) >= sentAtMs;
}

/** The last instant that a time may mean: one in whole seconds means any of its second. */
function latestMs(instantMs: number): number {
  return instantMs % 1_000 === 0 ? instantMs + 999 : instantMs;
}

async function ownActivities(
  task: Task,
  deps: RunDependencies,
  { entry, activities }: { entry: StartEntry; activities: readonly SeenItem[] },
): Promise<Attribution> {
  if (activities.length === 0)
    return { ours: [], mayBeOurs: [], mayBeginUntilMs: 0, confidence: undefined, others: 0, givenAway: 0, rivals: 0 };
  const attributed = await deps.journal.attribute(task, activities);
  const sentAtMs = sentAtMsOf(entry);
  const start = {
    taskId: task.id,
    sentAtMs,
    acceptedByMs: acceptedByMs(entry, lookedForUntilMs(task, entry, deps)),
    isOnlyRequestAnswered: entry.confirmedAtMs !== undefined && entry.doubt === undefined,
  };
  return attributeTo(start, activities, attributed);
}

/**
 * Until when the service can have accepted the newest request. A crash may be noticed hours later,
 * but its request took no longer than the wait for an answer.
 */
function acceptedByMs(entry: StartEntry, untilMs: number): number {
  const { doubt, sends, lastSentAtMs = sentAtMsOf(entry), confirmedAtMs = lastSentAtMs } = entry;
  // A noted doubt may be about an earlier request.
  if (sends > 1) return Math.min(confirmedAtMs, untilMs);
  if (doubt?.atMs === undefined) return confirmedAtMs;
  return doubt.kind === "crash" ? Math.min(doubt.atMs, untilMs) : doubt.atMs;
}

/**
 * When the service has the newest request at the latest: it may leave late, and a proxy may delay
 * it until its answer is lost. Where that was not noted (after a crash, of a second request), the
 * request's time-out counts.
 */
export function receivedByMs(
  { service }: Pick<Task, "service">,
  entry: StartEntry,
  deps: Pick<StartDependencies, "service">,
): number {
  const { claimedAtMs, lastSentAtMs = claimedAtMs } = entry;
  const sentByMs = lastSentAtMs + sendWithinMs;
  const doubt = doubtOfOnlyRequest(entry);
  return doubt?.atMs !== undefined && doubt.kind !== "crash"
    ? Math.max(sentByMs, doubt.atMs)
    : sentByMs + (deps.service(service)?.requestTimeoutMs ?? 0);
}

/** The earliest end of the search for a start that got no answer. */
export function lookedForUntilMs(
  task: Task,
  entry: StartEntry,
  deps: Pick<StartDependencies, "service" | "timing">,
): number {
  const { claimedAtMs, lastSentAtMs = claimedAtMs } = entry;
  return Math.max(lastSentAtMs + deps.timing.verifyForMs, receivedByMs(task, entry, deps));
}

function isOf(task: Task): (item: SeenItem) => boolean {
  return (item) => item.syncJobId === task.target;
}

/** Whether the mapping could not read whose an item is. An item of no sync job is read. */
function isUnread({ unread }: SeenItem): boolean {
  return unread?.includes("syncJobId") === true;
}

/** Approvals that appeared since a start and were still listed at the last whole walk. */
export interface WaitingApprovals {
  /**
   * In the order of their appearance. Where none of its own waits, those whose sync job cannot be
   * read.
   */
  readonly waiting: readonly SeenItem[];
  /** True when the mapping names an approval's sync job, and all of these are of this one. */
  readonly ofSyncJob: boolean;
  /** When the walk that showed them began, milliseconds UTC by Redis. */
  readonly readAtMs: number;
  /** Why none of them can be seen: `were not read before it`; undefined: those that wait are. */
  readonly unseenWhy?: string;
}

/** The approvals that wait; undefined for a run that none can block, or not yet. */
export async function approvalsSince(
  task: Task,
  deps: FeedAccess,
  { entry, follow, nowMs }: { readonly entry: StartEntry; readonly follow: Follow; readonly nowMs: number },
): Promise<WaitingApprovals | undefined> {
  if (follow.blockedAfterMs === undefined) return undefined;
  const known = parseBaseline(entry.baseline).approvals;
  if (known === undefined) return unseen("were not read before it");
  if (nowMs - sentAtMsOf(entry) < approvalsAfterMs(follow.blockedAfterMs)) return undefined;
  const feed = feedOf(task, "approvals");
  await requestFeed(feed, task, deps, { nowMs, hurry: false });
  const { beganSeq = 0 } = await deps.feeds.status(feed);
  // Which of its approvals are older than the run is not known.
  if (known < beganSeq) return unseen("have begun anew since");
  const ofSyncJob = deps.itemMapper(feed)?.knows("syncJobId") === true;
  const appeared = await deps.feeds.discoveredSince(feed, known);
  const own = ofSyncJob ? appeared.filter(isOf(task)) : appeared;
  const perhapsOwn = ofSyncJob ? appeared.filter(isUnread) : [];
  const candidates = [...own, ...perhapsOwn].slice(0, approvalsCheckedMax);
  if (candidates.length === 0) return { waiting: [], ofSyncJob, readAtMs: 0 };
  const totals = await deps.feeds.totals(
    feed,
    candidates.map(({ id }) => totalOfItem(id)),
  );
  const listed = candidates.filter((_, index) => (totals?.counts[index] ?? 0) > 0);
  const listedOwn = listed.filter((item) => !perhapsOwn.includes(item));
  const readAtMs = totals?.atMs ?? 0;
  if (listedOwn.length > 0 || listed.length === 0) return { waiting: listedOwn, ofSyncJob, readAtMs };
  return { waiting: listed, ofSyncJob: false, readAtMs };
}

function unseen(unseenWhy: string): WaitingApprovals {
  return { waiting: [], ofSyncJob: false, readAtMs: 0, unseenWhy };
}

/** What became of the conflicts from before a run that has just ended; empty if not known. */
export async function conflictChange(
  task: Task,
  deps: FeedAccess,
  { entry, appeared, ending }: ConflictRun & { readonly ending: TaskEnding },
): Promise<Pick<TaskEnding, "goneConflicts" | "stillConflicts">> {
  // Only for a run that is over: settle.ts has waited for a walk after its end, or counts none.
  const isOver = ["succeeded", "conflicts", "failed"].includes(ending.status) && ending.newConflicts !== undefined;
  const counts = isOver ? await countsAround(task, deps, { entry, appeared }) : undefined;
  return (counts && compareConflicts(counts.before, counts.after, counts.appeared)) ?? {};
}

/**
 * How many conflicts there are beyond those from before the run and the new ones. They are back
 * under a known id, or only now known to be of the sync job. 0 where they were not counted: whether
 * one is back is then not known.
 */
export async function returnedConflicts(task: Task, deps: FeedAccess, run: ConflictRun): Promise<number> {
  const counts = await countsAround(task, deps, run);
  return counts === undefined ? 0 : Math.max(0, counts.after - counts.before - counts.appeared);
}

interface ConflictRun {
  readonly entry: StartEntry;
  readonly appeared: FeedEvidence;
}

/** The conflicts before a run, after it, and new ones; undefined unless all were counted alike. */
async function countsAround(task: Task, deps: FeedAccess, { entry, appeared }: ConflictRun) {
  const before = parseBaseline(entry.baseline).conflictsBefore;
  if (before === undefined || appeared.newConflicts === undefined) return undefined;
  const after = await countConflicts(task, deps);
  if (after?.seq !== appeared.conflictDetails.seq || after.conflicts.of !== before.of) return undefined;
  return { before: before.count, after: after.conflicts.count, appeared: appeared.newConflicts };
}

/** How many earlier conflicts are gone, and how many remain; undefined for impossible counts. */
export function compareConflicts(
  before: number,
  after: number,
  appeared: number,
): { readonly goneConflicts: number; readonly stillConflicts: number } | undefined {
  const stillConflicts = after - appeared;
  const goneConflicts = before - stillConflicts;
  return stillConflicts < 0 || goneConflicts < 0 ? undefined : { goneConflicts, stillConflicts };
}
