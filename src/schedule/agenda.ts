// The scheduler's list of what is planned: each scheduled policy with its mark and its next slot. Pure; no time, no Redis.
// Looking for what is due goes through all of it, once a beat: 100,000 policies cost about a millisecond.
import type { Policy } from "../config/policy-set.ts";
import type { ScheduledPolicy } from "../tasks/slot-step.ts";
import { createSlotSource, type SlotSource } from "./slots.ts";

/** One scheduled policy. `markMs`: up to where its slots are recorded, as far as this replica knows. */
export interface Entry {
  readonly policy: Policy;
  readonly source: SlotSource;
  readonly markMs: number;
  /** Its next slot; undefined when none will come. */
  readonly nextMs: number | undefined;
}

/** How a list of policies differs from what is on the agenda. */
export interface AgendaChange {
  /** New policies, and those whose schedule has changed: their marks must be asked for. */
  readonly begin: readonly ScheduledPolicy[];
  /** No longer there, or no longer scheduled. */
  readonly end: readonly string[];
  /** Everything that will be on the agenda. */
  readonly sources: ReadonlyMap<string, { readonly policy: Policy; readonly source: SlotSource }>;
}

/** The agenda of one scheduler. */
export class Agenda {
  readonly #entries = new Map<string, Entry>();

  /** What adopting these policies would change. */
  compare(policies: readonly Policy[]): AgendaChange {
    const sources: [string, { policy: Policy; source: SlotSource }][] = [];
    const begin: ScheduledPolicy[] = [];
    for (const policy of policies) {
      const source = createSlotSource(policy);
      if (source === undefined) continue;
      sources.push([policy.name, { policy, source }]);
      if (this.#entries.get(policy.name)?.source.text === source.text) continue;
      begin.push({ policy: policy.name, schedule: source.text });
    }
    const scheduled = new Map(sources);
    return { begin, end: [...this.#entries.keys()].filter((name) => !scheduled.has(name)), sources: scheduled };
  }

  /** Adopts a change. `marks` has those of `change.begin`; the others keep theirs. */
  adopt(change: AgendaChange, marks: ReadonlyMap<string, number>, nowMs: number): void {
    for (const name of change.end) this.#entries.delete(name);
    for (const [name, { policy, source }] of change.sources) {
      const markMs = marks.get(name);
      const known = markMs === undefined ? this.#entries.get(name) : undefined;
      // The same schedule keeps its next slot; only the policy around it may be another one.
      if (known !== undefined) this.#entries.set(name, { ...known, policy });
      else this.#entries.set(name, entryAt(policy, source, markMs ?? nowMs));
    }
  }

  /** Notes up to where a policy's slots are recorded now. */
  moveMark({ policy, source }: Entry, markMs: number): void {
    this.#entries.set(policy.name, entryAt(policy, source, markMs));
  }

  /** The policies with a slot at or before this instant, in the order of their files. */
  due(nowMs: number): Entry[] {
    const due: Entry[] = [];
    for (const entry of this.#entries.values()) {
      if (entry.nextMs !== undefined && entry.nextMs <= nowMs) due.push(entry);
    }
    return due;
  }

  /** The earliest slot of all; undefined when there is none. */
  earliestMs(): number | undefined {
    let earliest: number | undefined;
    for (const { nextMs } of this.#entries.values()) {
      if (nextMs !== undefined && (earliest === undefined || nextMs < earliest)) earliest = nextMs;
    }
    return earliest;
  }
}

function entryAt(policy: Policy, source: SlotSource, markMs: number): Entry {
  return { policy, source, markMs, nextMs: source.next(markMs) };
}
