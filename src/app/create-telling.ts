// Puts telling together: the teller, its book in Redis, the heartbeats, and what they ask of the rest of the process. Built by app.ts in a worker.
import { randomUUID } from "node:crypto";
import type { Policy } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { type Component, together } from "../core/component.ts";
import type { EventLog } from "../core/event-log.ts";
import { createPinger } from "../service/ping.ts";
import { readGateStatus } from "../store/gate-status.ts";
import { LastSuccesses } from "../store/last-successes.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { SlotLedger } from "../store/slot-ledger.ts";
import { TellingBook } from "../store/telling-book.ts";
import type { DeliverNotices } from "../tasks/notice.ts";
import { isAbout, isInForce, type Pause } from "../tasks/pause.ts";
import { Heartbeats } from "../telling/heartbeats.ts";
import { Teller } from "../telling/teller.ts";
import type { CurrentSet } from "./current-set.ts";
import { PolicySlots } from "./policy-slots.ts";
import type { RunningServices } from "./running-services.ts";

/** What telling is put together from. */
export interface TellingParts {
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

/** A token that cannot be renewed is told of when it has no longer than this. */
const tokenWithinMs = 86_400_000;

/** Puts telling together, not yet started; nothing when this process is no worker. */
export function createTelling(parts: TellingParts): Component[] {
  const { options, deliver, store, current } = parts;
  const { roles, log } = options;
  if (!roles.includes("worker")) return [];
  const book = new TellingBook(store);
  const pinger = createPinger();
  const urlOf = (name: string) => current.policy(name)?.heartbeat?.url;
  const heartbeats = new Heartbeats({ book, urlOf, ping: pinger.ping, log });
  const slots = new PolicySlots();
  const teller = new Teller({
    book,
    owner: randomUUID(),
    set: () => current.set,
    policy: (name) => current.policy(name),
    deliver,
    breaker: async (service) => {
      const { breaker, openSinceMs, lastFailure = "" } = await readGateStatus(store, service);
      return breaker === "open" && openSinceMs !== undefined
        ? { sinceMs: openSinceMs, failure: lastFailure }
        : undefined;
    },
    silences: (policies, floors) => readSilences(parts, slots, { policies, floors }),
    tokens: () => readTokens(parts),
    onBeat: () => void heartbeats.look(),
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
  return [together("telling", [teller, sending])];
}

interface Watched {
  readonly policies: readonly Policy[];
  /** The end of the last outage of a service: silence counts from there at the earliest. */
  readonly floors: ReadonlyMap<string, number>;
}

/** Those policies that had no success for two intervals, and since when. What a pause or an outage kept from running is not silent for it. */
async function readSilences(parts: TellingParts, slots: PolicySlots, { policies, floors }: Watched) {
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
    const staleFromMs = slots.staleFromMs(policy, fromMs);
    if (staleFromMs !== undefined && nowMs >= staleFromMs) silences.set(policy.name, beganMs);
  }
  return silences;
}

/** Tokens that this process could not renew and that run out soon. One that nobody uses is not renewed, and no reason to worry. */
function readTokens({ current, services }: TellingParts): Map<string, number> {
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
