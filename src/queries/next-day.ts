// The time ahead, for the page and the API: each service's slots, what falls away, which runs meet,
// and about how many requests that makes. By the planner itself, with usual durations. Bounded:
// with too many slots, rows end first, then the counts, and both are said.

import type { PolicySet } from "../config/policy-set.ts";
import { getOrMake } from "../core/get-or-make.ts";
import type { Interval } from "../core/instant.ts";
import { createChainSource } from "../schedule/slots.ts";
import { type Assumptions, exactly } from "../simulate/assumptions.ts";
import type { SimulationEvent } from "../simulate/events.ts";
import { type BusyMinute, MinuteMeter } from "../simulate/load-meter.ts";
import { RequestMeter } from "../simulate/request-meter.ts";
import { redisTimeMs } from "../store/redis.ts";
import { batchesOf } from "../store/script.ts";
import { type QueryContext, seenPause } from "./query-context.ts";
import { readKnownAhead, type TimeLine, timeLineEvents } from "./time-line.ts";

/** A quarter of an hour, or an hour, of one service. */
export interface Stretch {
  readonly fromMs: number;
  slots: number;
  /** Slots that a blackout, a holiday, a pause or the catch-up keeps from starting. */
  away: number;
  /** Tasks that meet a run of their sync job. */
  meets: number;
  /** About how many requests are sent. */
  requests: number;
}

/** One service in the time ahead. */
export interface ServiceAhead {
  readonly service: string;
  readonly policies: ReadonlySet<string>;
  readonly quarters: readonly Stretch[];
  /** The sum of all. */
  readonly all: Stretch;
}

/** The time ahead. */
export interface NextDay {
  readonly nowMs: number;
  readonly range: Interval;
  /** The zone of most policies. */
  readonly timezone: string;
  readonly line: TimeLine;
  /** By name; those without a slot are left out. */
  readonly services: readonly ServiceAhead[];
  readonly peaks: readonly BusyMinute[];
}

const quarterMs = 900_000;
const hourMs = 3_600_000;
const rowsMax = 2_000;
/** About a second and a half of work. */
const seenMax = 100_000;
const peaksShown = 5;
/** Between two turns of others: a few milliseconds. */
const [policiesAtOnce, eventsAtOnce] = [200, 500];

/**
 * Looks ahead so many hours from now; what it counts begins with the hour that goes on. It calls
 * `rest` every few milliseconds.
 */
export async function readNextDay(
  { store, set, readStates, view }: QueryContext,
  hours: number,
  rest: () => Promise<void>,
): Promise<NextDay> {
  const nowMs = await redisTimeMs(store);
  const { usualMs, pauses, ...known } = await readKnownAhead(store, set, readStates);
  const shown = { fromMs: Math.floor(nowMs / hourMs) * hourMs, toMs: nowMs + hours * hourMs };
  const range = { fromMs: nowMs, toMs: shown.toMs - 1 };
  const counts = new Counts(shown);
  const assumptions = assume(usualMs);
  const meter = new RequestMeter({
    pages: 1,
    requestMs: assumptions.requestMs,
    showsActive: (service) => set.services.get(service)?.syncJob !== undefined,
    onRequests: (service, atMs, count) => counts.at(service, atMs, (stretch) => (stretch.requests += count)),
  });
  const minutes = new MinuteMeter(peaksShown);
  const events = timeLineEvents({
    ...{ ...known, set, shown: set.policies, range, assumptions, rowsMax, seenMax },
    pauses: pauses.map((pause) => seenPause(pause, view)),
    isDurationAssumed: false,
  });
  // Calendars are kept once they are made.
  for (const batch of batchesOf(set.policies, policiesAtOnce)) {
    for (const policy of batch) createChainSource(policy)?.next(nowMs);
    await rest();
  }
  for (let seen = 1; ; seen += 1) {
    if (seen % eventsAtOnce === 0) await rest();
    const next = events.next();
    if (next.done) {
      meter.requests();
      const found = { line: next.value, services: counts.services(), peaks: minutes.busiest() };
      return { nowMs, range: shown, timezone: commonZone(set), ...found };
    }
    if (next.value === undefined) continue;
    counts.add(next.value);
    meter.add(next.value);
    if (next.value.event === "started") minutes.add(next.value.atMs, next.value.policy.name);
  }
}

