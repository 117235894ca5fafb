// Holds the good ends of a simulation against the deadlines of its policies. Fed by `simulate`.
import { type Policy, targetsOf, timezoneOf } from "../config/policy-set.ts";
import { formatRoughly } from "../core/duration.ts";
import { showClock } from "../core/instant.ts";
import type { Deadline } from "../model/deadline.ts";
import { weightOf } from "../model/outcome.ts";
import { deadlinesOf, type GoodEnd, madeAt } from "../schedule/deadlines.ts";
import type { SimulationEvent } from "./events.ts";
import type { Totals } from "./totals.ts";
import type { VirtualTime } from "./virtual-ticks.ts";

interface Seen {
  readonly slots: number[];
  readonly ends: GoodEnd[];
  /** The sync jobs that masks were assumed to name. */
  readonly targets: Set<string>;
}

/** The deadlines of one simulation. */
export class DeadlineMeter {
  readonly #seen: ReadonlyMap<Policy, Seen>;

  constructor(policies: readonly Policy[]) {
    const watched = policies.filter(({ expect }) => expect !== undefined);
    this.#seen = new Map(watched.map((policy) => [policy, { slots: [], ends: [], targets: new Set() }]));
  }

  add(event: SimulationEvent): void {
    const seen = this.#seen.get(event.policy);
    if (seen === undefined) return;
    if (event.event === "planned") seen.slots.push(...event.plans.map(({ slotMs }) => slotMs));
    if (event.event !== "started") return;
    const { status, heldUntilMs: endedMs } = event;
    const { target, slotMs } = event.task;
    seen.targets.add(target);
    if (weightOf({ status, reason: "" }) === "good") seen.ends.push({ target, slotMs, endedMs });
  }

  /** Counts the deadlines whose slots were all simulated, and notes those that are missed. */
  judge({ fromMs, toMs }: Pick<VirtualTime, "fromMs" | "toMs">, totals: Totals): void {
    for (const [policy, seen] of this.#seen) {
      // A slot at this very instant is not simulated.
      const beganMs = policy.expect?.kind === "within" ? fromMs + 1 : fromMs;
      let afterMs = fromMs;
      while (afterMs < toMs) {
        const { deadlines, doneMs } = deadlinesOf(policy, { afterMs, untilMs: toMs });
        for (const deadline of deadlines) if (deadline.fromMs >= beganMs) judgeOne(policy, deadline, seen, totals);
        afterMs = doneMs;
      }
    }
  }
}

function judgeOne(policy: Policy, { fromMs, atMs }: Deadline, { slots, ends, targets }: Seen, totals: Totals): void {
  const madeMs = madeAt(fromMs, targetsOf(policy.action) ?? [...targets], ends);
  const isKept = madeMs !== undefined && madeMs <= atMs;
  totals.addDeadline(policy, isKept);
  if (isKept) return;
  const by = showClock(atMs, timezoneOf(policy), fromMs);
  const later = madeMs === undefined ? "" : `, but ${formatRoughly(madeMs - atMs)} later`;
  const slotMs = slots.findLast((slot) => slot >= fromMs && slot <= atMs) ?? atMs;
  totals.addProblem({ policy, slotMs, target: undefined, problem: "late", why: `has not ended well by ${by}${later}` });
}
