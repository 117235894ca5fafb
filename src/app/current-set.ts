// The policies in force. Every lookup of a policy comes here, so a reload is one assignment, and no
// reader sees half of an old and half of a new set. Built by app.ts.
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
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
  #policies: ReadonlyMap<string, Policy>;
  #followers: FollowerMap;
  #mappers = new Map<string, ItemMapper>();
  #activePredicates: ReadonlyMap<string, ActivePredicate>;
  #polledTogether: ReadonlySet<string>;

  constructor(set: PolicySet) {
    this.#set = set;
    this.#policies = byName(set);
    this.#followers = createFollowerMap(set.policies);
    this.#polledTogether = polledTogether(set);
    this.#activePredicates = activePredicates(set);
  }

  /** The whole set, as it is now. */
  get set(): PolicySet {
    return this.#set;
  }

  /** For how long it has had this policy as it is, or has not had it. */
  inForceForMs(policy: string): number {
    return systemClock.monotonicMs() - (this.#goneAtMs.get(policy) ?? this.#sinceMs);
  }

  /** The names of the direct followers of a policy. */
  followers(name: string): readonly string[] {
    return this.#followers.direct(name);
  }

  /** A policy as it is now; undefined when there is none of this name any more. */
  policy(name: string): Policy | undefined {
    return name === runByHand ? this.#set.byHand : this.#policies.get(name);
  }

  /** Reads items by the current mapping; undefined when the service is not configured any more. */
  itemMapper(feed: Feed): ItemMapper | undefined {
    const settings = this.#set.services.get(feed.service);
    if (settings === undefined) return undefined;
    const known = this.#mappers.get(feedId(feed));
    if (known !== undefined) return known;
    const mapper = createItemMapper(feed.list, settings.mapping[feed.list]);
    this.#mappers.set(feedId(feed), mapper);
    return mapper;
  }

  /** How sync jobs of a service show that they are active; undefined when nothing is named. */
  activePredicate(service: string): ActivePredicate | undefined {
    return this.#activePredicates.get(service);
  }

  /** Whether more than one policy polls this list. */
  isPolledTogether(feed: Feed): boolean {
    return this.#polledTogether.has(feedId(feed));
  }

  /** Puts another set in force. */
  adopt(set: PolicySet): void {
    this.#set = set;
    this.#sinceMs = systemClock.monotonicMs();
    const policies = byName(set);
    for (const name of this.#policies.keys()) if (!policies.has(name)) this.#goneAtMs.set(name, this.#sinceMs);
    for (const name of policies.keys()) this.#goneAtMs.delete(name);
    this.#policies = policies;
    this.#followers = createFollowerMap(set.policies);
    this.#mappers = new Map();
    this.#polledTogether = polledTogether(set);
    this.#activePredicates = activePredicates(set);
  }
}

function activePredicates({ services }: PolicySet): ReadonlyMap<string, ActivePredicate> {
  const predicates = [...services].flatMap(([name, { syncJob }]): [string, ActivePredicate][] =>
    syncJob === undefined ? [] : [[name, createActivePredicate(syncJob)]],
  );
  return new Map(predicates);
}

function byName({ policies }: PolicySet): ReadonlyMap<string, Policy> {
  return new Map(policies.map((policy) => [policy.name, policy]));
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
