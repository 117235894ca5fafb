// What a trial of faults is asked for, what it gathers, and how its checkers look up what truly
// was. Used by fault-trial.ts and its checkers.

import type { PolicySet } from "../../src/config/policy-set.ts";
import type { Outcome } from "../../src/model/outcome.ts";
import type { SlotStory } from "../../src/queries/slot-story.ts";
import type { Deed, Exchange, FaultyService } from "./faulty-service.ts";
import type { ReplicaEvent } from "./replica.ts";

/**
 * How large a trial is. `kinds`: names of `faultKinds`; `crashes`: the worker is killed again and
 * again.
 */
export interface FaultTrialOptions {
  readonly redisUrl: string;
  readonly seed: number;
  readonly kinds: readonly string[];
  readonly slots: number;
  readonly everyMs: number;
  readonly crashes: boolean;
  /** When, after the last slot, the services begin to meet everything well. */
  readonly recoversAfterMs: number;
}

/** What a trial found. `table`: how many outcomes of each kind of fault have which status. */
export interface FaultTrialReport {
  readonly findings: readonly string[];
  readonly table: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** How many of each thing were held against the ledger. */
  readonly looked: Readonly<Record<string, number>>;
}

/** What `status` and `explain` said while it went on. */
export interface Sample {
  readonly fromMs: number;
  readonly toMs: number;
  readonly text: string;
}

/** All that was told, and all that was so. */
export interface Told {
  readonly options: FaultTrialOptions;
  readonly set: PolicySet;
  readonly services: ReadonlyMap<string, FaultyService>;
  readonly outcomes: readonly Outcome[];
  /** Newest state of each slot, when all is over. */
  readonly stories: readonly SlotStory[];
  /** The same as text, of some. */
  readonly texts: ReadonlyMap<string, string>;
  readonly statuses: readonly Sample[];
  readonly liveStories: readonly (Sample & { readonly policy: string })[];
  /** What `status` said when nobody was alive any more. */
  readonly lastStatus: { readonly code: number; readonly out: string };
  readonly notices: Readonly<Record<"each" | "changes", readonly ToldNotice[]>>;
  readonly events: readonly ReplicaEvent[];
  readonly endedMs: number;
}

/** A notice as it stands in the file. */
export interface ToldNotice {
  readonly id: string;
  readonly type: string;
  readonly subject?: string;
  readonly time: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** What is known of one task. */
export interface Facts {
  readonly requests: readonly Exchange[];
  readonly deeds: readonly Deed[];
}

/** Looks up what truly was. */
export class Ledgers {
  readonly told: Told;
  readonly outcomes: ReadonlyMap<string, Outcome>;
  readonly looked: Record<string, number> = {};
  readonly findings: string[] = [];
  readonly #requests = new Map<string, Exchange[]>();
  readonly #deeds = new Map<string, Deed[]>();

  constructor(told: Told) {
    this.told = told;
    this.outcomes = new Map(told.outcomes.map((outcome) => [outcome.taskId, outcome]));
    for (const { exchanges, deeds } of told.services.values()) {
      for (const one of exchanges) if (one.taskId !== undefined) push(this.#requests, one.taskId, one);
      for (const one of deeds) if (one.taskId !== undefined) push(this.#deeds, one.taskId, one);
    }
  }

  of(taskId: string): Facts {
    return { requests: this.#requests.get(taskId) ?? [], deeds: this.#deeds.get(taskId) ?? [] };
  }

  service(name: string): FaultyService {
    const service = this.told.services.get(name);
    if (service === undefined) throw new Error(`no service ${name}`);
    return service;
  }

  get taskIds(): readonly string[] {
    return [...new Set([...this.#requests.keys(), ...this.#deeds.keys()])];
  }

  saw(what: string): void {
    this.looked[what] = (this.looked[what] ?? 0) + 1;
  }

  wrong(what: string): void {
    this.findings.push(what);
  }
}

function push<Item>(map: Map<string, Item[]>, key: string, item: Item): void {
  const items = map.get(key) ?? [];
  items.push(item);
  map.set(key, items);
}
