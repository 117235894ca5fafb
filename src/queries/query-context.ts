// Where queries look: Redis, the queues, and the policies that the asker may see. Built by app/ for
// the web server.
import type { PolicySet } from "../config/policy-set.ts";
import type { NoticeQueues } from "../queue/notice-queues.ts";
import type { Producer } from "../queue/producer.ts";
import type { ReadStates } from "../store/policy-states.ts";
import type { RedisTarget, Store } from "../store/redis.ts";

/** Where queries look. `isNarrowed`: the set lacks services that the asker may not see. */
export interface QueryContext {
  readonly store: Store;
  readonly target: RedisTarget;
  readonly producer: Producer;
  readonly notices: NoticeQueues;
  readonly readStates: ReadStates;
  readonly set: PolicySet;
  readonly isNarrowed: boolean;
}

/** What is enough to read states. `readStates`: default is anew. */
export type StateContext = Pick<QueryContext, "store"> & Partial<Pick<QueryContext, "readStates">>;

/** The same with these services and their policies only; undefined: with all. */
export function narrowTo(context: QueryContext, services: ReadonlySet<string> | undefined): QueryContext {
  if (services === undefined) return context;
  const { set } = context;
  const seen = {
    ...set,
    services: new Map([...set.services].filter(([name]) => services.has(name))),
    sinks: new Map(),
    policies: set.policies.filter(({ service }) => services.has(service)),
  };
  return { ...context, set: seen, isNarrowed: true };
}
