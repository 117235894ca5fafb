// Counts the events of a simulation by policy, holds what ended well against deadlines, and keeps
// the first problems. Fed by `simulate`.
import { type Policy, targetsOf } from "../config/policy-set.ts";
import { formatRoughly } from "../core/duration.ts";
import { showClock } from "../core/instant.ts";
import type { Deadline } from "../model/deadline.ts";
import { weightOf } from "../model/outcome.ts";
import { deadlinesOf, type EndedWell, madeAt } from "../schedule/deadlines.ts";
import { onTimeMs } from "../schedule/plan-slots.ts";
import type { SimulatedPlan, SimulationEvent } from "./events.ts";
import type { VirtualTime } from "./virtual-ticks.ts";

type Skip = Extract<SimulatedPlan, { readonly state: "skipped" }>["reason"];
type Miss = Exclude<Extract<SimulatedPlan, { readonly state: "missed" }>["reason"], "redis-loss">;

/** The counts of one policy, or of all: slots with their endings, then tasks. */
export type Counts = ReturnType<typeof noCounts>;

/** A problem for the operator. `target`: undefined when it is about the whole slot. */
export interface SimulatedProblem {
  readonly policy: Policy;
  readonly slotMs: number;
  readonly target: string | undefined;
  readonly problem: "missed" | "skipped" | "overlap" | "too-late" | "at-once" | "failed" | "timed-out" | "late";
  readonly why: string;
}

/** Counts of zero. */
export function noCounts() {
  const skipped = { blackout: 0, holiday: 0, paused: 0, quarantine: 0, "stale-input": 0, predecessor: 0, removed: 0 };
  const missed = { "catch-up-none": 0, "outside-window": 0, "catch-up-cap": 0, "after-within": 0 };
  return {
    slots: 0,
    started: 0,
    /** Started slots that were planned more than `onTimeMs` late; never those of followers. */
    late: 0,
    coalesced: 0,
    skipped: skipped satisfies Record<Skip, number>,
    missed: missed satisfies Record<Miss, number>,
    /** Tasks whose request was sent. */
    runs: 0,
    /** Those of them that failed, or went on after their deadline. */
    ended: { failed: 0, "timed-out": 0 },
    /** Tasks that were not started: their sync job was busy, or it was past their start-by time. */
    notStarted: { overlap: 0, "too-late": 0 },
    /** Tasks that waited behind a run of their sync job (overlap: queue), and for a free worker. */
    waited: { behindRun: 0, forWorker: 0 },
    longestWaitMs: 0,
    /** Tasks whose sync job was running: skipped, made to wait, or started beside the run. */
    overlaps: 0,
    /** Runs that started beside another run of the same sync job. */
    atOnce: 0,
    deadlines: { kept: 0, late: 0 },
  };
}

/** The totals of one simulation. */
export class Totals {
  readonly all = noCounts();
  readonly byPolicy: ReadonlyMap<string, Counts>;
  readonly problems: SimulatedProblem[] = [];
  problemsCount = 0;
  readonly #problemsMax: number;

  /** `problemsMax`: how many problems are kept; all are counted. */
  constructor(policies: readonly Policy[], problemsMax: number) {
    this.byPolicy = new Map(policies.map(({ name }) => [name, noCounts()]));
    this.#problemsMax = problemsMax;
  }

  add(event: SimulationEvent): void {
    const { policy } = event;
    addTo(this.all, event);
    const counts = this.byPolicy.get(policy.name);
    if (counts !== undefined) addTo(counts, event);
    if (event.event === "masks") return;
    if (event.event === "planned") {
      for (const plan of event.plans) {
        const problem = slotProblem(policy, plan);
        if (problem !== undefined) this.addProblem({ policy, slotMs: plan.slotMs, target: undefined, ...problem });
      }
      return;
    }
    const { slotMs, target } = event.task;
    for (const problem of taskProblems(event)) this.addProblem({ policy, slotMs, target, ...problem });
  }

