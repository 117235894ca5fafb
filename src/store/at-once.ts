// What a plain start asks for when it wants all of it in one step, and what it is told. Asked by work/start-at-once.ts, answered by
// start-journal.ts.
import type { Hold, Pass } from "../core/gate.ts";
import type { Entrance } from "./service-gate.ts";

/** What a plain start asks for. Instants are milliseconds UTC by Redis. */
export interface AtOnceIntent {
  readonly startByMs: number;
  /** When the task was due: tells whether a loss of Redis's memory touches it. */
  readonly slotMs?: number;
  /** How long it may hold its sync job; without it no lease is taken. */
  readonly leaseMs: number | undefined;
  /** Whether it notes how far its feed is known. */
  readonly notesFeed: boolean;
  /** The way through the service's gate, where it has limits: then the permission comes with a place. */
  readonly entrance?: Entrance | undefined;
}

/** What came of it: the request may go out since then, by the pass where one was asked for; or the gate holds it back, and nothing may be sent. */
export type AtOnce = { readonly sentAtMs: number; readonly pass: Pass | undefined } | { readonly hold: Hold };
