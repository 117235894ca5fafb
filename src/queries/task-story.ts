// Collects all that is known of one task for `syncline explain`, from journal, queue and history.
// Reads only.
import type { Policy } from "../config/policy-set.ts";
import { toIso } from "../core/instant.ts";
import type { Outcome } from "../model/outcome.ts";
import type { Task } from "../model/task.ts";
import type { QueuedTask } from "../queue/producer.ts";
import { findTaskInFlight } from "../queue/tasks-in-flight.ts";
import { droppedToMs } from "../store/history.ts";
import { Leases } from "../store/leases.ts";
import { batchesOf } from "../store/script.ts";
import { type StartEntry, withFanOuts } from "../store/start-entry.ts";
import type { TaskStores } from "./audit-policy.ts";
import { type RunningSet, readRunning, stepWords, type TaskLookedAt } from "./running.ts";
import { takesLease, targetWords } from "./task-words.ts";

/** Where the parts of a story are read. */
export type StoryStores = TaskStores & { readonly set: RunningSet };

/** The most tasks of one story. */
export const storyTasksMax = 1_000;

type ShownOutcome = Pick<Outcome, "status" | "evidence" | "reason" | "detail" | "confidence" | "sends">;

/** The story of one task. Instants are ISO 8601; null: it did not happen, or is not known. */
export interface TaskStory {
  readonly taskId: string;
  /** What it does, as people say it: `sync job 4`. */
  readonly name: string;
  readonly target: string;
  /** The journal's state; `none`: not claimed; `answered`: confirmed, and not by an activity. */
  readonly journal: string;
  /** The job's state in the queue; null when the queue does not have it. */
  readonly queue: string | null;
  readonly due: string;
  readonly queued: string | null;
  /** When its request was permitted; whether it went out is not always known. */
  readonly sent: string | null;
  /** The same of the newest of several. */
  readonly sentAgain: string | null;
  readonly answered: string | null;
  /** When an activity showed that a start without an answer had happened. */
  readonly confirmed: string | null;
  readonly finished: string | null;
  readonly outcome: ShownOutcome | null;
  /** Whether the queue holds it, a worker has it, or it is on its way into the queue. */
  readonly isInFlight: boolean;
  /** What it does and waits for, in a sentence; null when the queue does not hold it. */
  readonly now: string | null;
  /** Up to when traces may have been dropped, if the task is that old. */
  readonly droppedUpTo: string | null;
  /** The task that holds the sync job, when this one waits for it. */
  readonly waitsFor: string | null;
  /** Why it is not known what became of its start; null where its answer came after all. */
  readonly lost: string | null;
  /** Who cancelled it, and why. */
  readonly cancelled: string | null;
}

/** Whether only the permission of its requests is known: no answer and no activity shows them. */
export function isOnlyPermitted({ journal, answered, confirmed, outcome, lost }: TaskStory): boolean {
  // A poll asks for no permission.
  if (journal === "none" || answered !== null || confirmed !== null) return false;
  // What had no effect may not have gone out.
  const { evidence, status, reason } = outcome ?? {};
  const hasEffect = reason !== "still-there" && reason !== "not-active";
  const isShown = evidence === "direct" ? hasEffect : evidence === "inferred" && status !== "not-started";
  // Any other doubt is its sender's word.
  return !isShown && (lost === null || lost.startsWith("crash: "));
}

/** Why no good answer came, without the doubt's kind in front, which is for machines. */
export function whyLost(lost: TaskStory["lost"]): string | undefined {
  return lost?.replace(/^[a-z-]+: /, "");
}

/** A task to tell of. `overlap`: of its policy; undefined when that is gone. */
export type StoryTask = Pick<
  Task,
  "policy" | "id" | "kind" | "target" | "slotMs" | "origin" | "service" | "repository"
> & {
  readonly overlap: Policy["overlap"] | undefined;
};

/** Tells tasks; for one over masks, the tasks that replace it. At most 1,000. */
export async function readTaskStories(tasks: readonly StoryTask[], places: StoryStores): Promise<readonly TaskStory[]> {
  // Before the queue: what is queued in between is found there.
  const planned = new Set(
    (await places.ledger.outbox(tasks[0]?.policy)).flatMap(({ tasks: all }) => all.map(({ id }) => id)),
  );
  // Of a run by hand both the task over masks and those that replace it may be named.
  const told = new Map((await withFanOuts(places.store, tasks)).map((task) => [task.id, task]));
  const parts = [...told.values()].map((task) => ({ ...task, isUnqueued: planned.has(task.id) }));
  const stories: TaskStory[] = [];
  for (const batch of batchesOf(parts.slice(0, storyTasksMax), 50))
    stories.push(...(await Promise.all(batch.map((part) => taskStory(part, places)))));
  return stories;
}

