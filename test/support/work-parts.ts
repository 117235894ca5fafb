// The tools of a processor over a Redis, with nothing behind them that a test does not give: no service holds back, nobody waits in a chain,
// nothing is read or queued, and the queue works on everything.
import { silentLog } from "../../src/core/event-log.ts";
import { MaskShelf } from "../../src/declared/mask-shelf.ts";
import { DeclaredMemory } from "../../src/store/declared-memory.ts";
import { FeedBook } from "../../src/store/feed-book.ts";
import { Leases } from "../../src/store/leases.ts";
import { PollMemories } from "../../src/store/poll-memories.ts";
import { redisTimeMs, type Store } from "../../src/store/redis.ts";
import { SharedReadings } from "../../src/store/shared-readings.ts";
import { StartJournal } from "../../src/store/start-journal.ts";
import type { WorkParts } from "../../src/work/parts.ts";
import { defaultTiming } from "../../src/work/timing.ts";
import { testPolicy } from "./policies.ts";

/** Makes the parts; what is given takes the place of what is said above. */
export function testParts(store: Store, given: Partial<WorkParts> = {}): WorkParts {
  return {
    policy: () => testPolicy(),
    service: () => undefined,
    held: async () => undefined,
    enter: async () => ({ leave: async () => {} }),
    entrance: () => undefined,
    shut: async () => undefined,
    chains: { expanded: async () => {}, released: async () => {} },
    declared: { masks: new MaskShelf(), memory: new DeclaredMemory(store) },
    itemReader: () => undefined,
    activeSign: () => undefined,
    journal: new StartJournal(store),
    leases: new Leases(store),
    book: new FeedBook(store),
    polls: new PollMemories(store),
    readings: new SharedReadings(store),
    isPolledTogether: () => false,
    read: async () => {},
    enqueue: async () => {},
    fate: async () => "open",
    nowMs: () => redisTimeMs(store),
    stopping: new AbortController().signal,
    timing: defaultTiming,
    log: silentLog,
    ...given,
  };
}
