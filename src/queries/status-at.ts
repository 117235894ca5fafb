// Which policies had succeeded by a time, of those that were due since the midnight before? Read
// from outcomes and the slot ledger, a few rounds for all.
import { type Policy, targetsOf } from "../config/policy-set.ts";
import { type Interval, showClock } from "../core/instant.ts";
import { isGood, type Outcome } from "../model/outcome.ts";
import type { SlotRecord } from "../model/slot-record.ts";
import { parseTaskId, targetFromMasks, targetOf, taskId } from "../model/task.ts";
import { createChainSource } from "../schedule/slots.ts";
import { History, type OutcomePlace } from "../store/history.ts";
import { readPolicyStates, type TargetState } from "../store/policy-states.ts";
import type { Store } from "../store/redis.ts";
import { batchesOf } from "../store/script.ts";
import { SlotLedger, slotRecordsMax } from "../store/slot-ledger.ts";
import { StartJournal } from "../store/start-journal.ts";
import { targetWords } from "./task-words.ts";

/** What was known of a policy at the end of a span. `why`: empty where all is said. */
export interface PolicyAt {
  readonly policy: Policy;
  readonly span: Interval;
  /** `new`: its slots of the span were due before the policy was planned here. */
  readonly verdict: "succeeded" | "not" | "nothing-due" | "new";
  readonly why: string;
}

/** Places of outcomes read at once of a policy, and outcomes read first of one target. */
const placesAtOnce = 1_000;
const perTargetFirst = 3;

/** Judges these policies, each by its own span; the spans of one zone are the same object. */
export async function readStatusAt(
  policies: readonly Policy[],
  spanOf: (policy: Policy) => Interval,
  store: Store,
): Promise<readonly PolicyAt[]> {
  const history = new History(store);
  const ledger = new SlotLedger(store);
  const found = new Map<string, PolicyAt>();
  for (const [span, group] of Map.groupBy(policies, spanOf)) {
    const groupNames = group.map(({ name }) => name);
    const slots = await readNewestSlots(ledger, groupNames, span);
    const outcomes = Map.groupBy(await readNewest(history, groupNames, span), ({ policy }) => policy);
    // After the records: what is dropped in between is not missed then.
    const [ledgerSince, begun] = [await ledger.keptSince(groupNames), await ledger.begun(groupNames)];
    const dropped = await ledger.dropped(groupNames);
    const keptSince = new Map<string, number | undefined>();
    for (const batch of batchesOf(groupNames))
      for (const [index, since] of (await history.keptSinceOf(batch)).entries())
        keptSince.set(batch[index] ?? "", since);
    const open: { readonly policy: Policy; readonly facts: Facts }[] = [];
    for (const policy of group) {
      const { name } = policy;
      const slot = slots.get(name);
      const ends = outcomes.get(name) ?? [];
      const named = targetsOf(policy.action) ?? (await namedInSpan(name, { ends, slot }, store));
      const slotsSinceMs = ledgerSince.get(name);
      const since = { outcomesSinceMs: keptSince.get(name), slotsSinceMs, begunMs: begun.get(name) ?? slotsSinceMs };
      const facts = { span, slot, named, lastEnds: [], ...since, droppedMs: dropped.get(name) ?? 0 };
      const known = { policy, span, ...judge(policy, ends, facts) };
      found.set(name, known);
      if (known.verdict === "not") open.push({ policy, facts });
    }
    // Only these say what came later; the states of all at once would take much memory.
    for (const batch of batchesOf(open)) {
      const batchNames = batch.map(({ policy }) => policy.name);
      const states = await readPolicyStates(store, batchNames);
      for (const { policy, facts } of batch) {
        const lastEnds = states.get(policy.name)?.targets ?? [];
        const verdict = judge(policy, outcomes.get(policy.name) ?? [], { ...facts, lastEnds });
        found.set(policy.name, { policy, span, ...verdict });
      }
    }
  }
  return policies.flatMap(({ name }) => found.get(name) ?? []);
}

/** The newest slot of each policy in the span; a closed one only where all that are kept are. */
async function readNewestSlots(ledger: SlotLedger, policies: readonly string[], { fromMs, toMs }: Interval) {
  const newest = [...(await ledger.newestRecords(policies, toMs))].filter(([, { slotMs }]) => slotMs >= fromMs);
  const slots = new Map<string, SlotRecord>(newest);
  for (const batch of batchesOf(newest.filter(([, slot]) => isClosed(slot)))) {
    const read = batch.map(([name, { slotMs }]) => ledger.slots(name, slotRecordsMax, { fromMs, toMs: slotMs - 1 }));
    for (const [index, older] of (await Promise.all(read)).entries()) {
      const open = older.find((slot) => !isClosed(slot));
      if (open !== undefined) slots.set(batch[index]?.[0] ?? "", open);
    }
  }
  return slots;
}

/**
 * The newest outcomes of each target that ended in the span, of slots that began in it: back to one
 * that was not skipped, as far as outcomes are kept. Behind the newest 1,000 of a policy only where
 * a target among these has nothing but skipped ones.
 */
