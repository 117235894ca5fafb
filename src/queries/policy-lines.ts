// One line a policy: is it well, how did it end last, when does it come next? Worst first. It reads
// what is kept of each policy, never its outcomes.
import { type Policy, targetsOf } from "../config/policy-set.ts";
import { formatDuration, formatRoughly } from "../core/duration.ts";
import { showClock } from "../core/instant.ts";
import { hashText } from "../core/stable-hash.ts";
import type { Late } from "../model/deadline.ts";
import { type Health, healthOfStatus } from "../model/outcome.ts";
import { isAbout, isInForce, type Pause } from "../model/pause.ts";
import type { SlotRecord } from "../model/slot-record.ts";
import { parseTaskId } from "../model/task.ts";
import { unusualWords } from "../model/unusual.ts";
import { firstOpenSlot, nextOpen, thirdOpenSlot } from "../schedule/closed-times.ts";
import { onTimeMs } from "../schedule/plan-slots.ts";
import { createChainSource, type SlotSource } from "../schedule/slots.ts";
import { History } from "../store/history.ts";
import {
  type Acknowledgement,
  type PolicyState,
  type ReadStates,
  readPolicyStates,
  type TargetState,
  usualDurationMs,
  worstTarget,
} from "../store/policy-states.ts";
import type { Store } from "../store/redis.ts";
import { batchesOf } from "../store/script.ts";
import { SlotLedger } from "../store/slot-ledger.ts";
import { runsInFlight } from "../store/start-entry.ts";
import { readTroubles } from "../store/troubles.ts";
import { readLate } from "./deadlines.ts";
import {
  type ConflictTotals,
  describeCounted,
  type OpenConflicts,
  openConflictsOf,
  openTarget,
  readConflictTotals,
} from "./open-conflicts.ts";
import { seenPause, type View, withoutUnseenNote } from "./query-context.ts";
import { targetWords } from "./task-words.ts";

/**
 * The health of a policy, worst first. `late`: it missed its deadline. `unplanned`: a slot is due
 * and not planned. `conflicts`: some are open at the service, or its last run left some.
 */
export const policyHealths = [
  "quarantined",
  "failing",
  "unknown",
  "missed",
  "late",
  "unplanned",
  "blocked",
  "conflicts",
  "service-down",
  "paused",
  "new",
  "ok",
] as const;

/** One of the twelve. */
export type PolicyHealth = (typeof policyHealths)[number];

/** Whether a person must look at a policy in this health. */
export const needsPerson: Readonly<Record<PolicyHealth, boolean>> = {
  quarantined: true,
  failing: true,
  unknown: true,
  missed: true,
  late: true,
  unplanned: true,
  blocked: true,
  conflicts: true,
  // Its service does.
  "service-down": false,
  paused: false,
  new: false,
  ok: false,
};

/** One policy. `worst`: the sync job, list or object that speaks for it; undefined: none ended. */
export interface PolicyLine {
  readonly policy: Policy;
  readonly health: PolicyHealth;
  readonly worst: TargetState | undefined;
  /** All that failed, may have run, wait for an approval, or left conflicts that are open. */
  readonly troubled: readonly TargetState[];
  /** When its newest task ended. */
  readonly endedMs: number | undefined;
  /** Whether it has other sync jobs, lists or objects than that. */
  readonly isOfSeveral: boolean;
  readonly usualMs: number | undefined;
  /** The next slot that no pause, blackout or holiday will skip, as far as these are known. */
  readonly nextMs: number | undefined;
  /** The slot whose run has not ended, where the service is down: it waits for the service. */
  readonly waitingMs: number | undefined;
  /** The slot whose run has not ended, of a policy that is late for no such outage. */
  readonly underWayMs: number | undefined;
  readonly pauses: readonly Pause[];
  /** When a slot was last missed, if no task ended since, apart from skipped ones. */
  readonly missedMs: number | undefined;
  /** Whether two intervals have passed since it last ended well, of one that missed a slot. */
  readonly isBehind: boolean;
  /** The slot that is due and not planned. */
  readonly unplannedMs: number | undefined;
  /** The first target whose newest run is unusual, and why. */
  readonly unusual: Pick<TargetState, "target" | "last"> | undefined;
  /** Who knows of what a person must look at, while it is no worse. */
  readonly acknowledged: Acknowledgement | undefined;
  /** The deadline that it missed and has not made up for. */
  readonly late: Late | undefined;
  /** What is open at the service, beyond what `follow.conflictsMax` takes. */
  readonly open: OpenConflicts | undefined;
  /** How many are open there, also no more than that; undefined: not known. */
  readonly openCount: number | undefined;
}

