// The policies in force. Every lookup of a policy comes here, so a reload is one assignment, and no
// reader sees half of an old and half of a new set. Built by app.ts.
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { getOrMake } from "../core/get-or-make.ts";
import { type ActivePredicate, createActivePredicate, createItemMapper, type ItemMapper } from "../feeds/mapping.ts";
import { type Feed, feedId } from "../model/feed.ts";
import { runByHand } from "../model/task.ts";
import { createFollowerMap, type FollowerMap } from "../schedule/chains.ts";

/** The policy set in force. */
export class CurrentSet {
  #set: PolicySet;
  #sinceMs = systemClock.monotonicMs();
  /** When the policies left that a set since the start had. */
  readonly #goneAtMs = new Map<string, number>();
  #derived: Derived;

  constructor(set: PolicySet) {
    this.#set = set;
    this.#derived = derive(set);
  }

  /** The whole set, as it is now. */
  get set(): PolicySet {
    return this.#set;
  }

  /**
   * For how long this process has had this policy set; of a policy that left, for how long it has
   * been gone.
   */
  unchangedForMs(policy: string): number {
    return systemClock.monotonicMs() - (this.#goneAtMs.get(policy) ?? this.#sinceMs);
  }

  /** The names of the direct followers of a policy. */
  followers(name: string): readonly string[] {
    return this.#derived.followers.direct(name);
  }

  /** A policy as it is now; undefined when there is none of this name any more. */
  policy(name: string): Policy | undefined {
    return name === runByHand ? this.#set.byHand : this.#derived.policies.get(name);
  }

  /** Reads items by the current mapping; undefined when the service is not configured any more. */
  itemMapper(feed: Feed): ItemMapper | undefined {
    const settings = this.#set.services.get(feed.service);
    if (settings === undefined) return undefined;
    const make = () => createItemMapper(feed.list, settings.mapping[feed.list]);
    return getOrMake(this.#derived.mappers, feedId(feed), make);
  }

  /** How sync jobs of a service show that they are active; undefined when nothing is named. */
  activePredicate(service: string): ActivePredicate | undefined {
    return this.#derived.activePredicates.get(service);
  }

  /** Whether more than one policy polls this list. */
  isPolledTogether(feed: Feed): boolean {
    return this.#derived.polledTogether.has(feedId(feed));
  }

  /** Puts another set in force. */
  adopt(set: PolicySet): void {
    this.#set = set;
    this.#sinceMs = systemClock.monotonicMs();
    const before = this.#derived.policies;
    this.#derived = derive(set);
    const { policies } = this.#derived;
    for (const name of before.keys()) if (!policies.has(name)) this.#goneAtMs.set(name, this.#sinceMs);
    for (const name of policies.keys()) this.#goneAtMs.delete(name);
  }
}

/** What is worked out of a set. `mappers`: made when they are first asked for. */
interface Derived {
  readonly policies: ReadonlyMap<string, Policy>;
  readonly followers: FollowerMap;
  readonly mappers: Map<string, ItemMapper>;
  readonly activePredicates: ReadonlyMap<string, ActivePredicate>;
  readonly polledTogether: ReadonlySet<string>;
}

function derive(set: PolicySet): Derived {
  return {
    policies: new Map(set.policies.map((policy) => [policy.name, policy])),
    followers: createFollowerMap(set.policies),
    mappers: new Map(),
    activePredicates: activePredicates(set),
    polledTogether: polledTogether(set),
  };
}

function activePredicates({ services }: PolicySet): ReadonlyMap<string, ActivePredicate> {
  const predicates = [...services].flatMap(([name, { syncJob }]): [string, ActivePredicate][] =>
    syncJob === undefined ? [] : [[name, createActivePredicate(syncJob)]],
  );
  return new Map(predicates);
}

function polledTogether({ policies }: PolicySet): ReadonlySet<string> {
  const once = new Set<string>();
  const together = new Set<string>();
  for (const { action, service, repository = null } of policies) {
    if (action.kind !== "poll") continue;
    const id = feedId({ service, repository, list: action.list });
    (once.has(id) ? together : once).add(id);
  }
  return together;
}
