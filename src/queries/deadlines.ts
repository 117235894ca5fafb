// The deadlines of policies, from what Redis knows: which are late, what the notifier must judge,
// and what a slot's deadline came to. Reads only.
import { describeExpectation, type Policy, targetsOf } from "../config/policy-set.ts";
import { formatRoughly } from "../core/duration.ts";
import { type Interval, showClock } from "../core/instant.ts";
import { cutText } from "../core/plain-text.ts";
import {
  type Deadline,
  type DeadlineState,
  type JudgedDeadlines,
  type Late,
  parseDeadlineState,
} from "../model/deadline.ts";
import { weightOf } from "../model/outcome.ts";
import type { SlotRecord } from "../model/slot-record.ts";
import { parseTaskId, targetFromMasks } from "../model/task.ts";
import {
  deadlineOfSlot,
  deadlinesOf,
  type EndedWell,
  freshDeadlines,
  isStateOf,
  judgeDeadlines,
  madeAt,
} from "../schedule/deadlines.ts";
import { ChainStore } from "../store/chain-store.ts";
import { History } from "../store/history.ts";
import { NotifyStore } from "../store/notify-store.ts";
import { readPolicyStates } from "../store/policy-states.ts";
import type { Store } from "../store/redis.ts";
import { batchesOf } from "../store/script.ts";
import { SlotLedger, slotRecordsMax } from "../store/slot-ledger.ts";
import { isClosed, namedByNewest, readStatusAt } from "./status-at.ts";

/** An end before the deadline may be recorded this much after it. */
const graceMs = 10_000;
/** After so many deadlines a call leaves the other policies to the next one: a lease is short. */
const deadlinesPerCallMax = 2_000;
const endsReadMax = 5_000;
const whyCharactersMax = 300;

/** Which of these policies are late. */
export async function readLate(policies: readonly Policy[], store: Store): Promise<ReadonlyMap<string, Late>> {
  const names = policies.flatMap(({ name, expect }) => (expect === undefined ? [] : [name]));
  const texts = names.length === 0 ? new Map() : await new NotifyStore(store).texts("deadlines", names);
  const late = new Map<string, Late>();
  for (const [name, text] of texts) {
    const state = parseDeadlineState(text);
    if (state.late !== null) late.set(name, state.late);
  }
  return late;
}

/** Judges the deadlines that came since they were judged last. Leaves out policies without news. */
export async function judgeAll(
  policies: readonly Policy[],
  { texts, nowMs }: { readonly texts: ReadonlyMap<string, string>; readonly nowMs: number },
  store: Store,
): Promise<ReadonlyMap<string, JudgedDeadlines>> {
  const judged = new Map<string, JudgedDeadlines>();
  let deadlines = 0;
  for (const batch of batchesOf(policies, 100)) {
    const found = await Promise.all(batch.map((policy) => judgeOne(policy, texts.get(policy.name), nowMs, store)));
    for (const [index, { name }] of batch.entries()) {
      const one = found[index];
      if (one === undefined) continue;
      judged.set(name, one);
      deadlines += one.deadlines;
    }
    if (deadlines > deadlinesPerCallMax) break;
  }
  return judged;
}

interface DeadlineJudgement extends JudgedDeadlines {
  readonly deadlines: number;
}

async function judgeOne(
  policy: Policy,
  text: string | undefined,
  nowMs: number,
  store: Store,
): Promise<DeadlineJudgement | undefined> {
  const { expect } = policy;
  if (expect === undefined) return undefined;
  const before = text === undefined ? undefined : parseDeadlineState(text);
  if (before === undefined || !isStateOf(before, expect)) {
    const { late = null, sinks = [] } = before ?? {};
    return { state: { ...freshDeadlines(expect, nowMs), late, sinks }, findings: [], deadlines: 0 };
  }
  const span = deadlinesOf(policy, { afterMs: before.judgedMs, untilMs: nowMs - graceMs });
  const isQuiet = span.deadlines.length === 0 && span.doneMs === nowMs - graceMs;
  if (isQuiet && (before.late === null || !(await mayBeMadeUp(policy, before.late, store)))) return undefined;
  return judgeSpan(policy, before, { span, nowMs }, store);
}