/** A line with the newest slot that a scheduler planned; undefined: none. */
export interface DetailedLine extends PolicyLine {
  readonly slot: SlotRecord | undefined;
}

interface LineInputs {
  readonly nowMs: number;
  readonly pauses: readonly Pause[];
  readonly services: readonly { readonly service: string; readonly breaker: "open" | "closed" }[];
  /** How states are read; default: anew. */
  readonly readStates?: ReadStates | undefined;
}

/**
 * The lines of these policies, worst first, acknowledged ones below all that need a person; those
 * in the same health as in their files.
 */
export async function readPolicyLines(
  policies: readonly Policy[],
  store: Store,
  { nowMs, pauses, services, readStates = (names) => readPolicyStates(store, names) }: LineInputs,
): Promise<readonly PolicyLine[]> {
  const down = new Set(services.flatMap(({ service, breaker }) => (breaker === "open" ? [service] : [])));
  const [states, troubles, allLate, totalsOf] = await Promise.all([
    readStates(policies.map(({ name }) => name)),
    readTroubles(store, policies),
    readLate(policies, store),
    readConflictTotals(policies, store),
  ]);
  const missed = new Map(
    troubles.flatMap(({ trouble, policy, atMs }) => (trouble === "missed" ? [[policy, atMs]] : [])),
  );
  const inForce = pauses.filter((pause) => isInForce(pause, nowMs));
  const pausesHash = hashText(JSON.stringify(inForce));
  const all = policies.map((policy) => {
    const { name, service } = policy;
    const own = inForce.length === 0 ? inForce : inForce.filter((pause) => isAbout(pause, policy));
    const facts: Facts = {
      state: states.get(name),
      totals: totalsOf(policy),
      missedMs: missed.get(name) ?? 0,
      late: allLate.get(name),
      isServiceDown: down.has(service),
      pauses: own,
      pausesKey: own.length === 0 ? "" : pausesHash,
      nowMs,
    };
    return { policy, facts, kept: keptLine(policy, facts) };
  });
  const anew = all.flatMap(({ policy, kept }) => (kept === undefined ? [policy] : []));
  const plannedUpTo = await new SlotLedger(store).plannedUpTo(anew.map(({ name }) => name));
  const held = anew.filter(({ name, service }) => down.has(service) || allLate.has(name));
  const unendedSlots = await readUnendedSlots(held, store, { states, plannedUpTo, nowMs });
  const lines = all.map(({ policy, facts, kept }) => {
    if (kept !== undefined) return kept;
    const { name } = policy;
    return toLine(policy, facts, { plannedMs: plannedUpTo.get(name), unendedMs: unendedSlots.get(name) });
  });
  const ranks = Map.groupBy(lines, ({ health, acknowledged }) => {
    return rankOf(health) + (acknowledged !== undefined || !needsPerson[health] ? policyHealths.length : 0);
  });
  return [...ranks].toSorted(([a], [b]) => a - b).flatMap(([, group]) => group);
}

/** A line without the notes that the caller may not see. */
export function seenLine(line: PolicyLine, view: View): PolicyLine {
  const { pauses, late } = line;
  if (!view.isNarrowed || (pauses.length === 0 && late === undefined)) return line;
  return {
    ...{ ...line, pauses: pauses.map((pause) => seenPause(pause, view)) },
    late: late && { ...late, why: withoutUnseenNote(late.why, view) },
  };
}

/** Adds the newest slot of each line. */
export async function withSlots(lines: readonly PolicyLine[], store: Store, nowMs: number) {
  const names = lines.map(({ policy }) => policy.name);
  const slots = await new SlotLedger(store).newestRecords(names, nowMs);
  return lines.map((line): DetailedLine => ({ ...line, slot: slots.get(line.policy.name) }));
}

