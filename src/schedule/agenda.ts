// The scheduler's agenda: each scheduled policy with its watermark and its next slot. In memory: no
// clock, no Redis. A tick in which nothing is due costs nothing, however many policies there are.
import type { Policy } from "../config/policy-set.ts";
import type { Follower, ScheduledPolicy, Watermark } from "../model/slot-record.ts";
import { createFollowerMap } from "./chains.ts";
import { createChainSource, rootText, type SlotSource, scheduleText, withSchedule } from "./slots.ts";

/**
 * One scheduled policy, or a follower that is planned without its chain. `watermarkMs`: up to where
 * its slots are recorded, as far as known.
 */
export interface Entry {
  readonly policy: Policy;
  /** The text of its schedule. */
  readonly schedule: string;
  readonly source: SlotSource;
  readonly watermarkMs: number;
  /** Its next slot; undefined when none will come. */
  readonly nextMs: number | undefined;
  /** The policies that follow it and so have its slots. */
  readonly followers: readonly Follower[];
}

/** The agenda of one scheduler: each policy by the schedule that it is planned by now. */
export class Agenda {
  readonly #entries = new Map<string, Entry>();
  /** The policies that follow others: their slots come with those of the chain's root. */
  #chained = new Map<string, Policy>();
  /** The earliest slot of all; undefined after a change, until it is asked for. */
  #earliest: { readonly atMs: number | undefined } | undefined;

