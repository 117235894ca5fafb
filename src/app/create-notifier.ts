// Builds the notifier of a worker: its store, the heartbeats, the digests that are due, and what it
// asks of the rest of the process. Called by app.ts.

import { randomUUID } from "node:crypto";
import type { DigestSettings, Policy, PolicySet } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { type Component, together } from "../core/component.ts";
import type { EventLog } from "../core/event-log.ts";
import { type DigestState, parseDigestState } from "../model/digest-state.ts";
import type { EnqueueNotices } from "../model/notice.ts";
import { isAbout, isInForce, type Pause } from "../model/pause.ts";
import { Heartbeats } from "../notify/heartbeats.ts";
import { type DigestPort, Notifier } from "../notify/notifier.ts";
import { judgeAll } from "../queries/deadlines.ts";
import { digestId, digestNotice, readDigest } from "../queries/digest.ts";
import { scheduleHash } from "../schedule/slot-tasks.ts";
import { createSlotSource } from "../schedule/slots.ts";
import { createPinger } from "../service/ping.ts";
import { NotifyStore } from "../store/notify-store.ts";
import type { RedisTarget, Store } from "../store/redis.ts";
import { readLimiterStatus } from "../store/service-limiter.ts";
import type { CurrentSet } from "./current-set.ts";
import { noSuccessSinceMs, PolicySlots, readSuccesses } from "./policy-slots.ts";
import type { RedisGuard } from "./redis-guard.ts";
import type { RunningServices } from "./running-services.ts";

/** What the notifier is built from. */
export interface NotifierDependencies {
  /** Where notices go. */
  readonly enqueueNotices: EnqueueNotices;
  readonly options: {
    readonly roles: readonly string[];
    readonly log: EventLog;
    readonly redis: RedisTarget;
    readonly isStandIn?: boolean;
  };
  readonly store: Store;
  readonly current: CurrentSet;
  readonly services: Pick<RunningServices, "client">;
  readonly pauses: () => Promise<readonly Pause[]>;
  readonly guard: Pick<RedisGuard, "mayBeForeign">;
  readonly hasNewerWorker: () => Promise<boolean>;
}

/** The notifier warns of a token that cannot be renewed when it expires within this time. */
const tokenWithinMs = 86_400_000;

/** Builds the notifier, not yet started; nothing in a process that is no worker, or a stand-in. */
export function createNotifier(parts: NotifierDependencies): Component[] {
  const { options, enqueueNotices, store, current, guard, hasNewerWorker } = parts;
  const { roles, log, isStandIn } = options;
  if (!roles.includes("worker") || isStandIn === true) return [];
  const notifyStore = new NotifyStore(store);
  const pinger = createPinger();
  const urlOf = (name: string) => current.policy(name)?.heartbeat?.url;
  const heartbeats = new Heartbeats({ notifyStore, urlOf, ping: pinger.ping, log });
  const slots = new PolicySlots();
  const notifier = new Notifier({
    notifyStore,
    owner: randomUUID(),
    set: () => current.set,
    policy: (name) => current.policy(name),
    // Another owner's events would be dropped here, and its notices go to other receivers.
    isLeftToOthers: async () => guard.mayBeForeign || (await hasNewerWorker()),
    enqueueNotices,
    breaker: async (service) => {
      const { breaker, openSinceMs, lastFailure = "" } = await readLimiterStatus(store, service);
      return breaker === "open" && openSinceMs !== undefined
        ? { sinceMs: openSinceMs, failure: lastFailure }
        : undefined;
    },
    stalePolicies: (policies, outageEnds) => readStalePolicies(parts, slots, policies, outageEnds),
    judgeDeadlines: (policies, facts) => judgeAll(policies, facts, store),
    tokens: () => readTokens(parts),
    digests: createDigests({ store, target: options.redis, set: () => current.set }),
    onStatusRound: () => void heartbeats.runOnce(),
    clock: systemClock,
    log,
  });
  const sending: Component = {
    name: "heartbeats",
    start: async () => {},
    stop: async () => {
      await heartbeats.stop();
      pinger.close();
    },
  };
  return [together("notifications", [notifier, sending])];
}

/**
 * Policies without a success for two intervals, and since when. `outageEnds`: when each
 * service's last outage ended: earlier slots make no policy stale.
 */