  addProblem(problem: SimulatedProblem): void {
    this.problemsCount += 1;
    if (this.problems.length < this.#problemsMax) this.problems.push(problem);
  }

  addDeadline({ name }: Policy, isKept: boolean): void {
    for (const counts of [this.all, this.byPolicy.get(name)])
      if (counts !== undefined) counts.deadlines[isKept ? "kept" : "late"] += 1;
  }
}

function addTo(counts: Counts, event: SimulationEvent): void {
  if (event.event === "planned") for (const plan of event.plans) addPlan(counts, plan, event);
  if (event.event === "not-started") {
    counts.notStarted[event.reason] += 1;
    if (event.reason === "overlap") counts.overlaps += 1;
  }
  if (event.event !== "started") return;
  const { status, behindMs, turnMs, atOnceWith } = event;
  counts.runs += 1;
  if (status === "failed" || status === "timed-out") counts.ended[status] += 1;
  if (behindMs > 0) counts.waited.behindRun += 1;
  if (turnMs > 0) counts.waited.forWorker += 1;
  counts.longestWaitMs = Math.max(counts.longestWaitMs, turnMs + behindMs);
  if (atOnceWith !== undefined) counts.atOnce += 1;
  if (atOnceWith !== undefined || behindMs > 0) counts.overlaps += 1;
}

function addPlan(counts: Counts, plan: SimulatedPlan, { nowMs, policy }: { nowMs: number; policy: Policy }): void {
  counts.slots += 1;
  if (plan.state === "started" && policy.after === undefined && nowMs - plan.slotMs > onTimeMs) counts.late += 1;
  if (plan.state === "skipped") counts.skipped[plan.reason] += 1;
  else if (plan.state !== "missed") counts[plan.state] += 1;
  else if (plan.reason !== "redis-loss") counts.missed[plan.reason] += 1;
}

type Problem = Pick<SimulatedProblem, "problem" | "why">;

function taskProblems(event: Extract<SimulationEvent, { readonly event: "started" | "not-started" }>): Problem[] {
  if (event.event === "not-started") {
    const isBusy = event.reason === "overlap";
    const why = isBusy ? `${event.holder} is still running` : "its turn comes after its start-by time";
    return [{ problem: event.reason, why }];
  }
  const { atOnceWith, status } = event;
  const problems: Problem[] = [];
  if (atOnceWith !== undefined)
    problems.push({ problem: "at-once", why: `starts while ${atOnceWith} is still going on` });
  if (status === "failed") problems.push({ problem: status, why: "assumed to fail" });
  if (status === "timed-out") problems.push({ problem: status, why: "goes on after its deadline" });
  return problems;
}

/** Missed, or not started although its predecessor did. Skips by the operator are no problems. */
function slotProblem({ catchUp }: Policy, plan: SimulatedPlan): Problem | undefined {
  if (plan.state === "skipped")
    return plan.reason === "stale-input" || ("isProblem" in plan && plan.isProblem)
      ? { problem: "skipped", why: plan.note }
      : undefined;
  if (plan.state !== "missed") return undefined;
  const why =
    plan.reason === "after-within"
      ? `${plan.note} (after.within)`
      : `no scheduler planned it in time (${plan.reason}, catchUp: ${catchUp})`;
  return { problem: "missed", why };
}

interface Facts {
  readonly slots: number[];
  /** Those of them that blackouts and holidays skipped. */
  readonly closed: Set<number>;
  readonly ends: EndedWell[];
  /** The sync jobs that masks were assumed to name. */
  readonly targets: Set<string>;
}

/** The deadlines of one simulation. */
export class DeadlineMeter {
  readonly #seen: ReadonlyMap<Policy, Facts>;

  constructor(policies: readonly Policy[]) {
    const watched = policies.filter(({ expect }) => expect !== undefined);
    this.#seen = new Map(watched.map((policy) => [policy, noFacts()]));
  }

