// The state of a service's limiter, as `syncline status` shows it. Reads only.
import { redisTimeMs, type Store } from "./redis.ts";
import { limiterKeys } from "./service-limiter.ts";

/** The state of a service's limiter. Instants are milliseconds UTC by Redis. */
export interface LimiterStatus {
  readonly breaker: "closed" | "open";
  /** Since when the breaker is open; undefined while it is closed. */
  readonly openSinceMs: number | undefined;
  /** When the next probe may go out; undefined while the breaker is closed. */
  readonly nextProbeMs: number | undefined;
  /** Failures in a row, and the kind of the last one; 0 and undefined after a success. */
  readonly failures: number;
  readonly lastFailure: string | undefined;
  /** Until when the service asked for no requests; undefined when it did not. */
  readonly throttledUntilMs: number | undefined;
  /** Requests under way; 0 unless `limits.concurrency` is set, since only then they are counted. */
  readonly inFlight: number;
}

/** Reads the state of a service's limiter. A service without a record is closed and quiet. */
export async function readLimiterStatus(store: Store, service: string): Promise<LimiterStatus> {
  const [stateKey, insideKey] = limiterKeys(store, service);
  const nowMs = await redisTimeMs(store);
  const fields = await store.redis.hgetall(stateKey);
  const inFlight = await store.redis.zcount(insideKey, `(${nowMs}`, "+inf");
  const instant = (name: string) => (fields[name] === undefined ? undefined : Number(fields[name]));
  const throttledUntilMs = instant("throttledUntilMs");
  const isOpen = fields["state"] === "open";
  return {
    breaker: isOpen ? "open" : "closed",
    openSinceMs: isOpen ? instant("openedAtMs") : undefined,
    nextProbeMs: isOpen ? instant("nextProbeMs") : undefined,
    failures: instant("failures") ?? 0,
    lastFailure: fields["lastFailure"],
    throttledUntilMs: throttledUntilMs !== undefined && throttledUntilMs > nowMs ? throttledUntilMs : undefined,
    inFlight,
  };
}