/** A run of unknown length ends at once, so that it meets no other: what is not known is said. */
function assume(usualMs: ReadonlyMap<string, number>): Assumptions {
  return {
    durations: { otherwise: exactly(0), byPolicy: new Map([...usualMs].map(([name, ms]) => [name, exactly(ms)])) },
    maskJobs: { otherwise: 1, byPolicy: new Map() },
    failures: { otherwise: 0, byPolicy: new Map() },
    requestMs: 1_000,
    seed: "1",
  };
}

/** The zone of most policies: that of a page about all of them. */
export function commonZone({ policies }: Pick<PolicySet, "policies">): string {
  const groups = [...Map.groupBy(policies, ({ timezone }) => timezone)];
  return groups.toSorted(([, a], [, b]) => b.length - a.length)[0]?.[0] ?? "UTC";
}

class Counts {
  readonly #range: Interval;
  readonly #services = new Map<string, { policies: Set<string>; quarters: Stretch[] }>();

  constructor(range: Interval) {
    this.#range = range;
  }

  at(service: string, atMs: number, change: (stretch: Stretch) => void): void {
    const stretch = this.#of(service).quarters[Math.floor((atMs - this.#range.fromMs) / quarterMs)];
    if (stretch !== undefined) change(stretch);
  }

  add(event: SimulationEvent): void {
    const { service, name } = event.policy;
    if (event.event === "planned") {
      this.#of(service).policies.add(name);
      for (const { state } of event.plans)
        this.at(service, event.nowMs, (stretch) => {
          if (state === "started") stretch.slots += 1;
          else stretch.away += 1;
        });
    } else if (event.event === "not-started" || (event.event === "started" && meetsAnother(event)))
      this.at(service, event.atMs, (stretch) => (stretch.meets += 1));
  }

  services(): ServiceAhead[] {
    const all = [...this.#services].toSorted(([a], [b]) => (a < b ? -1 : 1));
    return all.map(([service, { policies, quarters }]) => ({ service, policies, quarters, all: sumOf(quarters) }));
  }

  #of(service: string) {
    return getOrMake(this.#services, service, () => {
      const { fromMs, toMs } = this.#range;
      const hours = Math.floor((toMs - fromMs) / hourMs) + 1;
      const quarters = Array.from({ length: hours * 4 }, (_, index) => emptyStretch(fromMs + index * quarterMs));
      return { policies: new Set<string>(), quarters };
    });
  }
}

function meetsAnother({ atOnceWith, behindMs }: Extract<SimulationEvent, { readonly event: "started" }>): boolean {
  return atOnceWith !== undefined || behindMs > 0;
}

function emptyStretch(fromMs: number): Stretch {
  return { fromMs, slots: 0, away: 0, meets: 0, requests: 0 };
}

function sumOf(stretches: readonly Stretch[]): Stretch {
  const sum = emptyStretch(stretches[0]?.fromMs ?? 0);
  for (const { slots, away, meets, requests } of stretches) {
    sum.slots += slots;
    sum.away += away;
    sum.meets += meets;
    sum.requests += requests;
  }
  return sum;
}

/** The hours of a service, each the sum of its four quarters. */
export function hoursOf({ quarters }: ServiceAhead): readonly Stretch[] {
  return [...Map.groupBy(quarters.entries(), ([index]) => Math.floor(index / 4)).values()].map((four) =>
    sumOf(four.map(([, quarter]) => quarter)),
  );
}