  add(event: SimulationEvent): void {
    const seen = this.#seen.get(event.policy);
    if (seen === undefined) return;
    if (event.event === "planned") for (const plan of event.plans) addSlot(plan, seen);
    if (event.event !== "started") return;
    const { status, heldUntilMs: endedMs } = event;
    const { target, slotMs } = event.task;
    seen.targets.add(target);
    if (weightOf({ status, reason: "" }) === "success") seen.ends.push({ target, slotMs, endedMs });
  }

  /** Counts the deadlines whose slots were all simulated, and notes those that are missed. */
  judge({ fromMs, toMs }: Pick<VirtualTime, "fromMs" | "toMs">, totals: Totals): void {
    for (const [policy, seen] of this.#seen) {
      // A slot at this very instant is not simulated.
      const beganMs = policy.expect?.kind === "within" ? fromMs + 1 : fromMs;
      const simulated: Deadline[] = [];
      let afterMs = fromMs;
      while (afterMs < toMs) {
        const { deadlines, doneMs } = deadlinesOf(policy, { afterMs, untilMs: toMs });
        simulated.push(...deadlines.filter((deadline) => deadline.fromMs >= beganMs));
        afterMs = doneMs;
      }
      for (const deadline of withEnds(policy, simulated, seen)) judgeOne(policy, deadline, seen, totals);
    }
  }
}

function noFacts(): Facts {
  return { slots: [], closed: new Set(), ends: [], targets: new Set() };
}

function addSlot(plan: SimulatedPlan, { slots, closed }: Facts): void {
  slots.push(plan.slotMs);
  const isClosed = plan.state === "skipped" && (plan.reason === "blackout" || plan.reason === "holiday");
  if (isClosed) closed.add(plan.slotMs);
}

/** A follower's closed times count when its predecessor ends: the slot's instant does not tell. */
function isAllClosed({ after, expect }: Policy, { fromMs, atMs }: Deadline, { slots, closed }: Facts): boolean {
  if (after === undefined || closed.size === 0) return false;
  if (expect?.kind === "within") return closed.has(fromMs);
  const its = slots.filter((slotMs) => slotMs >= fromMs && slotMs <= atMs);
  return its.length > 0 && its.every((slotMs) => closed.has(slotMs));
}

/** `endedWellMs`: when it was met, also later. */
interface MadeDeadline extends Deadline {
  readonly endedWellMs: number | undefined;
}

/** Finds when each was met: from the last one back, so that it looks at each end once. */
function withEnds({ action }: Policy, deadlines: readonly Deadline[], { ends, targets }: Facts): MadeDeadline[] {
  const named = targetsOf(action) ?? [...targets];
  const left = ends.toSorted((a, b) => a.slotMs - b.slotMs);
  const firsts = new Map<string, EndedWell>();
  const made = deadlines.toReversed().map(({ fromMs, atMs }) => {
    for (let end = left.at(-1); end !== undefined && end.slotMs >= fromMs; end = left.at(-1)) {
      const first = firsts.get(end.target);
      if (first === undefined || end.endedMs < first.endedMs) firsts.set(end.target, end);
      left.pop();
    }
    return { fromMs, atMs, endedWellMs: madeAt(fromMs, named, [...firsts.values()]) };
  });
  return made.reverse();
}

function judgeOne(policy: Policy, deadline: MadeDeadline, seen: Facts, totals: Totals): void {
  const { fromMs, atMs, endedWellMs } = deadline;
  const isKept = endedWellMs !== undefined && endedWellMs <= atMs;
  if (!isKept && isAllClosed(policy, deadline, seen)) return;
  totals.addDeadline(policy, isKept);
  if (isKept) return;
  const by = showClock(atMs, policy.timezone, fromMs);
  const later = endedWellMs === undefined ? "" : `, but ${formatRoughly(endedWellMs - atMs)} later`;
  const slotMs = seen.slots.findLast((slot) => slot >= fromMs && slot <= atMs) ?? atMs;
  totals.addProblem({ policy, slotMs, target: undefined, problem: "late", why: `has not ended well by ${by}${later}` });
}
