// The scheduler's looks on a virtual clock: the same agenda, the same calendar, the same planDue; only the ledger and the waiting are
// left out, since nobody else plans and no time passes. Pure; called by simulation.ts and by `plan`.
//
// Policies are planned apart from each other, so each has an agenda of its own, and a heap says whose turn is next.
import type { Policy } from "../config/policy-set.ts";
import { MinHeap } from "../core/min-heap.ts";
import { Agenda, type Entry } from "../schedule/agenda.ts";
import { planDue } from "../schedule/plan-batches.ts";
import type { SlotPlan } from "../schedule/plan-slots.ts";
import type { Pause } from "../tasks/pause.ts";

/** An interval of instants, milliseconds UTC: its start is inside, its end is not. */
export interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The virtual time. Slots are those after `fromMs`, up to and including `toMs`. */
export interface VirtualTime extends Interval {
  /** When no scheduler runs: what is due then is planned at the end. None may end after `toMs`. */
  readonly outages: readonly Interval[];
  readonly pauses: readonly Pause[];
}

/** One look at one policy. */
export interface VirtualLook {
  readonly nowMs: number;
  readonly policy: Policy;
  readonly plans: readonly SlotPlan[];
}

/** Every look that finds something due, in the order of time; at the same instant in the order of the policies. */
export function* virtualLooks(policies: readonly Policy[], time: VirtualTime): Generator<VirtualLook, void, void> {
  const lookAt = lookTimes(time.outages);
  const heap = new MinHeap<Planned>();
  const wait = (planned: Planned) => {
    const slotMs = planned.agenda.earliestMs();
    if (slotMs !== undefined && slotMs <= time.toMs) heap.push(lookAt(slotMs), planned);
  };
  for (const [place, policy] of policies.entries()) wait({ place, agenda: agendaOf(policy, time.fromMs) });
  for (;;) {
    const nowMs = heap.leastRank;
    if (nowMs === undefined) return;
    // The scheduler goes through its list in the order of the files: who comes first gets a sync job that several want.
    for (const planned of takeAll(heap, nowMs)) {
      for (const entry of planned.agenda.due(nowMs)) yield* look(entry, planned.agenda, { nowMs, pauses: time.pauses });
      wait(planned);
    }
  }
}

/** One policy on its own agenda; `place`: where it stands in the files. */
interface Planned {
  readonly place: number;
  readonly agenda: Agenda;
}

function takeAll(heap: MinHeap<Planned>, nowMs: number): Planned[] {
  const taken: Planned[] = [];
  while (heap.leastRank === nowMs) {
    const next = heap.pop();
    if (next !== undefined) taken.push(next);
  }
  return taken.sort((a, b) => a.place - b.place);
}

function* look(entry: Entry, agenda: Agenda, moment: { nowMs: number; pauses: readonly Pause[] }) {
  const due = planDue(entry, moment);
  if (due === undefined) return;
  agenda.moveMark(entry, due.newMarkMs);
  yield { nowMs: moment.nowMs, policy: entry.policy, plans: due.plans };
}

function agendaOf(policy: Policy, fromMs: number): Agenda {
  const agenda = new Agenda();
  agenda.adopt(agenda.compare([policy]), new Map(), fromMs);
  return agenda;
}

/** When a slot is looked at: at once, or when the outage ends that it falls into. */
function lookTimes(outages: readonly Interval[]): (slotMs: number) => number {
  const inOrder = outages.toSorted((a, b) => a.fromMs - b.fromMs);
  return (slotMs) => {
    let atMs = slotMs;
    // In order: an outage that begins before another one ends prolongs it.
    for (const { fromMs, toMs } of inOrder) if (fromMs <= atMs && atMs < toMs) atMs = toMs;
    return atMs;
  };
}