  /**
   * Puts exactly these policies on the agenda. Each has the schedule in force: that of its given
   * watermark, else the one on the agenda, else its own. Where no watermark is given, the policy
   * keeps the one on the agenda; without that it begins now.
   */
  adopt(wanted: readonly Policy[], watermarks: ReadonlyMap<string, Watermark>, nowMs: number): void {
    const before = new Map(this.#entries);
    const policies = wanted.flatMap((policy) => {
      const inForce = watermarks.get(policy.name)?.schedule ?? this.scheduleOf(policy.name);
      const isByOwnSchedule = inForce === undefined || inForce === scheduleText(policy);
      return isByOwnSchedule ? [policy] : (withSchedule(policy, inForce) ?? []);
    });
    const markOf = (name: string) => watermarks.get(name)?.watermarkMs ?? before.get(name)?.watermarkMs ?? nowMs;
    const byName = new Map(policies.map((policy) => [policy.name, policy]));
    // Policies with an older schedule are copies.
    const byOwnSchedule = new Set(wanted);
    // A follower is planned without its chain if its predecessor is in another one by now, or if it
    // changes and owes slots from before its chain's watermark, which no later plan may bring.
    const isWithChain = (policy: Policy) => {
      const { name, after } = policy;
      const predecessor = byName.get(after?.policy ?? "");
      if (after === undefined || predecessor === undefined || rootText(predecessor) !== rootText(policy)) return false;
      return byOwnSchedule.has(policy) || markOf(name) >= markOf(after.root.name);
    };
    const { all } = createFollowerMap(policies.filter(isWithChain));
    const scheduled = policies.filter(({ schedule }) => schedule !== undefined);
    const reached = new Set(scheduled.flatMap(({ name }) => all(name).map(({ policy }) => policy)));
    this.#chained = new Map(policies.flatMap((policy) => (reached.has(policy.name) ? [[policy.name, policy]] : [])));
    this.#entries.clear();
    this.#earliest = undefined;
    for (const policy of policies) {
      const [schedule, source] = [scheduleText(policy), createChainSource(policy)];
      if (schedule === undefined || source === undefined || reached.has(policy.name)) continue;
      const followers = policy.after === undefined ? all(policy.name) : [];
      const known = watermarks.has(policy.name) ? undefined : before.get(policy.name);
      // The same schedule keeps its next slot.
      if (known?.schedule === schedule) this.#entries.set(policy.name, { ...known, policy, followers });
      else this.#entries.set(policy.name, entryAt({ policy, schedule, source, followers }, markOf(policy.name)));
    }
  }

  /** The policy as it is on the agenda; undefined: it is not there. */
  find(name: string): Policy | undefined {
    return this.#entries.get(name)?.policy ?? this.#chained.get(name);
  }

  /** The text of the schedule that a policy is planned by. */
  scheduleOf(name: string): string | undefined {
    const policy = this.find(name);
    return policy && scheduleText(policy);
  }

  /** Whether slots of a policy that are due by then are not recorded yet. */
  owes(name: string, nowMs: number): boolean {
    const { nextMs } = this.#entryOf(name) ?? {};
    return nextMs !== undefined && nextMs <= nowMs;
  }

  /** Takes policies and those that follow them off the agenda; answers the names of all. */
  remove(names: readonly string[]): string[] {
    const own = [...this.#entries.values()].map(({ policy }) => policy);
    const { direct } = createFollowerMap([...own, ...this.#chained.values()]);
    const gone = new Set(names.filter((name) => this.find(name) !== undefined));
    // Goes on to the names that it adds.
    for (const name of gone) {
      for (const follower of direct(name)) gone.add(follower);
      this.#entries.delete(name);
      this.#chained.delete(name);
    }
    const rest = createFollowerMap([...this.#chained.values()]);
    for (const [name, entry] of this.#entries)
      if (entry.followers.some(({ policy }) => gone.has(policy)))
        this.#entries.set(name, { ...entry, followers: rest.all(name) });
    this.#earliest = undefined;
    return [...gone];
  }

  /** Notes up to where a policy's slots are recorded now, unless it is off the agenda by now. */
  moveWatermark(name: string, watermarkMs: number): void {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    this.#entries.set(name, entryAt(entry, watermarkMs));
    this.#earliest = undefined;
  }

  /** The policies that slots are recorded for: scheduled ones and followers. */
  names(): Set<string> {
    return new Set([...this.#entries.keys(), ...this.#chained.keys()]);
  }

  /** All of them, to ask for their watermarks anew. */
  schedules(): ScheduledPolicy[] {
    return [...this.names()].map((policy) => ({
      ...{ policy, schedule: this.scheduleOf(policy) ?? "" },
      beginsMs: this.#entryOf(policy)?.watermarkMs,
    }));
  }

  /** Replaces the known watermarks by those of Redis. */
  moveWatermarks(watermarks: ReadonlyMap<string, Watermark>): void {
    for (const [name, entry] of this.#entries) {
      const watermarkMs = watermarks.get(name)?.watermarkMs;
      if (watermarkMs !== undefined && watermarkMs !== entry.watermarkMs) this.moveWatermark(name, watermarkMs);
    }
  }

  /** The policies with a slot at or before this instant, in the order of their files. */
  due(nowMs: number): Entry[] {
    const earliestMs = this.earliestMs();
    if (earliestMs === undefined || earliestMs > nowMs) return [];
    return [...this.#entries.values()].filter(({ nextMs }) => nextMs !== undefined && nextMs <= nowMs);
  }

  /** The earliest slot of all; undefined when there is none. */
  earliestMs(): number | undefined {
    this.#earliest ??= { atMs: this.#findEarliest() };
    return this.#earliest.atMs;
  }

  #findEarliest(): number | undefined {
    let earliest: number | undefined;
    for (const { nextMs } of this.#entries.values()) {
      if (nextMs !== undefined && (earliest === undefined || nextMs < earliest)) earliest = nextMs;
    }
    return earliest;
  }

  /** The entry that a policy's slots are planned by: its own, or that of its chain's root. */
  #entryOf(name: string): Entry | undefined {
    return this.#entries.get(this.#chained.get(name)?.after?.root.name ?? name);
  }
}

function entryAt(entry: Omit<Entry, "watermarkMs" | "nextMs">, watermarkMs: number): Entry {
  return { ...entry, watermarkMs, nextMs: entry.source.next(watermarkMs) };
}
