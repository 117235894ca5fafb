// What is planned between two times, over all policies: each slot, when its runs end, which runs of
// one sync job meet, in words and as data. By the real planner on a virtual clock. Called by
// `syncline plan`, the page of the next 24 hours and the API.
import { chainOf, type Policy, type PolicySet, targetsOf } from "../config/policy-set.ts";
import { coarseUnitMs, formatRoughly } from "../core/duration.ts";
import { type Interval, showClock, toIso } from "../core/instant.ts";
import type { Pause } from "../model/pause.ts";
import { parseTaskId } from "../model/task.ts";
import { usualMsOf } from "../model/unusual.ts";
import { deadlineOfSlot } from "../schedule/deadlines.ts";
import { type Assumptions, valueFor } from "../simulate/assumptions.ts";
import type { SimulationEvent } from "../simulate/events.ts";
import { concurrencyIn, simulate } from "../simulate/simulation.ts";
import { type Clash, SlotList, type SlotRow } from "../simulate/slot-list.ts";
import { readPauses } from "../store/pauses.ts";
import {
  type PolicyState,
  type ReadStates,
  readPolicyStates,
  type TargetState,
  usualDurationMs,
} from "../store/policy-states.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { batchesOf } from "../store/script.ts";
import { type RunInFlight, runsInFlight } from "../store/start-entry.ts";
import { endWords } from "./task-words.ts";

/** What Redis knows of the time ahead. */
export interface KnownAhead {
  /** Pauses and quarantines, also those that are over. */
  readonly pauses: readonly Pause[];
  /** How long runs of a policy usually take: the median of the newest 20 of each sync job. */
  readonly usualMs: ReadonlyMap<string, number>;
  /** The runs that go on now and whose usual duration is known. */
  readonly running: readonly RunNow[];
  readonly ended: NewestEnds;
}

/** The newest end of each target of followed policies, by `POLICY TARGET`. */
type NewestEnds = ReadonlyMap<string, TargetState>;

/** A run that goes on, when it would end as usual, and until when it goes on at least. */
export interface RunNow extends RunInFlight {
  readonly policy: string;
  readonly usualMs: number;
  readonly endsMs: number;
  readonly untilMs: number;
}

/** Reads what is in force, and how long the policies' runs take. */
export async function readKnownAhead(
  store: Store,
  { policies }: PolicySet,
  readStates: ReadStates = (names) => readPolicyStates(store, names),
): Promise<KnownAhead> {
  // A run that is not followed ends for Syncline when the service has taken its start.
  const followed = followedRuns(policies);
  const names = followed.map(({ name }) => name);
  const [pauses, states] = await Promise.all([readPauses(store), readStates(names)]);
  const ended = new Map(
    [...states].flatMap(([name, { targets }]) => targets.map((one) => [`${name} ${one.target}`, one] as const)),
  );
  return { pauses, usualMs: new Map(usualOf(states)), running: await readRunsNow(store, followed, states), ended };
}

/** Reads only how long runs usually take: all that `simulate` needs. */
export async function readUsualMs(store: Store, { policies }: PolicySet): Promise<Pick<KnownAhead, "usualMs">> {
  const usualMs = new Map<string, number>();
  // Some at a time: of thousands of states only a number each is kept.
  for (const batch of batchesOf(followedRuns(policies).map(({ name }) => name)))
    for (const [name, ms] of usualOf(await readPolicyStates(store, batch))) usualMs.set(name, ms);
  return { usualMs };
}

function followedRuns(policies: readonly Policy[]): readonly Policy[] {
  return policies.filter(({ action, follow }) => action.kind === "run" && follow.until !== "accepted");
}

function usualOf(states: ReadonlyMap<string, PolicyState>): readonly [string, number][] {
  return [...states].flatMap(([name, state]): [string, number][] => {
    const usualMs = usualDurationMs(state);
    return usualMs === undefined ? [] : [[name, rounded(usualMs)]];
  });
}

