// What an operator may want to know of a service's gate: read by `syncline status`. Changes nothing.
import { redisTimeMs, type Store } from "./redis.ts";
import { gateKeys } from "./service-gate.ts";

/** The state of a service's gate. Instants are milliseconds UTC by Redis. */
export interface GateStatus {
  readonly breaker: "closed" | "open";
  /** Since when the breaker is open; undefined while it is closed. */
  readonly openSinceMs: number | undefined;
  /** When the next probe may go out; undefined while the breaker is closed. */
  readonly nextProbeMs: number | undefined;
  /** Failures in a row, and the kind of the last one; 0 and undefined after a success. */
  readonly failures: number;
  readonly lastFailure: string | undefined;
  /** Until when the service wants to be left alone; undefined when it does not. */
  readonly throttledUntilMs: number | undefined;
  /** Requests under way now; counted only where `limits.concurrency` is set, otherwise 0. */
  readonly inFlight: number;
}

/** Reads the state of a service's gate; a service that was never in trouble is closed and quiet. */
export async function readGateStatus(store: Store, service: string): Promise<GateStatus> {
  const [stateKey, insideKey] = gateKeys(store, service);
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