async function readNewest(history: History, policies: readonly string[], span: Interval): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  let asked = policies;
  for (let from = 0; asked.length > 0; from += placesAtOnce) {
    const groups: (readonly OutcomePlace[])[] = [];
    const hasMore = new Set<string>();
    for (const batch of batchesOf(asked)) {
      const read = batch.map((policy) => history.places(policy, from, placesAtOnce, span));
      for (const found of await Promise.all(read)) {
        groups.push(...Map.groupBy(found, ({ id }) => targetOf(id)).values());
        if (found.length === placesAtOnce) hasMore.add(found[0]?.policy ?? "");
      }
    }
    for (const one of await readBack(history, groups, span)) outcomes.push(one);
    const ends = Map.groupBy(outcomes, ({ policy }) => policy);
    const isOpen = (policy: string) =>
      [...newestEnds(ends.get(policy) ?? []).values()].some(({ status }) => status === "skipped");
    asked = asked.filter((policy) => hasMore.has(policy) && isOpen(policy));
  }
  return outcomes;
}

/** Reads the places of each target, newest first, until one was not skipped. */
async function readBack(
  history: History,
  groups: readonly (readonly OutcomePlace[])[],
  span: Interval,
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  let open = groups;
  for (let [from, to] = [0, perTargetFirst]; open.length > 0; [from, to] = [to, to * 4]) {
    const next = (group: readonly OutcomePlace[]) => group.slice(from, to);
    const read = (await history.read(open.flatMap(next))).filter(({ slot }) => Date.parse(slot) >= span.fromMs);
    for (const one of read) outcomes.push(one);
    const known = new Set(read.flatMap(({ taskId: id, status }) => (status === "skipped" ? [] : [id])));
    open = open.filter((group) => group.length > to && !next(group).some(({ id }) => known.has(id)));
  }
  return outcomes;
}

/** The sync jobs of masks; undefined where they could not be read after they were last read. */
function namedInSpan(
  policy: string,
  { ends, slot }: { readonly ends: readonly Outcome[]; readonly slot: SlotRecord | undefined },
  store: Store,
): Promise<readonly string[] | undefined> {
  const unread = ends.filter(({ target, status }) => target === targetFromMasks && status !== "skipped");
  const unreadMs = Math.max(...unread.map((end) => Date.parse(end.slot)));
  const since = ends.filter((end) => Date.parse(end.slot) > unreadMs).map((end) => end.taskId);
  if (slot !== undefined && slot.slotMs > unreadMs)
    since.push(taskId({ policy, kind: "run", target: targetFromMasks, slotMs: slot.slotMs, origin: "schedule" }));
  return namedByNewest(since, store);
}

/**
 * The sync jobs that masks named for the newest slot of these tasks of which that is known: a run
 * of one sync job by hand has a slot without masks. Undefined: of none.
 */
export async function namedByNewest(taskIds: readonly string[], store: Store): Promise<readonly string[] | undefined> {
  const journal = new StartJournal(store);
  const tasks = taskIds.flatMap((id) => parseTaskId(id) ?? []).toSorted((a, b) => b.slotMs - a.slotMs);
  const lookups = new Set(tasks.map((task) => taskId({ ...task, target: targetFromMasks })));
  for (const batch of batchesOf([...lookups], 20)) {
    const found = await Promise.all(batch.map((id) => journal.fannedOutInto(id)));
    const into = found.find((ids) => ids !== undefined);
    if (into !== undefined) return into.map(targetOf);
  }
  return undefined;
}

interface Facts {
  readonly span: Interval;
  /** The sync jobs, lists or objects of the policy, as far as they are known. */
  readonly named: readonly string[] | undefined;
  /** The newest slot of the span that a scheduler recorded, a closed one only where all are. */
  readonly slot: SlotRecord | undefined;
  /** How each target ended last, also after the span. */
  readonly lastEnds: readonly TargetState[];
  readonly outcomesSinceMs: number | undefined;
  /** Since when its slots have records, and since when it is planned here. */
  readonly slotsSinceMs: number | undefined;
  readonly begunMs: number | undefined;
  /** The newest slot whose record was dropped, also of an earlier schedule; 0: none was. */
  readonly droppedMs: number;
}

type VerdictAt = Pick<PolicyAt, "verdict" | "why">;

