// What is planned between two times, over all policies: each slot, when its runs end, and which
// runs of one sync job meet. By the real planner on a virtual clock. Called by `syncline plan` and
// by next-day.ts.

import { type Policy, type PolicySet, targetsOf } from "../config/policy-set.ts";
import type { Pause } from "../model/pause.ts";
import { parseTaskId } from "../model/task-id.ts";
import { usualMsOf } from "../model/unusual.ts";
import { type Assumptions, valueFor } from "../simulate/assumptions.ts";
import type { SimulationEvent } from "../simulate/events.ts";
import { concurrencyIn, simulate } from "../simulate/simulation.ts";
import { SlotList, type SlotRow } from "../simulate/slot-list.ts";
import type { Interval } from "../simulate/virtual-ticks.ts";
import { type PolicyState, readPolicyStates, usualDurationMs } from "../store/policy-states.ts";
import { readPauses } from "../store/quarantines.ts";
import type { Store } from "../store/redis.ts";
import { type RunInFlight, runsInFlight } from "../store/start-entry.ts";

/** What Redis knows of the time ahead. */
export interface KnownAhead {
  /** Pauses and quarantines, also those that are over. */
  readonly pauses: readonly Pause[];
  /** How long runs of a policy usually take: the median of the newest 20 of each sync job. */
  readonly usualMs: ReadonlyMap<string, number>;
  /** The runs that go on now and whose usual duration is known. */
  readonly running: readonly RunNow[];
}

/** A run that goes on, and when it would end as usual. */
export interface RunNow extends RunInFlight {
  readonly policy: string;
  readonly usualMs: number;
  readonly endsMs: number;
}

/** Reads what is in force, and how long the policies' runs take. */
export async function readKnownAhead(store: Store, { policies }: PolicySet): Promise<KnownAhead> {
  // A run that is not followed ends for Syncline when the service has taken its start.
  const followed = policies.filter(({ action, follow }) => action.kind === "run" && follow.until !== "accepted");
  const names = followed.map(({ name }) => name);
  const [pauses, states] = await Promise.all([readPauses(store), readPolicyStates(store, names)]);
  const usual = [...states].flatMap(([name, state]): [string, number][] => {
    const usualMs = usualDurationMs(state);
    return usualMs === undefined ? [] : [[name, rounded(usualMs)]];
  });
  return { pauses, usualMs: new Map(usual), running: await readRunning(store, followed, states) };
}

async function readRunning(
  store: Store,
  policies: readonly Policy[],
  states: ReadonlyMap<string, PolicyState>,
): Promise<readonly RunNow[]> {
  const syncJobs = policies.flatMap(({ name, action, service, repository = null }) => {
    const targets = targetsOf(action) ?? states.get(name)?.targets.map(({ target }) => target) ?? [];
    return targets.map((target) => ({ service, repository, target }));
  });
  const bySyncJob = new Map(syncJobs.map((one) => [JSON.stringify(one), one]));
  return (await runsInFlight(store, [...bySyncJob.values()])).flatMap((run) => {
    const policy = parseTaskId(run.id)?.policy ?? "";
    const known = states.get(policy)?.targets.find(({ target }) => target === run.target);
    const usualMs = known === undefined ? undefined : usualMsOf(known.runs);
    return usualMs === undefined ? [] : [{ ...run, policy, usualMs, endsMs: run.sentAtMs + usualMs }];
  });
}

/** To seconds, and to minutes from ten on: more says nothing about the next run. */
function rounded(durationMs: number): number {
  const unitMs = durationMs < 600_000 ? 1_000 : 60_000;
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
}

/** The runs that go on now and would still do so when a slot begins; those expected are clashes. */
export function runsMet(
  { policy, state, slotMs, plannedMs, clashes }: SlotRow,
  { running }: TimeLine,
): readonly RunNow[] {
  const jobs = new Set(state === "started" ? syncJobsOf(policy) : []);
  return running.filter(
    (run) =>
      jobs.has(syncJobKey(run)) &&
      slotMs > run.sentAtMs &&
      plannedMs < run.endsMs &&
      !clashes.some(({ target }) => target === run.target),
  );
}

const slotsMax = 1_000_000;
/** Runs that began so long before the time asked for are seen, too. */
const warmUpMax = 86_400_000;
/** How long tasks of the last slot may wait before they start. */
const settledWithinMs = 3_600_000;

/** @throws UsageError when there are too many slots. */
export function readTimeLine(question: TimeLineQuestion): TimeLine {
  const steps = followTimeLine(question);
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value;
}

/** The same event by event, for a caller that counts them, or gives others their turn. */
export function* followTimeLine(question: TimeLineQuestion): Generator<SimulationEvent, TimeLine, void> {
  const { set, range, pauses, assumptions, rowsMax, seenMax } = question;
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
    if (seenUntilMs !== undefined && atMs > seenUntilMs + settledWithinMs) break;
    if (event.event !== "planned") list.add(event);
    else if (names.has(event.policy.name)) {
      const plans = event.plans.filter(({ slotMs }) => slotMs >= range.fromMs);
      seen += plans.length;
      if (list.rows.length + plans.length > rowsMax) cutMs ??= atMs;
      if (cutMs === undefined) list.add({ ...event, plans });
      else if (seen > (seenMax ?? 0)) seenUntilMs ??= atMs;
    }
    if (atMs >= range.fromMs && seenUntilMs === undefined) yield event;
  }
  const isTimed = ({ action, name }: Policy) =>
    question.isDurationAssumed || action.kind !== "run" || assumptions.durations.byPolicy.has(name);
  const untimed = new Set(
    question.shown.filter((policy) => !chainOf(policy, byName).every(isTimed)).map(({ name }) => name),
  );
  const shownJobs = new Set(question.shown.flatMap(syncJobsOf));
  const running = question.running.filter((run) => run.endsMs >= range.fromMs && shownJobs.has(syncJobKey(run)));
  return { rows: list.rows, cutMs, seenUntilMs, untimed, running };
}

/** The policies to simulate: those shown, those that start the same sync jobs, and their chains. */
function concerned({ set, shown }: TimeLineQuestion, byName: ReadonlyMap<string, Policy>): readonly Policy[] {
  const jobs = new Set(shown.flatMap(syncJobsOf));
  const meant = [...shown, ...set.policies.filter((policy) => syncJobsOf(policy).some((job) => jobs.has(job)))];
  const names = new Set(meant.flatMap((policy) => chainOf(policy, byName).map(({ name }) => name)));
  return set.policies.filter(({ name }) => names.has(name));
}

function syncJobsOf({ action, service, repository }: Policy): string[] {
  if (action.kind !== "run") return [];
  return (targetsOf(action) ?? []).map((target) => syncJobKey({ service, repository: repository ?? null, target }));
}

function syncJobKey({ service, repository, target }: Pick<RunNow, "service" | "repository" | "target">): string {
  return JSON.stringify([service, repository, target]);
}

/** A policy and those that it follows, directly or not. */
function chainOf(policy: Policy, byName: ReadonlyMap<string, Policy>): Policy[] {
  const before = policy.after && byName.get(policy.after.policy);
  return before === undefined ? [policy] : [policy, ...chainOf(before, byName)];
}