async function readRunsNow(
  store: Store,
  policies: readonly Policy[],
  states: ReadonlyMap<string, PolicyState>,
): Promise<readonly RunNow[]> {
  const syncJobs = policies.flatMap(({ name, action, service, repository = null }) => {
    const targets = targetsOf(action) ?? states.get(name)?.targets.map(({ target }) => target) ?? [];
    return targets.map((target) => ({ service, repository, target }));
  });
  const bySyncJob = new Map(syncJobs.map((one) => [JSON.stringify(one), one]));
  const [nowMs, runs] = await Promise.all([redisTimeMs(store), runsInFlight(store, [...bySyncJob.values()])]);
  return runs.flatMap((run) => {
    const policy = parseTaskId(run.id)?.policy ?? "";
    const known = states.get(policy)?.targets.find(({ target }) => target === run.target);
    const usualMs = known === undefined ? undefined : usualMsOf(known.runs);
    if (usualMs === undefined) return [];
    const endsMs = run.sentAtMs + usualMs;
    return [{ ...run, policy, usualMs, endsMs, untilMs: Math.max(endsMs, nowMs) }];
  });
}

/** More says nothing about the next run. */
function rounded(durationMs: number): number {
  const unitMs = coarseUnitMs(durationMs);
  return Math.max(1, Math.round(durationMs / unitMs)) * unitMs;
}

/** What is asked. `shown`: the policies whose slots are listed. */
export interface TimeLineQuestion {
  readonly set: PolicySet;
  readonly shown: readonly Policy[];
  /** Both ends are part of it. */
  readonly range: Interval;
  readonly pauses: readonly Pause[];
  readonly running: readonly RunNow[];
  /** Undefined: Redis was not asked. */
  readonly ended?: NewestEnds | undefined;
  readonly assumptions: Assumptions;
  /** Whether durations without a policy's name hold for those that have none. */
  readonly isDurationAssumed: boolean;
  readonly rowsMax: number;
  /** Goes on without rows until so many slots were seen; otherwise rows end it. */
  readonly seenMax?: number;
}

/** The slots in the order in which they begin. */
export interface TimeLine {
  readonly rows: readonly SlotRow[];
  /** From when on slots are left out, as there are more than asked for; undefined: none is. */
  readonly cutMs: number | undefined;
  /** The same for slots that are not even seen. */
  readonly seenUntilMs: number | undefined;
  /** The listed policies whose ends are not known, nor when their followers begin. */
  readonly untimed: ReadonlySet<string>;
  /** Runs of the listed policies that go on now and would reach into the time asked for. */
  readonly running: readonly RunNow[];
  /** The same by their sync jobs. */
  readonly runningBySyncJob: ReadonlyMap<string, readonly RunNow[]>;
}

/** The runs that go on now and would still do so when a slot begins; those expected are clashes. */
export function runsMet(
  { policy, state, slotMs, plannedMs, clashes }: SlotRow,
  { running, runningBySyncJob }: TimeLine,
): readonly RunNow[] {
  if (state !== "started" || running.length === 0) return [];
  const met = syncJobKeysOf(policy).flatMap((job) => runningBySyncJob.get(job) ?? []);
  return met.filter(
    (run) => slotMs > run.sentAtMs && plannedMs < run.endsMs && !clashes.some(({ target }) => target === run.target),
  );
}

const slotsMax = 1_000_000;
/** Runs that began so long before the time asked for are seen, too. */
const warmUpMax = 86_400_000;
/** How long tasks of the last slot may wait before they start. */
const startsWithinMs = 3_600_000;

/** @throws UsageError when there are too many slots. */
export function readTimeLine(question: TimeLineQuestion): TimeLine {
  const events = timeLineEvents(question);
  for (let next = events.next(); ; next = events.next()) if (next.done) return next.value;
}

/**
 * The same event by event, for a caller that counts them, or gives others their turn; undefined:
 * one outside of the time asked for.
 */
