// What waits for each sink, what it did not take, and what became of the last digests. Reads Redis
// only.
import type { PolicySet } from "../config/policy-set.ts";
import { showInstant } from "../core/instant.ts";
import { parseDigestState } from "../model/digest-state.ts";
import type { DeliveryState, NoticeQueues, SinkBacklog } from "../queue/notice-queues.ts";
import { deliveriesKeptMs } from "../queue/queues.ts";
import { NotifyStore } from "../store/notify-store.ts";
import type { Store } from "../store/redis.ts";
import { SinkStore } from "../store/sink-store.ts";

/** One sink. `dropped`: notices without room in its queue, since it is known. */
export interface SinkState extends SinkBacklog {
  readonly sink: string;
  readonly dropped: number;
}

/** A sink is stuck when its first notice waits this long, as in the alert SynclineSinkStuck. */
const stuckAfterMs = 900_000;

/**
 * The sinks that a worker has run: for others, nothing is written to Redis. One that is configured
 * no longer is there while notices wait; it is not stuck, since no worker tries. A view without
 * sinks shows none.
 */
export async function readSinks(
  { sinks }: Pick<PolicySet, "sinks">,
  store: Store,
  queues: NoticeQueues,
): Promise<readonly SinkState[]> {
  const known = sinks.size === 0 ? [] : await new SinkStore(store).all();
  const states: SinkState[] = [];
  for (const { name: sink, dropped } of known) {
    const backlog = await queues.backlog(sink);
    if (sinks.has(sink)) states.push({ sink, dropped, ...backlog });
    else if (backlog.waiting > 0) states.push({ sink, dropped, ...backlog, oldestMs: undefined, refused: undefined });
  }
  return states;
}

/** Whether a sink takes nothing any more. */
export function isStuck({ oldestMs }: Pick<SinkState, "oldestMs">, nowMs: number): boolean {
  return oldestMs !== undefined && nowMs - oldestMs > stuckAfterMs;
}

/** The last sending of a digest, and what became of it at each sink. */
export interface LastDigest {
  readonly digest: string;
  readonly timezone: string;
  readonly atMs: number;
  readonly to: readonly {
    readonly sink: string;
    /** `held`: by mute timing, dropped for want of room, taken off; `past`: too old to be known. */
    readonly state: DeliveryState | "held" | "past";
    readonly reason?: string;
  }[];
}

const digestStateWords = {
  delivered: "",
  past: "",
  waiting: "waits for it",
  held: "not handed over, or known no longer",
  failed: "failed",
};

/** The digests of a set that were sent, by name. */
export async function readLastDigests(
  { notifications: { digests = [] } }: Pick<PolicySet, "notifications">,
  { store, queues, nowMs }: { readonly store: Store; readonly queues: NoticeQueues; readonly nowMs: number },
): Promise<readonly LastDigest[]> {
  const zones = new Map(digests.map(({ name, timezone }) => [name, timezone]));
  if (zones.size === 0) return [];
  const texts = await new NotifyStore(store).texts("digests", [...zones.keys()]);
  const found: LastDigest[] = [];
  for (const [digest, text] of texts) {
    const { sent } = parseDigestState(text);
    if (sent === null) continue;
    const missing = { state: nowMs - sent.atMs < deliveriesKeptMs ? "held" : "past" } as const;
    const to = sent.to.map(async (sink) => ({ sink, ...((await queues.find(sink, sent.id)) ?? missing) }));
    found.push({ digest, timezone: zones.get(digest) ?? "UTC", atMs: sent.atMs, to: await Promise.all(to) });
  }
  return found;
}

/** `digest morning, last 2026-11-23 07:00 UTC to ops, mail (failed: no such user)`. */
export function describeDigest({ digest, timezone, atMs, to }: LastDigest): string {
  const sinks = to.map(({ sink, state, reason }) => {
    const words = [digestStateWords[state], reason].filter(Boolean).join(": ");
    return words === "" ? sink : `${sink} (${words})`;
  });
  return `digest ${digest}, last ${showInstant(atMs, timezone)} to ${sinks.join(", ")}`;
}

/** Whether a sink did not get the last digest. */
export function hasFailed({ to }: LastDigest): boolean {
  return to.some(({ state }) => state === "failed");
}
