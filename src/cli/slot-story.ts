// Everything that is known of one slot, gathered for `syncline explain`: its record, its tasks in journal, queue and history,
// who holds what they wait for, and the pauses in force. Reads only.
import type { Policy } from "../config/policy-set.ts";
import type { SlotsAround } from "../schedule/slots-around.ts";
import { tellNoRecord, tellRecord } from "../schedule/tell-record.ts";
import type { ChainBook } from "../store/chain-book.ts";
import type { GateStatus } from "../store/gate-status.ts";
import type { Leases } from "../store/leases.ts";
import type { Pauses } from "../store/pauses.ts";
import type { LedgerHoldings } from "../store/slot-ledger.ts";
import type { Outcome } from "../tasks/outcome.ts";
import { isAbout, isInForce, type Pause } from "../tasks/pause.ts";
import type { SlotRecord } from "../tasks/slot-record.ts";
import type { Task } from "../tasks/task.ts";
import { taskId } from "../tasks/task-id.ts";
import type { TaskPlaces } from "./open-tasks.ts";
import { tellHeld } from "./service-words.ts";

/** What is told of an outcome. `confidence`, `sends`: absent where they are not known. */
type ToldOutcome = Pick<Outcome, "status" | "evidence" | "reason" | "detail" | "confidence" | "sends">;

/** The story of one task. Instants are ISO 8601 UTC; null: it did not happen, or is not known any more. */
export interface TaskStory {
  readonly taskId: string;
  readonly target: string;
  /** The start journal's state, `none` before anybody claimed it. */
  readonly journal: string;
  /** The queue's word; null when the queue has forgotten it. */
  readonly queue: string | null;
  readonly due: string;
  readonly queued: string | null;
  readonly sent: string | null;
  readonly answered: string | null;
  readonly finished: string | null;
  readonly outcome: ToldOutcome | null;
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
  /** Older slots that this one stands for. */
  readonly covers: readonly string[];
  readonly tasks: readonly TaskStory[];
  readonly pauses: readonly Pause[];
  /** Why tasks without an outcome are held back right now: the service is down, or asked for patience; null when it does not. */
  readonly held: string | null;
}

/** Where the parts of a story are. */
export interface StoryPlaces extends TaskPlaces {
  readonly leases: Leases;
  readonly pauses: Pauses;
  readonly chains: ChainBook;
  readonly gate: (service: string) => Promise<GateStatus>;
}

const tasksMax = 1_000;

/** Tells the story of the slot that is meant. */
export async function tellStory(
  policy: Policy,
  { asked, around, nowMs }: { readonly asked: string | null; readonly around: SlotsAround; readonly nowMs: number },
  places: StoryPlaces,
): Promise<SlotStory> {
  const { slotMs } = around;
  // What waits first: a slot that stops waiting in between has its record then.
  const waits = slotMs === undefined ? [] : await places.chains.find([{ policy: policy.name, slotMs }]);
  const holdings = await places.ledger.holdings(policy.name);
  const record = holdings.records.find((one) => one.slotMs === slotMs);
  const pauses = (await places.pauses.all()).filter((pause) => isInForce(pause, nowMs) && isAbout(pause, policy));
  const tasks = record === undefined ? [] : await tasksOf(policy, { record, records: holdings.records }, places);
  const isOpen = tasks.some(({ outcome }) => outcome === null);
  const held = isOpen ? tellHeld(policy.service, await places.gate(policy.service), nowMs) : undefined;
  return {
    policy: policy.name,
    asked,
    isSlot: around.isSlot,
    reasons: around.reasons,
    previous: isoOf(around.previousMs),
    next: isoOf(around.nextMs),
    slot: isoOf(slotMs),
    verdict: verdictOf(policy, { record, slotMs, nowMs, holdings, waitsFor: waits[0]?.after }),
    record: record ?? null,
    covers: holdings.records
      .filter(({ state, detail }) => state === "coalesced" && detail === isoOf(slotMs))
      .map((one) => new Date(one.slotMs).toISOString()),
    tasks,
    pauses,
    held: held ?? null,
  };
}

interface Known {
  readonly record: SlotRecord | undefined;
  readonly slotMs: number | undefined;
  readonly nowMs: number;
  readonly holdings: LedgerHoldings;
  /** The predecessor whose slot has not ended yet. */
  readonly waitsFor: string | undefined;
}

function verdictOf(policy: Policy, { record, slotMs, nowMs, holdings, waitsFor }: Known): string {
  if (slotMs === undefined) return "its schedule has no slots around this time";
  if (record === undefined && waitsFor !== undefined) return `waits for the same slot of ${waitsFor} to end`;
  return record === undefined ? tellNoRecord({ slotMs, nowMs, ...holdings }) : tellRecord(policy, record);
}

/** The tasks of the slot itself, or of the one that stands for it. */
async function tasksOf(
  policy: Policy,
  { record, records }: { readonly record: SlotRecord; readonly records: readonly SlotRecord[] },
  places: StoryPlaces,
): Promise<TaskStory[]> {
  const started = record.state === "coalesced" ? records.find(({ slotMs }) => isoOf(slotMs) === record.detail) : record;
  const { kind, targets } = started ?? {};
  if (started === undefined || kind === undefined || targets === undefined) return [];
  const name = (target: string) => {
    const identity = { policy: policy.name, kind, target, slotMs: started.slotMs, origin: "schedule" } as const;
    return { ...identity, id: taskId(identity), service: policy.service, repository: policy.repository ?? null };
  };
  const stories: TaskStory[] = [];
  for (const task of targets.map(name)) {
    const into = (await places.journal.expandedInto(task.id)) ?? [task.id];
    for (const id of into.slice(0, tasksMax - stories.length)) stories.push(await taskStory({ ...task, id }, places));
  }
  return stories;
}

type NamedTask = Pick<Task, "id" | "kind" | "target" | "slotMs" | "service" | "repository">;

async function taskStory(task: NamedTask, { history, journal, producer, leases }: StoryPlaces): Promise<TaskStory> {
  const [outcome, entry, queued] = await Promise.all([
    history.outcome(task.id),
    journal.entry(task.id),
    producer.find(task),
  ]);
  const target = outcome?.target ?? (task.id.split("__")[2] || task.target);
  const holder = outcome === undefined ? await leases.holder({ ...task, target }) : undefined;
  return {
    taskId: task.id,
    target,
    journal: entry?.state ?? "none",
    queue: queued?.state ?? null,
    due: new Date(task.slotMs).toISOString(),
    queued: isoOf(queued?.queuedAtMs),
    sent: isoOf(entry?.sentAtMs) ?? outcome?.startedAt ?? null,
    answered: isoOf(entry?.answeredAtMs),
    finished: outcome?.finishedAt ?? null,
    outcome: outcome === undefined ? null : pickOutcome(outcome),
    waitsFor: holder === undefined || holder === task.id ? null : holder,
    lost: entry?.lost === undefined ? null : `${entry.lost.kind}: ${entry.lost.detail}`,
  };
}

function pickOutcome({ status, evidence, reason, detail, confidence, sends }: ToldOutcome): ToldOutcome {
  return {
    status,
    evidence,
    reason,
    detail,
    ...(confidence === undefined ? {} : { confidence }),
    ...(sends === undefined ? {} : { sends }),
  };
}

function isoOf(instantMs: number | undefined): string | null {
  return instantMs === undefined ? null : new Date(instantMs).toISOString();
}