async function judgeSpan(
  policy: Policy,
  before: DeadlineState,
  { span, nowMs }: { readonly span: ReturnType<typeof deadlinesOf>; readonly nowMs: number },
  store: Store,
): Promise<DeadlineJudgement> {
  const fromMs = Math.min(...[before.late ?? [], span.deadlines].flat().map((one) => one.fromMs), nowMs);
  const known = await readEnds(policy, { fromMs, toMs: nowMs }, store);
  const made = (deadline: Deadline) => metAt(deadline, known);
  const counted: Deadline[] = [];
  for (const deadline of span.deadlines) {
    const isKept = (made(deadline) ?? Number.POSITIVE_INFINITY) <= deadline.atMs;
    if (isKept || (await wasDue(policy, deadline, store))) counted.push(deadline);
  }
  const { state, findings } = judgeDeadlines(policy, before, { ...span, deadlines: counted }, made);
  const withWhy = async (late: Late) =>
    late.why === "" ? { ...late, why: await whyLate(policy, late, known, store) } : late;
  return {
    state: { ...state, late: state.late && (await withWhy(state.late)) },
    deadlines: span.deadlines.length,
    findings: await Promise.all(findings.map(async (found) => ({ ...found, late: await withWhy(found.late) }))),
  };
}

/**
 * Has each target ended well since? A cheap look before all ends are read again. One that has never
 * ended may have come after the deadline.
 */
async function mayBeMadeUp(policy: Policy, { fromMs }: Late, store: Store): Promise<boolean> {
  const state = (await readPolicyStates(store, [policy.name])).get(policy.name);
  const successful = new Set(
    state?.targets.flatMap(({ target, lastSuccessMs = 0 }) => (lastSuccessMs >= fromMs ? [target] : [])),
  );
  const ended = new Set(state?.targets.map(({ target }) => target));
  const open = (targetsOf(policy.action) ?? []).filter((target) => ended.has(target) && !successful.has(target));
  return state?.cutMs !== undefined || (successful.size > 0 && open.length === 0);
}

interface Ends {
  readonly targets: readonly string[];
  readonly ends: readonly EndedWell[];
  readonly slots: readonly SlotRecord[];
  /** When older ends were not read: when the oldest ended that was. */
  readonly cutMs: number | undefined;
}

/** The targets, the slots, and what ended well among the newest of them, from `fromMs` on. */
async function readEnds(policy: Policy, span: Interval, store: Store): Promise<Ends> {
  const history = new History(store);
  const all = await history.places(policy.name, 0, endsReadMax, span);
  const slotOf = (id: string) => parseTaskId(id)?.slotMs ?? 0;
  const places = all.filter(({ id }) => slotOf(id) >= span.fromMs);
  const ends = (await history.read(places)).flatMap((outcome) => {
    const { target, slot, finishedAt, status } = outcome;
    // A poll whose expectation is not met did its work, and has not ended well.
    const endedWell = weightOf(outcome) === "success" && status !== "failed";
    return endedWell ? [{ target, slotMs: Date.parse(slot), endedMs: Date.parse(finishedAt) }] : [];
  });
  const ids = places.map(({ id }) => id);
  const targets = targetsOf(policy.action) ?? (await namedByNewest(ids, store)) ?? [targetFromMasks];
  const slots = await new SlotLedger(store).slots(policy.name, slotRecordsMax, span);
  const cutMs = all.length < endsReadMax ? undefined : all.at(-1)?.atMs;
  return { targets, ends, slots: slots.filter(({ kind }) => kind === policy.action.kind), cutMs };
}

/** What had to end well: what the slots were for, without what has left since if more is left. */
function dueBy({ fromMs, atMs }: Deadline, { targets, slots }: Ends): readonly string[] {
  const due = slots.filter(({ slotMs }) => slotMs >= fromMs && slotMs <= atMs);
  const planned = new Set(due.flatMap((slot) => slot.targets ?? []));
  if (planned.size === 0 || planned.has(targetFromMasks)) return targets;
  const left = targets.filter((target) => planned.has(target));
  return left.length === 0 ? [...planned] : left;
}

/** When a deadline was met: by what was due, or by all that the policy has now. */
function metAt(deadline: Deadline, known: Ends): number | undefined {
  const instants = [dueBy(deadline, known), known.targets].map((targets) =>
    madeAt(deadline.fromMs, targets, known.ends),
  );
  return instants.reduce((one, other) => (one === undefined ? other : Math.min(one, other ?? one)));
}