async function readStalePolicies(
  { store, pauses }: NotifierDependencies,
  slots: PolicySlots,
  policies: readonly Policy[],
  outageEnds: ReadonlyMap<string, number>,
): Promise<Map<string, number>> {
  const read = await readSuccesses(policies, store, pauses);
  // A quarantine excuses nothing: the policy failed, and no other notice says that it stands still.
  const facts = { ...read, pauses: read.pauses.filter(({ cause }) => cause === undefined) };
  const stale = new Map<string, number>();
  for (const policy of policies) {
    const { nowMs } = facts;
    const beganMs = noSuccessSinceMs(policy.name, facts);
    const isPaused = facts.pauses.some((pause) => isAbout(pause, policy) && isInForce(pause, nowMs));
    if (beganMs === undefined || isPaused) continue;
    const staleFromMs = slots.staleFromMs(policy, facts, outageEnds.get(policy.service));
    if (staleFromMs !== undefined && nowMs >= staleFromMs) stale.set(policy.name, beganMs);
  }
  return stale;
}

/** Tokens in use that expire soon and that this process could not renew. */
function readTokens({ current, services }: NotifierDependencies): Map<string, number> {
  const nowMs = systemClock.nowMs();
  const expiries = new Map<string, number>();
  for (const name of current.set.services.keys()) {
    const client = services.client(name);
    const expiresAtMs = client?.tokenExpiresAtMs;
    if (client?.tokenRenewalFails !== true || expiresAtMs === undefined) continue;
    if (expiresAtMs > nowMs && expiresAtMs - nowMs <= tokenWithinMs) expiries.set(name, expiresAtMs);
  }
  return expiries;
}

/** A state of a digest that is no longer configured is kept so long. */
const forgetAfterMs = 31 * 86_400_000;

/** Where digests look. */
interface DigestPlaces {
  readonly store: Store;
  readonly target: RedisTarget;
  readonly set: () => PolicySet;
}

/** The digests of a process. */
export function createDigests({ store, target, set }: DigestPlaces): DigestPort {
  return {
    due: (states, nowMs) => {
      const { digests = [] } = set().notifications;
      const names = new Set(digests.map(({ name }) => name));
      const old = [...states].filter(
        ([name, text]) => !names.has(name) && nowMs - parseDigestState(text).slotMs > forgetAfterMs,
      );
      const changes = new Map<string, string | undefined>(old.map(([name]) => [name, undefined]));
      const due: ReturnType<DigestPort["due"]>["due"][number][] = [];
      for (const digest of digests) {
        const text = states.get(digest.name);
        const state = text === undefined ? undefined : parseDigestState(text);
        const schedule = scheduleHash(digest);
        // A new digest begins now: it reports nothing earlier.
        if (state === undefined) changes.set(digest.name, textOf({ slotMs: nowMs, schedule, sent: null }));
        // One with another schedule is due at the next slot of that: none is late by it.
        else if (state.schedule !== schedule)
          changes.set(digest.name, textOf({ ...state, schedule, changedMs: nowMs }));
        if (state?.schedule !== schedule) continue;
        const slotMs = newestSlot(digest, state.changedMs ?? state.slotMs, nowMs);
        if (slotMs === undefined) continue;
        const sent = { atMs: nowMs, id: digestId(digest.name, String(slotMs)), to: [...digest.to] };
        changes.set(digest.name, textOf({ slotMs, schedule, sent }));
        due.push({ to: digest.to, make: () => make(digest, { sinceMs: state.slotMs, slotMs, nowMs }) });
      }
      return { due, changes };
    },
  };
  async function make(
    digest: DigestSettings,
    { sinceMs, slotMs, nowMs }: Record<"sinceMs" | "slotMs" | "nowMs", number>,
  ) {
    const found = await readDigest({ set: set(), store, target }, { ...digest, sinceMs, nowMs });
    return digestNotice(found, { ...digest, key: String(slotMs), nowMs, dueMs: slotMs });
  }
}

/** After a stop only the newest slot counts: one late digest, about all days since the last one. */
function newestSlot(digest: DigestSettings, afterMs: number, nowMs: number): number | undefined {
  return createSlotSource(digest)?.due(afterMs, nowMs).at(-1);
}

function textOf(state: Omit<DigestState, "v">): string {
  return JSON.stringify({ v: 1, ...state } satisfies DigestState);
}