interface Facts extends Pick<LineInputs, "nowMs" | "pauses"> {
  readonly isServiceDown: boolean;
  readonly state: PolicyState | undefined;
  readonly missedMs: number;
  readonly late: Late | undefined;
  readonly totals: ConflictTotals | undefined;
  /** Another text where other pauses are in force. */
  readonly pausesKey: string;
}

/**
 * Lines by the state that they show. A policy gets a new line when it has news, is late, had a slot
 * due since, its service is down, or its pauses, conflicts or file changed; only of these the
 * watermarks are read. `untilMs`: a slot is due then.
 */
const keptLines = new WeakMap<
  PolicyState,
  Pick<Facts, "missedMs" | "totals" | "pausesKey"> & { readonly line: PolicyLine; readonly untilMs: number }
>();

function keptLine(policy: Policy, facts: Facts): PolicyLine | undefined {
  const { state, late, isServiceDown, nowMs } = facts;
  const kept = late !== undefined || isServiceDown ? undefined : state && keptLines.get(state);
  if (kept === undefined || kept.line.policy !== policy || nowMs >= kept.untilMs) return undefined;
  const isSame = kept.missedMs === facts.missedMs && kept.totals === facts.totals && kept.pausesKey === facts.pausesKey;
  return isSame ? kept.line : undefined;
}

function toLine(
  policy: Policy,
  facts: Facts,
  { plannedMs, unendedMs }: { readonly plannedMs: number | undefined; readonly unendedMs: number | undefined },
): PolicyLine {
  const { state, missedMs, late, totals, nowMs, pauses, pausesKey, isServiceDown } = facts;
  const targets = targetsOf(policy.action);
  const isCurrent = targets === undefined ? undefined : (target: string) => targets.includes(target);
  const isBlocked = (one: TargetState) => isCurrent?.(one.target) !== false && targetHealth(one) === "blocked";
  // What waits for a person at the service does so during a pause, too.
  const isPaused = pauses.length > 0 && pauses.every(({ cause }) => cause === undefined);
  const blocked = isPaused ? state?.targets.find(isBlocked) : undefined;
  const worst = blocked ?? (state && worstTarget(state, isCurrent));
  const source = createChainSource(policy);
  const dueMs = policy.schedule === undefined || plannedMs === undefined ? undefined : source?.next(plannedMs);
  const comingMs = dueMs !== undefined && dueMs > nowMs ? dueMs : source?.next(nowMs);
  const known = state?.targets.map(({ target }) => target) ?? [];
  const counted = totals && openConflictsOf(policy, known, totals);
  const isWaiting = isServiceDown && pauses.length === 0;
  const found = {
    policy,
    worst,
    endedMs: state?.targets[0]?.newest.finishedMs,
    isOfSeveral: (state?.targets.length ?? 0) > 1,
    usualMs: state === undefined ? undefined : usualDurationMs(state),
    nextMs: pauses.length > 0 ? nextAfterPauses(policy, source, pauses) : firstOpenSlot(policy, source, comingMs),
    waitingMs: isWaiting ? unendedMs : undefined,
    underWayMs: isWaiting ? undefined : unendedMs,
    pauses,
    late,
    unusual: state?.targets.find(({ target, last }) => last.findings.length > 0 && isCurrent?.(target) !== false),
    missedMs: missedMs > 0 && missedMs > lastEndMs(state, isCurrent) ? missedMs : undefined,
    unplannedMs: dueMs !== undefined && dueMs < nowMs - onTimeMs ? dueMs : undefined,
    open: counted !== undefined && counted.count > (policy.follow.conflictsMax ?? 0) ? counted : undefined,
    openCount: counted?.count,
  };
  // None was open any more after the last run that left some.
  const leftMs = Math.max(
    ...(state?.targets ?? []).map(({ last }) => (last.status === "conflicts" ? last.finishedMs : 0)),
  );
  const areConflictsOver = found.open === undefined && counted !== undefined && counted.atMs > leftMs;
  const own = healthOf(found, areConflictsOver);
  const isTroubled = (target: TargetState) => {
    const ended = targetHealth(target);
    if (ended === "conflicts") return !areConflictsOver;
    return ended === "failing" || ended === "unknown" || ended === "blocked";
  };
  const troubled = state?.targets.filter((one) => isCurrent?.(one.target) !== false && isTroubled(one)) ?? [];
  const health = isServiceDown && !needsPerson[own] && own !== "paused" ? "service-down" : own;
  const acknowledged = acknowledgementOf(health, state?.acknowledged, { missedMs, late, open: found.open });
  const successMs = worst?.lastSuccessMs ?? state?.firstMs;
  const behindMs =
    health === "missed" && successMs !== undefined ? thirdOpenSlot(policy, source, successMs) : undefined;
  const isBehind = behindMs !== undefined && behindMs <= nowMs;
  const line = { ...found, troubled, health, acknowledged, isBehind };
  const untilMs = Math.min(dueMs ?? Number.POSITIVE_INFINITY, comingMs ?? Number.POSITIVE_INFINITY);
  if (state !== undefined && late === undefined && !isServiceDown)
    keptLines.set(state, { line, missedMs, totals, pausesKey, untilMs });
  return line;
}