export function* timeLineEvents(question: TimeLineQuestion): Generator<SimulationEvent | undefined, TimeLine, void> {
  const { set, range, pauses, rowsMax, seenMax } = question;
  const assumptions = { ...question.assumptions, endedAtMs: endedIn(question) };
  const byName = new Map(set.policies.map((policy) => [policy.name, policy]));
  const policies = concerned(question, byName);
  const names = new Set(question.shown.map(({ name }) => name));
  const warmUpMs = policies.reduce((most, policy) => Math.max(most, valueFor(assumptions.durations, policy).mostMs), 0);
  // The planner leaves the very instant of its beginning out.
  const fromMs = range.fromMs - 1 - Math.min(warmUpMs, warmUpMax);
  const time = { fromMs, toMs: range.toMs, outages: [], pauses };
  const list = new SlotList(rowsMax);
  let [cutMs, seenUntilMs]: (number | undefined)[] = [];
  let seen = 0;
  // One that stops by itself needs no refusal beforehand.
  const most = seenMax === undefined ? slotsMax : Number.POSITIVE_INFINITY;
  for (const event of simulate(policies, { time, assumptions, concurrencyOf: concurrencyIn(set), slotsMax: most })) {
    const atMs = event.event === "planned" ? event.nowMs : event.atMs;
    if (seenUntilMs !== undefined && atMs > seenUntilMs + startsWithinMs) break;
    if (event.event !== "planned") list.add(event);
    else if (names.has(event.policy.name)) {
      const plans = event.plans.filter(({ slotMs }) => slotMs >= range.fromMs);
      seen += plans.length;
      if (list.rows.length + plans.length > rowsMax) cutMs ??= atMs;
      if (cutMs === undefined) list.add({ ...event, plans });
      else if (seen > (seenMax ?? 0)) seenUntilMs ??= atMs;
    }
    yield atMs >= range.fromMs && seenUntilMs === undefined ? event : undefined;
  }
  const isTimed = ({ action, name }: Policy) =>
    question.isDurationAssumed || action.kind !== "run" || assumptions.durations.byPolicy.has(name);
  // Of a chain whose first policy is not in this set, the time before is not known.
  const isChainTimed = (chain: readonly Policy[]) => chain.every(isTimed) && chain.at(-1)?.after === undefined;
  const untimed = new Set(
    question.shown.filter((policy) => !isChainTimed(chainOf(policy, byName))).map(({ name }) => name),
  );
  const shownJobs = new Set(question.shown.flatMap(syncJobKeysOf));
  const running = question.running.filter((run) => run.untilMs >= range.fromMs && shownJobs.has(syncJobKey(run)));
  const runningBySyncJob = Map.groupBy(running, syncJobKey);
  return { rows: list.rows, cutMs, seenUntilMs, untimed, running, runningBySyncJob };
}

/** What lies before the time asked for ended as Redis says; what is not known is assumed. */
function endedIn({ range, ended }: TimeLineQuestion): NonNullable<Assumptions["endedAtMs"]> {
  return ({ name }, { target, slotMs }) => {
    const state = ended?.get(`${name} ${target}`);
    if (state === undefined || state.newest.finishedMs > range.fromMs) return undefined;
    const { newest, lastSuccessMs = 0, lastBadMs = 0 } = state;
    // One that was skipped or missed says nothing of the run before it.
    const isUnrun = (newest.status === "skipped" || newest.status === "missed") && slotMs !== newest.slotMs;
    const ranMs = Math.max(lastSuccessMs, lastBadMs);
    if (isUnrun) return ranMs > slotMs ? ranMs : undefined;
    return slotMs <= newest.slotMs ? newest.finishedMs : undefined;
  };
}

/**
 * The policies to simulate: those shown, those that start the same sync jobs, what both need, and
 * their chains.
 */
function concerned({ set, shown }: TimeLineQuestion, byName: ReadonlyMap<string, Policy>): readonly Policy[] {
  if (shown === set.policies) return shown;
  const jobs = new Set(shown.flatMap(syncJobKeysOf));
  const meant = [...shown, ...set.policies.filter((policy) => syncJobKeysOf(policy).some((job) => jobs.has(job)))];
  const needed = meant.flatMap(({ needs }) => byName.get(needs?.policy ?? "") ?? []);
  const names = new Set([...meant, ...needed].flatMap((policy) => chainOf(policy, byName).map(({ name }) => name)));
  return set.policies.filter(({ name }) => names.has(name));
}

function syncJobKeysOf({ action, service, repository }: Policy): string[] {
  if (action.kind !== "run" && action.kind !== "delete") return [];
  return (targetsOf(action) ?? []).map((target) => syncJobKey({ service, repository: repository ?? null, target }));
}

function syncJobKey({ service, repository, target }: Pick<RunNow, "service" | "repository" | "target">): string {
  return JSON.stringify([service, repository, target]);
}

