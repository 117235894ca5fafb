// The tools of a processor over a Redis, with nothing behind them that a test does not give: no
// service denies, no slot waits in a chain, nothing is read or queued, and the queue works on
// everything.

import { MaskCache } from "../../src/apply/mask-cache.ts";
import { silentLog } from "../../src/core/event-log.ts";
import { DeclaredMemory } from "../../src/store/declared-memory.ts";
import { FeedStore } from "../../src/store/feed-store.ts";
import { History } from "../../src/store/history.ts";
import { KeptWrites } from "../../src/store/kept-writes.ts";
import { Leases } from "../../src/store/leases.ts";
import { readRuns } from "../../src/store/policy-states.ts";
import { PollStore } from "../../src/store/poll-store.ts";
import { redisTimeMs, type Store } from "../../src/store/redis.ts";
import { SharedReadings } from "../../src/store/shared-readings.ts";
import { StartJournal } from "../../src/store/start-journal.ts";
import type { ProcessDependencies } from "../../src/tasks/process-task.ts";
import { defaultTiming } from "../../src/tasks/timing.ts";
import { testPolicy } from "./policies.ts";

/** Makes the deps; what is given takes the place of what is said above. */
export function testDeps(store: Store, given: Partial<ProcessDependencies> = {}): ProcessDependencies {
  return {
    policy: () => testPolicy(),
    service: () => undefined,
    denialOf: async () => undefined,
    acquire: async () => ({ release: async () => {} }),
    scriptedAcquire: () => undefined,
    checkFence: async () => undefined,
    chains: { noteFannedOut: async () => {}, taskOver: async () => {} },
    declared: { masks: new MaskCache(), memory: new DeclaredMemory(store) },
    itemMapper: () => undefined,
    activePredicate: () => undefined,
    journal: new StartJournal(store),
    keptWrites: new KeptWrites(silentLog),
    leases: new Leases(store),
    feeds: new FeedStore(store),
    runsOf: (run) => readRuns(store, run),
    polls: new PollStore(store),
    sharedReadings: new SharedReadings(store),
    isPolledTogether: () => false,
    requestWalk: async () => {},
    enqueue: async () => {},
    jobStatus: async () => "pending",
    nowMs: () => redisTimeMs(store),
    clockAheadMs: () => 0,
    outcomeOf: (task) => new History(store).outcome(task),
    stopping: new AbortController().signal,
    timing: defaultTiming,
    log: silentLog,
    ...given,
  };
}