/**
 * When a task of a current target last ended that was not skipped: one that was skipped makes up
 * for no slot.
 */
function lastEndMs(state: PolicyState | undefined, isCurrent: ((target: string) => boolean) | undefined): number {
  const ends = (state?.targets ?? [])
    .filter(({ target }) => isCurrent?.(target) !== false)
    .map(({ newest, lastSuccessMs = 0, lastBadMs = 0 }) =>
      newest.status === "skipped" ? Math.max(lastSuccessMs, lastBadMs) : newest.finishedMs,
    );
  return Math.max(0, ...ends);
}

const slotsSeenMax = 100;

/**
 * The oldest slot of each of these policies whose run has not ended: one whose request is out, else
 * one that was started after the last end; of several sync jobs, of the one that is furthest
 * behind. Slots that were skipped or missed have no run.
 */
async function readUnendedSlots(
  policies: readonly Policy[],
  store: Store,
  { states, plannedUpTo, nowMs }: PlanningState,
): Promise<ReadonlyMap<string, number>> {
  const [history, ledger] = [new History(store), new SlotLedger(store)];
  const unended = new Map<string, number>();
  const names = new Set(policies.map(({ name }) => name));
  const runs = policies.filter(({ action }) => action.kind === "run");
  const syncJobs = runs.flatMap(({ name, action, service, repository = null }) =>
    (targetsOf(action) ?? states.get(name)?.targets.map(({ target }) => target) ?? []).map((target) => {
      return { service, repository, target };
    }),
  );
  for (const { id } of await runsInFlight(store, syncJobs)) {
    const { policy = "", slotMs = 0 } = parseTaskId(id) ?? {};
    // Another policy may have started the sync job.
    if (names.has(policy)) unended.set(policy, Math.min(slotMs, unended.get(policy) ?? slotMs));
  }
  const read = async ({ name, action }: Policy) => {
    const targets = targetsOf(action);
    const ended = (states.get(name)?.targets ?? []).filter(({ target }) => targets?.includes(target) !== false);
    const slots = ended.map(({ newest }) => newest.slotMs);
    // Of masks, what is gone at the service stays behind, or its state is forgotten.
    const endedMs = slots.length === 0 ? 0 : Math[targets === undefined ? "max" : "min"](...slots);
    if (unended.has(name) || (plannedUpTo.get(name) ?? 0) <= endedMs) return;
    const [newest] = targets === undefined ? await history.places(name, 0, 1) : [];
    const fromMs = Math.max(endedMs, parseTaskId(newest?.id ?? "")?.slotMs ?? 0) + 1;
    const records = await ledger.oldestSlots(name, slotsSeenMax, { fromMs, toMs: nowMs });
    const started = records.find(({ state }) => state === "started");
    if (started !== undefined) unended.set(name, started.slotMs);
  };
  for (const batch of batchesOf(policies)) await Promise.all(batch.map(read));
  return unended;
}

interface PlanningState {
  readonly states: ReadonlyMap<string, PolicyState>;
  readonly plannedUpTo: ReadonlyMap<string, number>;
  readonly nowMs: number;
}

