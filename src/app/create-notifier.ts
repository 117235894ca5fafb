// Builds the notifier of a worker: its store, the heartbeats, and what it asks of the rest of the
// process. Called by app.ts.
import { randomUUID } from "node:crypto";
import type { Policy } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { type Component, together } from "../core/component.ts";
import type { EventLog } from "../core/event-log.ts";
import type { DeliverNotices } from "../model/notice.ts";
import { isAbout, isInForce, type Pause } from "../model/pause.ts";
import { Heartbeats } from "../notify/heartbeats.ts";
import { Notifier } from "../notify/notifier.ts";
import { createPinger } from "../service/ping.ts";
import { LastSuccesses } from "../store/last-successes.ts";
import { readLimiterStatus } from "../store/limiter-status.ts";
import { NotifyStore } from "../store/notify-store.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { SlotLedger } from "../store/slot-ledger.ts";
import type { CurrentSet } from "./current-set.ts";
import { PolicySlots } from "./policy-slots.ts";
import type { RunningServices } from "./running-services.ts";

/** What the notifier is built from. */
export interface NotifierDependencies {
  /** Where notices go. */
  readonly deliver: DeliverNotices;
  readonly options: {
    readonly roles: readonly string[];
    readonly log: EventLog;
  };
  readonly store: Store;
  readonly current: CurrentSet;
  readonly services: Pick<RunningServices, "client">;
  readonly pauses: () => Promise<readonly Pause[]>;
}

/** The notifier warns of a token that cannot be renewed when it expires within this time. */
const tokenWithinMs = 86_400_000;

/** Builds the notifier, not yet started; nothing in a process that is no worker. */
export function createNotifier(parts: NotifierDependencies): Component[] {
  const { options, deliver, store, current } = parts;
  const { roles, log } = options;
  if (!roles.includes("worker")) return [];
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
    deliver,
    breaker: async (service) => {
      const { breaker, openSinceMs, lastFailure = "" } = await readLimiterStatus(store, service);
      return breaker === "open" && openSinceMs !== undefined
        ? { sinceMs: openSinceMs, failure: lastFailure }
        : undefined;
    },
    silences: (policies, floors) => readSilences(parts, slots, { policies, floors }),
    tokens: () => readTokens(parts),
    onTick: () => void heartbeats.runOnce(),
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

interface Watched {
  readonly policies: readonly Policy[];
  /** The end of each service's last outage: a policy is stale by its slots after it. */
  readonly floors: ReadonlyMap<string, number>;
}

/** Policies without a success for two intervals; slots under a pause or outage do not count. */
async function readSilences(parts: NotifierDependencies, slots: PolicySlots, { policies, floors }: Watched) {
  const { store } = parts;
  const names = policies.map(({ name }) => name);
  const [nowMs, successes, keptSince, pauses] = await Promise.all([
    redisTimeMs(store),
    new LastSuccesses(store).of(names),
    new SlotLedger(store).keptSince(names),
    parts.pauses(),
  ]);
  const silences = new Map<string, number>();
  for (const policy of policies) {
    const beganMs = successes.get(policy.name) ?? keptSince.get(policy.name);
    const own = pauses.filter((pause) => isAbout(pause, policy));
    if (beganMs === undefined || own.some((pause) => isInForce(pause, nowMs))) continue;
    const ends = own.map(({ untilMs }) => untilMs ?? 0);
    const fromMs = Math.max(beganMs, floors.get(policy.service) ?? 0, ...ends.filter((endMs) => endMs <= nowMs));
    const staleFromMs = slots.thirdSlotMs(policy, "stale", fromMs);
    if (staleFromMs !== undefined && nowMs >= staleFromMs) silences.set(policy.name, beganMs);
  }
  return silences;
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