/**
 * Whether a slot was due: one with a record, one that waits for its predecessor, or one that no
 * scheduler has reached. Those before the policy or its present schedule began were not.
 */
async function wasDue(policy: Policy, { fromMs, atMs }: Deadline, store: Store): Promise<boolean> {
  const { name, after, expect } = policy;
  const ledger = new SlotLedger(store);
  const first = after?.root.name ?? name;
  const records = await ledger.newestRecords([name, first], atMs);
  const isIn = (slotMs: number | undefined): slotMs is number => slotMs !== undefined && slotMs >= fromMs;
  const slotMs = records.get(first)?.slotMs;
  // A follower's closed times count when its predecessor ends: only the records tell.
  const lastMs = expect?.kind === "within" ? fromMs : slotMs;
  const span = after === undefined || lastMs === undefined ? undefined : { fromMs, toMs: lastMs };
  if (span === undefined || !(await isAllClosed(name, span, ledger))) {
    if (isIn(records.get(name)?.slotMs)) return true;
    if (isIn(slotMs) && (await new ChainStore(store).find([{ policy: name, slotMs }])).length > 0) return true;
  }
  const plannedMs = (await ledger.plannedUpTo([name])).get(name);
  if (plannedMs === undefined) return true;
  return deadlinesOf(policy, { afterMs: atMs - 1, untilMs: atMs, dueSinceMs: plannedMs + 1 }).deadlines.length > 0;
}

/** Whether blackouts and holidays skipped the slot at the end of a span and all before it. */
async function isAllClosed(policy: string, span: Interval, ledger: SlotLedger): Promise<boolean> {
  const slots = await ledger.slots(policy, slotRecordsMax, span);
  return slots[0]?.slotMs === span.toMs && slots.every(isClosed);
}

/** What `status --at` says of the targets that had not ended well by then. */
async function whyLate(policy: Policy, deadline: Deadline, known: Ends, store: Store): Promise<string> {
  const { fromMs, atMs } = deadline;
  const open = dueBy(deadline, known).filter((target) => {
    const endedWellMs = madeAt(fromMs, [target], known.ends);
    return endedWellMs === undefined || endedWellMs > atMs;
  });
  const { action } = policy;
  const narrowed = "syncJobs" in action ? { ...policy, action: { ...action, syncJobs: open.map(Number) } } : policy;
  const [found] = await readStatusAt([narrowed], () => ({ fromMs, toMs: atMs }), store);
  return cutText(found?.why || "it had not ended well", whyCharactersMax);
}

/** What a slot's deadline came to, in one sentence; undefined: it has none. */
export async function describeDeadline(
  policy: Policy,
  { slotMs, nowMs }: { readonly slotMs: number; readonly nowMs: number },
  store: Store,
): Promise<string | undefined> {
  const deadline = policy.expect && deadlineOfSlot(policy, slotMs);
  if (policy.expect === undefined || deadline === undefined) return undefined;
  const { fromMs, atMs } = deadline;
  const clock = (instantMs: number) => showClock(instantMs, policy.timezone, slotMs);
  const head = `expected ${describeExpectation(policy.expect)}, so by ${clock(atMs)}`;
  const known = await readEnds(policy, { fromMs, toMs: nowMs }, store);
  const endedWellMs = metAt(deadline, known);
  if (endedWellMs !== undefined && endedWellMs <= atMs) return `${head}: kept at ${clock(endedWellMs)}`;
  if (!(await wasDue(policy, deadline, store))) return undefined;
  if (nowMs <= atMs) return `${head}: ${formatRoughly(atMs - nowMs)} left`;
  const sinceMs = Math.max(known.cutMs ?? 0, (await new History(store).keptSinceMs(policy.name)) ?? 0);
  if (sinceMs >= fromMs) {
    const told = (await readLate([policy], store)).get(policy.name);
    if (told?.atMs === atMs) return `${head}: late, ${told.why}`;
    return `${head}: not known whether it was kept, its ends are known since ${clock(sinceMs)}`;
  }
  const late = `${head}: late, ${await whyLate(policy, deadline, known, store)}`;
  return endedWellMs === undefined ? late : `${late}; made up for ${formatRoughly(endedWellMs - atMs)} later`;
}