/** The first slot that no pause and no closed time keeps from starting; undefined: none known. */
function nextAfterPauses(policy: Policy, source: SlotSource | undefined, pauses: readonly Pause[]): number | undefined {
  const endMs = Math.max(...pauses.map(({ untilMs }) => untilMs ?? Number.POSITIVE_INFINITY));
  return Number.isFinite(endMs) ? nextOpen(policy, source, endMs - 1) : undefined;
}

/**
 * Undefined where the policy is well, or worse than was known: a missed slot may be. What was late
 * alone is over when it is late no more, also because its deadline was taken away. What was open is
 * over when it was settled, also where others are open since.
 */
function acknowledgementOf(
  health: PolicyHealth,
  acknowledged: Acknowledgement | undefined,
  { missedMs, late, open }: Pick<Facts, "missedMs" | "late"> & Pick<PolicyLine, "open">,
): Acknowledgement | undefined {
  const known = policyHealths.find((one) => one === acknowledged?.state);
  if (acknowledged === undefined || known === undefined || !needsPerson[health]) return undefined;
  const names = Object.keys(acknowledged.targets);
  const isOpenOver = open === undefined ? names.length === 1 : open.sinceMs > acknowledged.sinceMs;
  if (names.includes(openTarget) && isOpenOver) return undefined;
  const wasLateAlone = known === "late" && names.every((target) => target === "");
  if (wasLateAlone && (late === undefined || late.sinceMs > acknowledged.sinceMs)) return undefined;
  const isMissed = missedMs > acknowledged.sinceMs && rankOf("missed") < rankOf(known);
  return isMissed || rankOf(health) < rankOf(known) ? undefined : acknowledged;
}

function rankOf(health: PolicyHealth): number {
  return policyHealths.indexOf(health);
}

/** How a sync job, list or object is; undefined: nothing is known. */
export function targetHealth({ weight, last }: TargetState): Health | undefined {
  if (weight === "bad") return last.status === "unknown" ? "unknown" : "failing";
  const health = healthOfStatus[last.status];
  // A poll whose expectation is not met did its work, and what it found needs a person.
  return health ?? (weight === undefined ? undefined : "good");
}

function healthOf(
  found: Omit<PolicyLine, "health" | "troubled" | "acknowledged" | "isBehind">,
  areConflictsOver: boolean,
): PolicyHealth {
  const { pauses, worst, missedMs, unplannedMs, late, open } = found;
  if (pauses.some(({ cause }) => cause === "quarantine")) return "quarantined";
  const ended = worst && targetHealth(worst);
  const isLeft = open !== undefined || (ended === "conflicts" && !areConflictsOver);
  const waiting = ended === "blocked" ? ended : isLeft ? "conflicts" : undefined;
  if (pauses.length > 0) return late !== undefined ? "late" : (waiting ?? "paused");
  if (worst?.weight === "bad" && ended !== undefined && ended !== "good") return ended;
  if (missedMs !== undefined || ended === "missed") return "missed";
  if (late !== undefined) return "late";
  if (unplannedMs !== undefined) return "unplanned";
  if (waiting !== undefined) return waiting;
  if (ended === undefined) return "new";
  return ended === "good" || ended === "conflicts" ? "ok" : ended;
}

/** Whether a policy counts under a health: paused by a person and late also beside another one. */
export function hasHealth(line: PolicyLine, health: PolicyHealth): boolean {
  const isPaused = line.pauses.some(({ cause }) => cause === undefined);
  return line.health === health || (health === "paused" && isPaused) || (health === "late" && line.late !== undefined);
}

/** The pause that tells of a policy: where it is quarantined, no person's, else the first. */
export function pauseOf({ health, pauses }: Pick<PolicyLine, "health" | "pauses">): Pause | undefined {
  return health === "quarantined" ? pauses.find(({ cause }) => cause === "quarantine") : pauses[0];
}

/** What is unusual, and of what: `unusual: sync job 42 took 47m, usually 12m`. */
export function describeUnusual({ target, last }: NonNullable<PolicyLine["unusual"]>): string {
  return `unusual: ${targetWords({ kind: last.kind, target })} ${unusualWords(last.findings)}`;
}

