// What `syncline audit` finds: slots without a record, records without a slot, and tasks that have
// neither an outcome nor a place in the queue; in words and as data. Reads only.

import type { Policy, PolicySet } from "../config/policy-set.ts";
import { formatDuration } from "../core/duration.ts";
import { showInstant, toIso } from "../core/instant.ts";
import { counted } from "../core/plain-text.ts";
import { type SlotRecord, tasksOfSlot } from "../model/slot-record.ts";
import type { Task } from "../model/task.ts";
import type { Producer } from "../queue/producer.ts";
import { findTaskInFlight } from "../queue/tasks-in-flight.ts";
import { auditedSlotsMax, auditSlots, type SlotAudit, type SlotFinding } from "../schedule/audit-slots.ts";
import { describeRecord } from "../schedule/explain-slot.ts";
import { onTimeMs } from "../schedule/plan-slots.ts";
import { ChainStore } from "../store/chain-store.ts";
import { droppedToMs, History } from "../store/history.ts";
import type { Store } from "../store/redis.ts";
import { batchesOf } from "../store/script.ts";
import { type LedgerHoldings, SlotLedger } from "../store/slot-ledger.ts";
import { withFanOuts } from "../store/start-entry.ts";
import { StartJournal } from "../store/start-journal.ts";
import { type QueryContext, seenRecord, type View, wholeView } from "./query-context.ts";

/** Where tasks may be found. `services`: all, since a task stays where its policy was. */
export interface TaskStores {
  readonly store: Store;
  readonly services: readonly string[];
  readonly history: Pick<History, "outcome" | "withOutcome" | "keptSinceMs">;
  readonly journal: StartJournal;
  readonly producer: Producer;
  readonly ledger: SlotLedger;
}

/** The places in this Redis. */
export function taskStores({ store, producer, set, allServices }: PlacesContext): TaskStores {
  const services = allServices ?? [...set.services.keys()];
  const [history, journal, ledger] = [new History(store), new StartJournal(store), new SlotLedger(store)];
  return { store, services, history, journal, producer, ledger };
}

type PlacesContext = Pick<QueryContext, "store" | "producer" | "allServices"> & {
  readonly set: Pick<PolicySet, "services">;
};

/** One finding. `no-outcome`: a task has neither an outcome nor a place in the queue. */
export interface AuditFinding {
  readonly slotMs: number;
  readonly problem: SlotFinding["problem"] | "no-outcome";
  readonly taskId: string | null;
}

/** The findings of one policy. */
export interface AuditReport {
  readonly policy: string;
  /** undefined when it has no slots. `states`: how many records have each. */
  readonly audit:
    | (Omit<SlotAudit, "records" | "findings"> & { readonly states: Readonly<Record<SlotRecord["state"], number>> })
    | undefined;
  /** It has a schedule or follows, and no scheduler has planned it here: nothing was checked. */
  readonly isUnseen: boolean;
  /** From which slot on tasks were checked, as older outcomes are not kept; undefined: all. */
  readonly outcomesSinceMs: number | undefined;
  readonly inFlight: number;
  readonly notes: readonly string[];
  readonly findings: readonly AuditFinding[];
  /** Slots recorded as missed, oldest first; no finding. */
  readonly missed: readonly { readonly slotMs: number; readonly why: string }[];
}

/** With 25 at once, the web role served nothing else for 85 ms; five wait for Redis as little. */
const atOnceDefault = 5;

/** Which slots to look at: of the whole ledger up to now, unless given. */
interface AuditedTime {
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
  readonly nowMs: number;
}

/** Policies of one answer. */
export const auditedMax = 100;