/** When its runs are over: only runs take time, and only some are known. */
export function endOf({ policy, state, endsMs }: SlotRow, { untimed }: TimeLine): number | undefined {
  const isKnown = state === "started" && policy.action.kind === "run" && !untimed.has(policy.name);
  return isKnown ? endsMs : undefined;
}

/** What its runs meet, as far as it is known when they begin. */
export function clashesOf({ policy, clashes }: SlotRow, { untimed }: TimeLine): readonly Clash[] {
  return untimed.has(policy.name) && policy.after !== undefined ? [] : clashes;
}

/** The deadline that a slot misses when its runs end as expected; undefined: none. */
export function deadlineMissed(row: SlotRow, line: TimeLine): number | undefined {
  const endsMs = endOf(row, line);
  const atMs = endsMs === undefined ? undefined : deadlineOfSlot(row.policy, row.slotMs)?.atMs;
  return atMs !== undefined && endsMs !== undefined && endsMs > atMs ? atMs : undefined;
}

/** A run that goes on now, and when it will probably end. */
export function runningWords(run: RunNow, zone: string | undefined, besideMs: number): string {
  return `Sync job ${run.target} of ${run.policy} goes on: ${endWords(run, zone, besideMs)}.`;
}

/** What is expected of a slot: why it falls away, when it begins, what it meets. */
export function expectedWords(row: SlotRow, line: TimeLine, zone: string | undefined): string {
  const { policy, slotMs, plannedMs, state, detail } = row;
  if (state !== "started") return detail;
  const after = policy.after?.policy;
  const begins = line.untimed.has(policy.name) ? "" : `about ${showClock(plannedMs, zone, slotMs)}, `;
  const [first, ...more] = clashesOf(row, line);
  const rest = more.length === 0 ? "" : `, and ${more.length} more`;
  const [met] = runsMet(row, line);
  const deadlineMs = deadlineMissed(row, line);
  const parts = [
    ...(after === undefined ? [] : [`${begins}after ${after}`]),
    ...(first === undefined ? [] : [`${clashWords(first, row, zone)}${rest}`]),
    ...(met === undefined
      ? []
      : [`sync job ${met.target} is still at work for ${met.policy} (overlap: ${policy.overlap})`]),
    ...(deadlineMs === undefined ? [] : [`ends after its deadline, ${showClock(deadlineMs, zone, slotMs)}`]),
  ];
  return parts.join("; ");
}

function clashWords(
  { target, what, by, waitMs }: Clash,
  { policy, slotMs }: SlotRow,
  zone: string | undefined,
): string {
  const other = by === undefined ? undefined : parseTaskId(by);
  const run = other === undefined ? "another run" : `${other.policy} of ${showClock(other.slotMs, zone, slotMs)}`;
  const rule = ` (overlap: ${policy.overlap})`;
  const job = `sync job ${target}`;
  if (what === "too-late") return `${job} comes too late to start`;
  if (what === "waits") return `${job} waits ${formatRoughly(waitMs)} for another run${rule}`;
  if (what === "skipped") return `${job} is skipped, as ${run} goes on${rule}`;
  return `${job} runs beside ${run}${policy.overlap === "allow" ? rule : ", which is not followed any more"}`;
}

/** The runs that go on now, for machines. */
export function runningOf({ running }: TimeLine) {
  return running.map(({ id, policy, target, sentAtMs, usualMs, endsMs }) => {
    return { taskId: id, policy, target, sent: toIso(sentAtMs), usualMs, endsAbout: toIso(endsMs) };
  });
}

/** The slots for machines. Instants are ISO 8601. */
export function slotsOf(line: TimeLine) {
  return line.rows.map((row) => {
    const { policy, slotMs, plannedMs, state, detail } = row;
    const isTimed = !line.untimed.has(policy.name);
    return {
      policy: policy.name,
      service: policy.service,
      timezone: policy.timezone,
      slot: toIso(slotMs),
      begins: policy.after === undefined || isTimed ? toIso(plannedMs) : null,
      ends: toIso(endOf(row, line)),
      state,
      detail,
      kind: policy.action.kind,
      targets: targetsOf(policy.action) ?? null,
      clashes: clashesOf(row, line),
      meetsRunning: runsMet(row, line).map(({ id }) => id),
      deadlineMissed: toIso(deadlineMissed(row, line)),
    };
  });
}
