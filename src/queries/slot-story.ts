// Collects all that is known of one slot for `syncline explain`: its record, its tasks in journal,
// queue and history, which task blocks them, and the pauses in force. Reads only.
import type { Policy } from "../config/policy-set.ts";
import { toIso } from "../core/instant.ts";
import type { Outcome } from "../model/outcome.ts";
import { isAbout, isInForce, type Pause } from "../model/pause.ts";
import type { SlotRecord } from "../model/slot-record.ts";
import { isFromMasks, type Task } from "../model/task.ts";
import { targetOf, taskId } from "../model/task-id.ts";
import { describeNoRecord, describeRecord, type SlotsAround } from "../schedule/explain-slot.ts";
import { ChainStore } from "../store/chain-store.ts";
import { Leases } from "../store/leases.ts";
import { Pauses } from "../store/pauses.ts";
import { type Presence, readPresence, type Store } from "../store/redis.ts";
import { readLimiterStatus } from "../store/service-limiter.ts";
import { entryRetentionMs } from "../store/start-journal.ts";
import type { TaskPlaces } from "./audit-policy.ts";
import { describeDeniedBy } from "./service-words.ts";

/** What is shown of an outcome. */
type ShownOutcome = Pick<Outcome, "status" | "evidence" | "reason" | "detail" | "confidence" | "sends">;

/** The story of one task. Instants are ISO 8601; null: it did not happen, or is not known. */
export interface TaskStory {
  readonly taskId: string;
  readonly target: string;
  /** The start journal's state; `none` before a worker claimed it. */
  readonly journal: string;
  /** The job's state in the queue; null when the queue does not have it. */
  readonly queue: string | null;
  readonly due: string;
  readonly queued: string | null;
  readonly sent: string | null;
  readonly answered: string | null;
  /** When an activity showed that a start without an answer had happened. */
  readonly confirmed: string | null;
  readonly finished: string | null;
  readonly outcome: ShownOutcome | null;
  /** Whether the queue holds it, a worker has it, or it is on its way into the queue. */
  readonly isInFlight: boolean;
  /** Up to when traces may have been dropped, if the task is that old. */
  readonly droppedUpTo: string | null;
  /** The task that holds the sync job, when this one waits for it. */
  readonly waitsFor: string | null;
  /** Why the answer to its start is missing. */
  readonly lost: string | null;
}

/** The story of one slot. */
export interface SlotStory {
  readonly policy: string;
  readonly asked: string | null;
  readonly isSlot: boolean;
  readonly reasons: readonly string[];
  readonly previous: string | null;
  readonly next: string | null;
  readonly slot: string | null;
  /** What became of it, in one sentence. */
  readonly verdict: string;
  readonly record: SlotRecord | null;
  /** Older slots that this one covers. */
  readonly covers: readonly string[];
  readonly tasks: readonly TaskStory[];
  readonly pauses: readonly Pause[];
  /** Why tasks without an outcome are blocked now; null when they are not. */
  readonly held: string | null;
  /** How many processes with each role are alive now. */
  readonly processes: Presence;
}

/** Where the parts of a story are read. */
export type StoryPlaces = TaskPlaces & { readonly store: Store };

const tasksMax = 1_000;

/** Tells the story of a slot. */
export async function readSlotStory(
  policy: Policy,
  { asked, around, nowMs }: { readonly asked: string | null; readonly around: SlotsAround; readonly nowMs: number },
  places: StoryPlaces,
): Promise<SlotStory> {
  const { slotMs } = around;
  // Read waiting slots first: a slot that stops waiting in between has a record then.
  const waits = slotMs === undefined ? [] : await new ChainStore(places.store).find([{ policy: policy.name, slotMs }]);
  const holdings = await places.ledger.holdings(policy.name);
  const record = holdings.records.find((one) => one.slotMs === slotMs);
  const pauses = (await new Pauses(places.store).all()).filter(
    (pause) => isInForce(pause, nowMs) && isAbout(pause, policy),
  );
  const tasks = record === undefined ? [] : await tasksOf(policy, { record, records: holdings.records }, places);
  const processes = await readPresence(places.store);
  const verdict = () => {
    if (slotMs === undefined) return "its schedule has no slots around this time";
    if (record !== undefined) return describeRecord(policy, record);
    const [wait] = waits;
    if (wait !== undefined) return `waits for the same slot of ${wait.after} to end`;
    return describeNoRecord({ slotMs, nowMs, isPlanned: processes.schedulers > 0, ...holdings });
  };
  const isOpen = tasks.some(({ isInFlight }) => isInFlight);
  const limiter = isOpen ? await readLimiterStatus(places.store, policy.service) : undefined;
  return {
    policy: policy.name,
    asked,
    isSlot: around.isSlot,
    reasons: around.reasons,
    previous: toIso(around.previousMs),
    next: toIso(around.nextMs),
    slot: toIso(slotMs),
    verdict: verdict(),
    record: record ?? null,
    covers: holdings.records
      .filter(({ state, detail }) => state === "coalesced" && detail === toIso(slotMs))
      .map((one) => new Date(one.slotMs).toISOString()),
    tasks,
    pauses,
    held: (limiter && describeDeniedBy(policy.service, limiter, nowMs)) ?? null,
    processes,
  };
}