/** An acknowledgement for machines. */
export function toAcknowledged(acknowledged: Acknowledgement | undefined) {
  if (acknowledged === undefined) return null;
  const { actor, note, sinceMs } = acknowledged;
  return { actor, note, since: new Date(sinceMs).toISOString() };
}

/** Who knows of it, and what: `acknowledged by ana: ticket 7`. */
export function acknowledgementWords({ actor, note }: Acknowledgement): string {
  return `acknowledged by ${actor}: ${note}`;
}

/** How many lines there are in each health, worst first, in its own or other words. */
export function countHealths(
  lines: readonly PolicyLine[],
  words: Readonly<Partial<Record<PolicyHealth, string>>> = {},
): string {
  const groups = Map.groupBy(lines, ({ health }) => health);
  return policyHealths
    .flatMap((health) => (groups.has(health) ? [`${groups.get(health)?.length} ${words[health] ?? health}`] : []))
    .join(", ");
}

/** When a policy is due, in a few characters. */
export function shortSchedule({ schedule, after }: Policy): string {
  if (after !== undefined) return `after ${after.policy}`;
  if (schedule === undefined) return "by hand";
  if (schedule.kind === "every") return `every ${formatDuration(schedule.everyMs)}`;
  if (schedule.kind === "once") return `once ${schedule.at.replace("T", " ").replace(/:00$/, "")}`;
  return schedule.expressions.join(" | ");
}

/** What a person must know of a policy beside its last outcome; empty: nothing. */
export function noteOf(line: DetailedLine, nowMs: number): string {
  const { late, policy, open } = line;
  const told = late === undefined ? "" : describeLate(late, policy, nowMs);
  const left = open === undefined ? "" : describeCounted(open, policy, nowMs);
  return [told, left, describeWaiting(line, nowMs), otherNote(line, nowMs)].filter(Boolean).join("; ");
}

/** Whose run waits for its service, and since when; empty: none does. */
export function describeWaiting(
  { policy, waitingMs }: Pick<PolicyLine, "policy" | "waitingMs">,
  nowMs: number,
): string {
  if (waitingMs === undefined) return "";
  return `its run of ${showClock(waitingMs, policy.timezone, nowMs)} waits until ${policy.service} answers`;
}

/** Which deadline a policy missed, and why. */
export function describeLate({ atMs, sinceMs, why }: Late, policy: Policy, nowMs: number): string {
  const clock = (instantMs: number) => showClock(instantMs, policy.timezone, nowMs);
  return `late ${sinceMs < atMs ? `since ${clock(sinceMs)}, last for` : "for"} ${clock(atMs)}: ${why}`;
}

function otherNote(line: DetailedLine, nowMs: number): string {
  const { policy, health, unplannedMs, slot, worst, unusual } = line;
  const clock = (instantMs: number) => showClock(instantMs, policy.timezone, nowMs);
  const pause = pauseOf(line);
  const { acknowledged } = line;
  if (acknowledged !== undefined) return `${acknowledgementWords(acknowledged)}, since ${clock(acknowledged.sinceMs)}`;
  if (pause !== undefined) {
    const until = pause.untilMs === null ? "" : `until ${clock(pause.untilMs)}, `;
    const paused = health === "paused" || health === "quarantined" ? "" : "paused ";
    return `${paused}${until}${pause.cause === undefined ? `by ${pause.actor}: ` : ""}${pause.note}`;
  }
  if (unplannedMs !== undefined)
    return `slot ${clock(unplannedMs)} is due for ${formatRoughly(nowMs - unplannedMs)} and not planned`;
  if (unusual !== undefined && !needsPerson[health]) return describeUnusual(unusual);
  const isNews = slot !== undefined && slot.slotMs > (worst?.newest.slotMs ?? 0);
  if (!isNews || (slot.state !== "missed" && slot.state !== "skipped"))
    return worst !== undefined && needsPerson[health] && (health !== "conflicts" || line.open === undefined)
      ? line.isOfSeveral
        ? targetWords({ kind: policy.action.kind, target: worst.target })
        : worst.last.reason
      : "";
  return `slot ${clock(slot.slotMs)} ${slot.state} (${slot.detail})${slot.note === undefined ? "" : `: ${slot.note}`}`;
}
