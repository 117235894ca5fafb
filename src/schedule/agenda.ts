// The scheduler's agenda: each scheduled policy with its watermark and its next slot. Pure; no
// time, no Redis. Each tick goes through all of it: 100,000 policies cost about a millisecond.
import type { Policy } from "../config/policy-set.ts";
import type { Follower, ScheduledPolicy } from "../model/slot-record.ts";
import { createFollowerMap, type FollowerMap } from "./chains.ts";
import { chainText } from "./slot-tasks.ts";
import { createSlotSource, type SlotSource } from "./slots.ts";

/** One scheduled policy. `watermarkMs`: up to where its slots are recorded, as far as known. */
export interface Entry {
  readonly policy: Policy;
  readonly source: SlotSource;
  readonly watermarkMs: number;
  /** Its next slot; undefined when none will come. */
  readonly nextMs: number | undefined;
  /** The policies that follow it and so have its slots. */
  readonly followers: readonly Follower[];
}

/** How a list of policies differs from what is on the agenda. */
export interface AgendaChange {
  /** New policies and changed schedules: the scheduler asks for their watermarks. */
  readonly begin: readonly ScheduledPolicy[];
  /** Removed, or no longer scheduled. */
  readonly end: readonly string[];
  /** All policies that will be on the agenda. */
  readonly sources: ReadonlyMap<string, { readonly policy: Policy; readonly source: SlotSource }>;
  /** The policies that follow others, with what their slots depend on. */
  readonly chained: ReadonlyMap<string, string>;
  readonly followers: FollowerMap;
}

/** The agenda of one scheduler. */
export class Agenda {
  readonly #entries = new Map<string, Entry>();
  #chained: ReadonlyMap<string, string> = new Map();
  #followers: FollowerMap = createFollowerMap([]);

  /** What adopting these policies would change. */
  compare(policies: readonly Policy[]): AgendaChange {
    const sources: [string, { policy: Policy; source: SlotSource }][] = [];
    const begin: ScheduledPolicy[] = [];
    const chained = new Map<string, string>();
    for (const policy of policies) {
      if (policy.after !== undefined) {
        const text = chainText(policy.after);
        chained.set(policy.name, text);
        if (this.#chained.get(policy.name) !== text) begin.push({ policy: policy.name, schedule: text });
      }
      const source = createSlotSource(policy);
      if (source === undefined) continue;
      sources.push([policy.name, { policy, source }]);
      if (this.#entries.get(policy.name)?.source.text === source.text) continue;
      begin.push({ policy: policy.name, schedule: source.text });
    }
    const scheduled = new Map(sources);
    const end = [...this.names()].filter((name) => !scheduled.has(name) && !chained.has(name));
    return { begin, end, sources: scheduled, chained, followers: createFollowerMap(policies) };
  }

  /** Adopts a change. `watermarks` has those of `change.begin`; the others keep theirs. */
  adopt(change: AgendaChange, watermarks: ReadonlyMap<string, number>, nowMs: number): void {
    this.#chained = change.chained;
    this.#followers = change.followers;
    // Also a policy that had a schedule and follows another one now.
    for (const name of this.#entries.keys()) if (!change.sources.has(name)) this.#entries.delete(name);
    for (const [name, { policy, source }] of change.sources) {
      const watermarkMs = watermarks.get(name);
      const known = watermarkMs === undefined ? this.#entries.get(name) : undefined;
      // The same schedule keeps its next slot.
      const followers = this.#followers.all(name);
      if (known !== undefined) this.#entries.set(name, { ...known, policy, followers });
      else this.#entries.set(name, entryAt({ policy, source, followers }, watermarkMs ?? nowMs));
    }
  }

  /** Notes up to where a policy's slots are recorded now. */
  moveWatermark(entry: Entry, watermarkMs: number): void {
    this.#entries.set(entry.policy.name, entryAt(entry, watermarkMs));
  }

  /** The policies that slots are recorded for: scheduled ones and followers. */
  names(): Set<string> {
    return new Set([...this.#entries.keys(), ...this.#chained.keys()]);
  }

  /** All of them, to ask for their watermarks anew. */
  schedules(): ScheduledPolicy[] {
    const own = [...this.#entries].map(([policy, { source }]) => ({ policy, schedule: source.text }));
    return [...own, ...[...this.#chained].map(([policy, schedule]) => ({ policy, schedule }))];
  }

  /** Replaces the known watermarks by those of Redis. */
  moveWatermarks(watermarks: ReadonlyMap<string, number>): void {
    for (const [name, entry] of this.#entries) {
      const watermarkMs = watermarks.get(name);
      if (watermarkMs !== undefined && watermarkMs !== entry.watermarkMs) this.moveWatermark(entry, watermarkMs);
    }
  }

  /** The policies with a slot at or before this instant, in the order of their files. */
  due(nowMs: number): Entry[] {
    return [...this.#entries.values()].filter(({ nextMs }) => nextMs !== undefined && nextMs <= nowMs);
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

function entryAt({ policy, source, followers }: Omit<Entry, "watermarkMs" | "nextMs">, watermarkMs: number): Entry {
  return { policy, source, watermarkMs, nextMs: source.next(watermarkMs), followers };
}