/** `isUnqueued`: the scheduler has planned it and has not noted yet that the queue has it. */
type PlannedTask = StoryTask & { readonly isUnqueued: boolean };

async function taskStory(told: PlannedTask, places: StoryStores): Promise<TaskStory> {
  const { history, journal, producer, store } = places;
  const [entry, ended] = await Promise.all([journal.entry(told.id), history.outcome(told)]);
  // What has ended is in no other queue: to look for it costs two reads a service.
  const { task, queued } =
    ended === undefined ? await findQueued(told, places) : { task: told, queued: await producer.find(told) };
  // Read after the queue: a task that ends in between has its outcome then.
  const outcome = ended ?? (await history.outcome(task));
  const isInFlight = outcome === undefined && (queued?.isInFlight ?? task.isUnqueued);
  const hasBegun = entry !== undefined && entry.state !== "claimed";
  const mayWait = isInFlight && !hasBegun && takesLease(task, task.overlap);
  const holder = mayWait ? await new Leases(store).holder(task) : undefined;
  const droppedUpToMs = outcome === undefined && !isInFlight ? await droppedUpTo(task, places) : undefined;
  return {
    taskId: task.id,
    name: targetWords(task),
    target: outcome?.target ?? task.target,
    queue: queued?.state ?? null,
    due: new Date(task.slotMs).toISOString(),
    queued: toIso(queued?.queuedAtMs),
    ...stepsOf(entry, outcome),
    outcome: outcome === undefined ? null : shownOf(outcome),
    isInFlight,
    now: isInFlight && queued !== undefined ? await nowWords({ ...queued, task }, places) : null,
    droppedUpTo: toIso(droppedUpToMs),
    waitsFor: holder === undefined || holder === task.id ? null : holder,
    cancelled: entry?.cancelled ?? null,
    lost: lostOf(entry, outcome),
  };
}

/** Finds a task in its queue; if its policy has moved since, as a task of the service before. */
async function findQueued(
  task: PlannedTask,
  { producer, store, services }: StoryStores,
): Promise<{ readonly task: PlannedTask; readonly queued: QueuedTask | undefined }> {
  const queued = await producer.find(task);
  const moved = queued === undefined ? await findTaskInFlight(store, services, task.id) : undefined;
  if (moved === undefined) return { task, queued };
  const { service, repository } = moved;
  return { task: { ...task, service, repository }, queued: await producer.find(moved) };
}

async function nowWords(looked: TaskLookedAt, { set, store, ledger }: StoryStores): Promise<string | null> {
  const timezone = set.policies.find(({ name }) => name === looked.task.policy)?.timezone;
  const [running] = await readRunning([looked], set, store);
  return running === undefined ? null : stepWords(running, timezone, await ledger.nowMs());
}

/** A doubt stays noted when the answer comes with an outcome, which then does not tell it. */
function lostOf({ doubt }: Partial<StartEntry> = {}, outcome: Outcome | undefined): string | null {
  if (doubt === undefined) return null;
  const isAnswered = outcome?.evidence === "direct" && !outcome.answerLost && !outcome.detail.includes(doubt.detail);
  return isAnswered ? null : `${doubt.kind}: ${doubt.detail}`;
}

function stepsOf(entry: StartEntry | undefined, outcome: Outcome | undefined) {
  const isConfirmed = entry?.confirmedBy === "evidence";
  const shownAt = toIso(entry?.confirmedAtMs);
  return {
    journal: entry?.state === "confirmed" && !isConfirmed ? "answered" : (entry?.state ?? "none"),
    sent: toIso(entry?.sentAtMs) ?? outcome?.startedAt ?? null,
    sentAgain: (entry?.sends ?? 0) > 1 ? toIso(entry?.lastSentAtMs) : null,
    answered: isConfirmed ? null : shownAt,
    confirmed: isConfirmed ? shownAt : null,
    finished: outcome?.finishedAt ?? null,
  };
}

/** Asked after the outcome: one that is dropped in between must not look as if it never was. */
async function droppedUpTo(task: StoryTask, { history, ledger }: StoryStores): Promise<number | undefined> {
  const keptSinceMs = await history.keptSinceMs(task.policy);
  const sinceMs = droppedToMs(task, await ledger.nowMs(), keptSinceMs);
  return task.slotMs <= sinceMs ? sinceMs : undefined;
}

function shownOf(outcome: Outcome): ShownOutcome {
  const { status, evidence, reason, detail, confidence, sends } = outcome;
  const known = { ...(confidence && { confidence }), ...(sends !== undefined && { sends }) };
  return { status, evidence, reason, detail, ...known };
}