function judge(policy: Policy, outcomes: readonly Outcome[], facts: Facts): VerdictAt {
  const { span, slot } = facts;
  const clock = (instantMs: number) => showClock(instantMs, policy.timezone, span.toMs);
  // A run by hand makes nothing due; it may make up for what was.
  if (slot === undefined && outcomes.every(({ origin }) => origin === "manual")) {
    const unplanned = judgeUnplanned(policy, facts, clock);
    if (unplanned.verdict !== "not" || outcomes.length === 0) return unplanned;
  }
  const ends = newestEnds(outcomes);
  const planned = slot?.targets;
  const named = facts.named ?? (ends.size > 0 ? [...ends.keys()] : (planned ?? []));
  const isDue = (target: string) =>
    planned === undefined || planned.includes(target) || planned.includes(targetFromMasks);
  // What the policy got after its newest slot was not due. Where it has nothing else, what it had
  // then counts.
  const due = named.filter((target) => ends.has(target) || isDue(target));
  const targets = due.length === 0 && named.length > 0 ? (planned ?? named) : due;
  const words = (target: string) => targetWords({ kind: policy.action.kind, target });
  const bad = targets.flatMap((target) => {
    const end = ends.get(target);
    if (end === undefined || isWanted(end)) return [];
    // A skipped end says nothing of one before it.
    const dropped = end.status === "skipped" ? orDropped(facts, clock) : "";
    return [`${words(target)} ${end.status} (${end.reason})${dropped}`];
  });
  if (bad.length > 0) return not(some(bad));
  const newestMs = Math.max(...[...ends.values()].map((end) => Date.parse(end.slot)));
  if (slot?.state === "missed" && slot.slotMs > newestMs) return not(toldSlot(slot, clock));
  const open = targets.filter((target) => !ends.has(target));
  if (open.length === 0 && ends.size > 0) return { verdict: "succeeded", why: "" };
  if (ends.size === 0 && slot !== undefined && slot.state !== "started")
    return isClosed(slot) ? { verdict: "nothing-due", why: slot.detail } : not(toldSlot(slot, clock));
  const whose = ends.size === 0 && slot !== undefined ? `slot ${clock(slot.slotMs)}` : some(open.map(words));
  return not(`${whose} had not ended${sinceThen(open, facts, clock)}`);
}

/** What became later of what had not ended. */
function sinceThen(open: readonly string[], facts: Facts, clock: (instantMs: number) => string): string {
  const { span, lastEnds } = facts;
  const later = lastEnds.find(({ target, last }) => open.includes(target) && last.finishedMs > span.toMs);
  const dropped = orDropped(facts, clock);
  if (later === undefined) return dropped;
  return `${dropped}; its last end is ${later.last.status}, ${clock(later.last.finishedMs)}`;
}

/** Says where ends of the span may have been dropped. */
function orDropped(
  { span, outcomesSinceMs = Number.NEGATIVE_INFINITY }: Facts,
  clock: (instantMs: number) => string,
): string {
  if (outcomesSinceMs <= span.fromMs) return "";
  return `, or its end is no longer kept: all are since ${clock(outcomesSinceMs)}`;
}

/** A slot that no scheduler recorded, though the policy was planned at that time. */
function judgeUnplanned(
  policy: Policy,
  { span, slotsSinceMs, begunMs = 0, droppedMs }: Facts,
  clock: (instantMs: number) => string,
): VerdictAt {
  const unknown = (sinceMs: number) => not(`not known: its slots are kept only since ${clock(sinceMs)}`);
  // What an earlier schedule made due is known by its records alone.
  if (begunMs > span.fromMs && droppedMs >= span.fromMs) return unknown(droppedMs);
  const dueAfter = (atMs = 0) =>
    createChainSource(policy)?.next(Math.max(span.fromMs - 1, atMs)) ?? Number.POSITIVE_INFINITY;
  if (dueAfter() > span.toMs) return { verdict: "nothing-due", why: "" };
  if (begunMs > 0 && dueAfter(begunMs) > span.toMs) return { verdict: "new", why: `planned since ${clock(begunMs)}` };
  const dueMs = dueAfter(slotsSinceMs);
  if (slotsSinceMs !== undefined && dueMs > span.toMs) return unknown(slotsSinceMs);
  const slot = `slot ${clock(dueMs)}`;
  if (slotsSinceMs === undefined) return not(`${slot} was due, and no scheduler knows the policy here`);
  return not(policy.after === undefined ? `${slot} was not planned` : `${slot} waits for ${policy.after.policy}`);
}

/** The last end of each target; one that was skipped only where there is no other. */
function newestEnds(outcomes: readonly Outcome[]): ReadonlyMap<string, Outcome> {
  const ends = new Map<string, Outcome>();
  for (const outcome of outcomes) {
    const known = ends.get(outcome.target);
    if (known === undefined || (known.status === "skipped" && outcome.status !== "skipped"))
      ends.set(outcome.target, outcome);
  }
  return ends;
}

function isWanted({ status }: Outcome): boolean {
  return isGood[status] && status !== "skipped";
}

/** Whether a blackout or a holiday skipped a slot. */
export function isClosed({ state, detail }: SlotRecord): boolean {
  return state === "skipped" && (detail === "blackout" || detail === "holiday");
}

function toldSlot({ slotMs, state, detail, note }: SlotRecord, clock: (instantMs: number) => string): string {
  return `slot ${clock(slotMs)} ${state} (${detail})${note === undefined ? "" : `: ${note}`}`;
}

function some([first = "", ...more]: readonly string[]): string {
  return more.length === 0 ? first : `${first}, and ${more.length} more`;
}

function not(why: string): VerdictAt {
  return { verdict: "not", why };
}