/** The policies whose names have these letters, in any case, by name. */
export function policiesNamed(policies: readonly Policy[], part: string): readonly Policy[] {
  const letters = part.toLowerCase();
  const fitting = policies.filter(({ name }) => name.toLowerCase().includes(letters));
  return fitting.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Audits some policies, a few at a time; each costs Redis its whole ledger. */
export async function readAudits(
  { view = wholeView, ...context }: PlacesContext & { readonly view?: View },
  policies: readonly Policy[],
  span: Pick<AuditedTime, "fromMs" | "toMs">,
  { atOnce = atOnceDefault, signal }: { readonly atOnce?: number; readonly signal?: AbortSignal } = {},
): Promise<readonly AuditReport[]> {
  const places = taskStores(context);
  const nowMs = await places.ledger.nowMs();
  const reports: AuditReport[] = [];
  for (const batch of batchesOf(policies, atOnce)) {
    if (signal?.aborted === true) break;
    const kept = await readKept(batch, context.store, view);
    const audits = kept.map(({ policy, ...known }) => auditPolicy(policy, { ...span, nowMs }, known, places));
    reports.push(...(await Promise.all(audits)));
  }
  return reports;
}

/** What is read of several policies at once. */
interface Kept {
  readonly holdings: LedgerHoldings | undefined;
  /** Slots that wait for their predecessor. */
  readonly waiting: ReadonlySet<number>;
  readonly outcomesSinceMs: number | undefined;
}

async function readKept(policies: readonly Policy[], store: Store, view: View) {
  const chains = new ChainStore(store);
  const ledger = new SlotLedger(store);
  const names = policies.map(({ name }) => name);
  // In this order: a slot up to the watermark waits, or has a record; one that stops waiting in
  // between has a record then.
  const plannedUpTo = await ledger.plannedUpTo(names);
  const slots = policies.map(({ name, after }) => (after === undefined ? [] : chains.waitingOf(name)));
  const waiting = await Promise.all(slots);
  const holdings = (await ledger.holdingsOf(names)).map((one) => ({
    ...one,
    records: one.records.map((record) => seenRecord(record, view)),
  }));
  const since = await new History(store).keptSinceOf(names);
  return policies.map((policy, index) => ({
    policy,
    holdings: holdings[index] && { ...holdings[index], watermarkMs: plannedUpTo.get(policy.name) },
    waiting: new Set(waiting[index]?.map(({ slotMs }) => slotMs)),
    outcomesSinceMs: since[index],
  }));
}

/** Audits the slots of one policy. */
async function auditPolicy(
  policy: Policy,
  { fromMs, toMs, nowMs }: AuditedTime,
  { holdings, waiting, outcomesSinceMs: keptSinceMs }: Kept,
  places: TaskStores,
): Promise<AuditReport> {
  const audited = holdings && auditSlots(policy, { ...holdings, waiting, fromMs, toMs: toMs ?? nowMs, nowMs });
  if (audited === undefined) {
    const isUnseen = policy.schedule !== undefined || policy.after !== undefined;
    const notes = [isUnseen ? "no scheduler has seen it yet" : "runs by hand only"];
    return {
      policy: policy.name,
      audit: undefined,
      isUnseen,
      outcomesSinceMs: undefined,
      inFlight: 0,
      notes,
      findings: [],
      missed: [],
    };
  }
  const { records, findings: slotFindings, ...audit } = audited;
  // Outcomes of older slots may have been dropped: nothing is known of them.
  const checked = records.filter(({ slotMs }) => keptSinceMs === undefined || slotMs > keptSinceMs);
  const { lost, inFlight } = await findLostTasks(tasksOf(policy, checked), places);
  const findings: AuditFinding[] = [
    ...slotFindings.map(({ slotMs, problem }) => ({ slotMs, problem, taskId: null })),
    ...lost.map(({ id, slotMs }) => ({ slotMs, problem: "no-outcome" as const, taskId: id })),
  ];
  const missed = records.filter(({ state }) => state === "missed");
  const states = { started: 0, coalesced: 0, skipped: 0, missed: 0 };
  for (const { state } of records) states[state] += 1;
  return {
    policy: policy.name,
    audit: { ...audit, states },
    isUnseen: false,
    outcomesSinceMs: checked.length < records.length ? keptSinceMs : undefined,
    missed: missed.map((record) => ({ slotMs: record.slotMs, why: describeRecord(policy, record) })),
    inFlight,
    notes: [...notesOf(audit), ...waitingNote(policy, waiting.size)],
    findings,
  };
}

function tasksOf(policy: Policy, records: readonly SlotRecord[]): TaskName[] {
  const { service, name } = policy;
  return records.flatMap((record) => tasksOfSlot(name, record).map((task) => ({ ...task, service })));
}

function notesOf({ limitedBy, isCut }: Pick<SlotAudit, "limitedBy" | "isCut">): string[] {
  const notes: string[] = [];
  if (limitedBy === "memory") notes.push("older slots are not kept");
  if (limitedBy === "schedule-changed") notes.push("its schedule changed then");
  if (isCut) notes.push(`ends after ${auditedSlotsMax} slots: narrow it with since and until`);
  return notes;
}

function waitingNote({ after }: Policy, count: number): string[] {
  if (after === undefined || count === 0) return [];
  return [`${counted(count, "slot waits", "slots wait")} for ${after.policy}`];
}

/** What identifies a task in all of these places. */
export type TaskName = Pick<Task, "policy" | "service" | "kind" | "target" | "slotMs" | "id">;

/**
 * The tasks of one policy that have neither an outcome nor a place in the queue, and how many are
 * still queued. Tasks whose traces may have been dropped are not lost.
 */
export async function findLostTasks(
  tasks: readonly TaskName[],
  places: TaskStores,
): Promise<{ readonly lost: readonly TaskName[]; readonly inFlight: number }> {
  const open = await withoutOutcome(await withFanOuts(places.store, await withoutOutcome(tasks, places)), places);
  if (open.length === 0) return { lost: [], inFlight: 0 };
  const outbox = (await places.ledger.outbox(open[0]?.policy)).flatMap((planned) => planned.tasks);
  const waiting = new Set(outbox.map(({ id }) => id));
  const gone: TaskName[] = [];
  for (const task of open) {
    if (waiting.has(task.id) || ((await places.producer.find(task))?.isInFlight ?? false)) continue;
    if ((await findTaskInFlight(places.store, places.services, task.id)) === undefined) gone.push(task);
  }
  // A task may have ended or fanned out while the queue was asked.
  const ended = await withoutOutcome(await withFanOuts(places.store, gone), places);
  const lost = ended.length === 0 ? [] : await withoutDropped(ended, places);
  return { lost, inFlight: open.length - gone.length };
}

/** Asked last: a worker may have recorded newer outcomes meanwhile, and so dropped these. */
async function withoutDropped(tasks: readonly TaskName[], { history, ledger }: TaskStores): Promise<TaskName[]> {
  const keptSinceMs = await history.keptSinceMs(tasks[0]?.policy ?? "");
  const nowMs = await ledger.nowMs();
  return tasks.filter((task) => task.slotMs > droppedToMs(task, nowMs, keptSinceMs));
}

async function withoutOutcome(tasks: readonly TaskName[], { history }: TaskStores): Promise<TaskName[]> {
  const ids = tasks.map(({ id }) => id);
  const ended = await history.withOutcome(tasks[0]?.policy ?? "", ids);
  return tasks.filter(({ id }) => !ended.has(id));
}

/** What a slot's record says of it, in the order of the columns. */
export const auditStates = [
  "started",
  "coalesced",
  "skipped",
  "missed",
] as const satisfies readonly SlotRecord["state"][];

/** What each finding means. */
export const auditMeaning = {
  lost: "was due and has no record, though its policy is planned further: the record is lost",
  unplanned: "was due and is not planned: no scheduler has looked since",
  "no-slot": "has a record, and the schedule has no such slot",
  "no-outcome": "started, and this task has neither an outcome nor a place in the queue",
} as const satisfies Record<AuditFinding["problem"], string>;

/** Says "planned = recorded" only where it is true; pending slots are counted beside it. */
export function auditSum(reports: readonly AuditReport[], off: number): string {
  const sum = (what: "slots" | "pending" | "waiting") =>
    reports.reduce((total, { audit }) => total + (audit?.[what] ?? 0), 0);
  const [slots, pending, waiting] = [sum("slots"), sum("pending"), sum("waiting")];
  const open = [
    ...(pending === 0 ? [] : [`${pending} of the last ${formatDuration(onTimeMs)} are not planned yet`]),
    ...(waiting === 0 ? [] : [`${waiting} wait for their predecessor`]),
  ];
  const unchecked = describeUnchecked(reports);
  if (off > 0) return [`${off} of ${slots} slots are off`, ...open, ...unchecked].join("; ");
  const inFlight = reports.reduce((total, report) => total + report.inFlight, 0);
  const but = inFlight === 0 ? "" : ` but ${inFlight} in flight`;
  const ended = [`none without an outcome${but}`, ...unchecked].join("; ");
  const isAnySeen = unchecked.length === 0 || reports.some(({ isUnseen }) => !isUnseen);
  if (slots === 0)
    return [...(isAnySeen ? ["no slot was due there: nothing was checked"] : []), ...unchecked].join("; ");
  if (open.length === 0) return `planned = recorded: ${slots} slots, none lost, ${ended}`;
  const recorded = slots - pending - waiting;
  return `${recorded} of ${slots} slots are recorded, none lost, ${ended}; ${open.join("; ")}: look again`;
}

/** What was not checked: policies without a scheduler, and tasks of older slots; empty: all was. */
export function describeUnchecked(reports: readonly AuditReport[]): readonly string[] {
  const dropped = reports.filter(({ outcomesSinceMs }) => outcomesSinceMs !== undefined).length;
  const unseen = countUnseen(reports);
  const told = `of ${counted(dropped, "policy", "policies")} older outcomes are no longer kept: tasks of those slots were not looked for`;
  const unplanned = `${counted(unseen, "policy is", "policies are")} planned by no scheduler: not checked`;
  return [...(dropped === 0 ? [] : [told]), ...(unseen === 0 ? [] : [unplanned])];
}

/** How many policies wait for a scheduler. How long they are in the files is not known here. */
export function countUnseen(reports: readonly AuditReport[]): number {
  return reports.filter(({ isUnseen }) => isUnseen).length;
}

/** The notes of a report, with since when its outcomes are kept, where that matters. */
export function notesFor({ notes, outcomesSinceMs }: AuditReport): string {
  const kept = outcomesSinceMs === undefined ? [] : [`outcomes are kept since ${showInstant(outcomesSinceMs)}`];
  return [...notes, ...kept].join("; ");
}

/** A report for machines, without its findings. */
export function auditToJson(report: AuditReport): object {
  const { policy, audit, outcomesSinceMs, inFlight, notes, findings, missed } = report;
  if (audit === undefined) return { policy, slots: 0, notes };
  return {
    policy,
    after: toIso(audit.afterMs),
    to: toIso(audit.toMs),
    slots: audit.slots,
    recorded: Object.values(audit.states).reduce((sum, count) => sum + count),
    pending: audit.pending,
    waiting: audit.waiting,
    states: audit.states,
    outcomesKeptSince: toIso(outcomesSinceMs),
    missed: missed.map(({ slotMs, why }) => ({ slot: toIso(slotMs), why })),
    inFlight,
    off: findings.length,
    notes,
  };
}