/** The tasks of the slot itself, or of the slot that covers it. */
async function tasksOf(
  policy: Policy,
  { record, records }: { readonly record: SlotRecord; readonly records: readonly SlotRecord[] },
  places: StoryPlaces,
): Promise<TaskStory[]> {
  const started = record.state === "coalesced" ? records.find(({ slotMs }) => toIso(slotMs) === record.detail) : record;
  const { kind, targets } = started ?? {};
  if (started === undefined || kind === undefined || targets === undefined) return [];
  const name = (target: string) => {
    const identity = { policy: policy.name, kind, target, slotMs: started.slotMs, origin: "schedule" } as const;
    return { ...identity, id: taskId(identity), service: policy.service, repository: policy.repository ?? null };
  };
  // Before the queue: what is queued in between is found there.
  const planned = new Set(
    (await places.ledger.unqueued(Number.POSITIVE_INFINITY)).flatMap((step) => step.tasks.map(({ id }) => id)),
  );
  const stories: TaskStory[] = [];
  for (const task of targets.map(name)) {
    const into = (await places.journal.fannedOutInto(task.id)) ?? [task.id];
    for (const id of into.slice(0, tasksMax - stories.length)) {
      const named = { ...task, id, target: targetOf(id), overlap: policy.overlap, isPlanned: planned.has(id) };
      stories.push(await taskStory(named, places));
    }
  }
  return stories;
}

type NamedTask = Pick<Task, "policy" | "id" | "kind" | "target" | "slotMs" | "service" | "repository"> &
  Pick<Policy, "overlap"> & {
    /** The scheduler has planned it and has not noted yet that the queue has it. */
    readonly isPlanned: boolean;
  };

async function taskStory(task: NamedTask, places: StoryPlaces): Promise<TaskStory> {
  const { history, journal, producer, store } = places;
  const [entry, queued] = await Promise.all([journal.entry(task.id), producer.find(task)]);
  // Read after the queue: a task that ends in between has its outcome then.
  const outcome = await history.outcome(task);
  const isInFlight = outcome === undefined && (queued?.isInFlight ?? task.isPlanned);
  const hasBegun = entry !== undefined && entry.state !== "claimed";
  const mayWait = isInFlight && !hasBegun && (task.kind === "delete" || task.overlap !== "allow");
  const holder = mayWait ? await new Leases(store).holder(task) : undefined;
  const droppedUpToMs = outcome === undefined && !isInFlight ? await droppedUpTo(task, places) : undefined;
  const isConfirmed = entry?.shownBy === "evidence";
  const shownAt = toIso(entry?.answeredAtMs);
  return {
    taskId: task.id,
    target: outcome?.target ?? task.target,
    journal: isConfirmed && entry.state === "answered" ? "confirmed" : (entry?.state ?? "none"),
    queue: queued?.state ?? null,
    due: new Date(task.slotMs).toISOString(),
    queued: toIso(queued?.queuedAtMs),
    sent: toIso(entry?.sentAtMs) ?? outcome?.startedAt ?? null,
    answered: isConfirmed ? null : shownAt,
    confirmed: isConfirmed ? shownAt : null,
    finished: outcome?.finishedAt ?? null,
    outcome: outcome === undefined ? null : shownOf(outcome),
    isInFlight,
    droppedUpTo: toIso(droppedUpToMs),
    waitsFor: holder === undefined || holder === task.id ? null : holder,
    lost: entry?.doubt === undefined ? null : `${entry.doubt.kind}: ${entry.doubt.detail}`,
  };
}

/** Asked after the outcome: one that is dropped in between must not look as if it never was. */
async function droppedUpTo(task: NamedTask, { history, ledger }: StoryPlaces): Promise<number | undefined> {
  const keptSinceMs = (await history.keptSinceMs(task.policy)) ?? 0;
  // For a task over masks others stood, as the journal knows for a while.
  const masksSinceMs = isFromMasks(task) ? (await ledger.nowMs()) - entryRetentionMs : 0;
  const sinceMs = Math.max(keptSinceMs, masksSinceMs);
  return task.slotMs <= sinceMs ? sinceMs : undefined;
}

function shownOf(outcome: Outcome): ShownOutcome {
  const { status, evidence, reason, detail, confidence, sends } = outcome;
  const known = { ...(confidence && { confidence }), ...(sends !== undefined && { sends }) };
  return { status, evidence, reason, detail, ...known };
}
