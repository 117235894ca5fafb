// What the notifier needs: its store, and what it asks of the rest of the process. Used by
// notifier.ts; filled in by app/create-notifier.ts.
import type { Policy, PolicySet } from "../config/policy-set.ts";
import type { Clock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";
import type { DeliverNotices } from "../model/notice.ts";
import type { NotifyEvent } from "../model/notify-event.ts";
import type { Breaker } from "./evaluate.ts";

/** Texts by field; undefined removes the field. */
export type Texts = ReadonlyMap<string, string | undefined>;
type Part = "policies" | "services" | "held" | "heartbeats";
/** What a save changes. */
export type AlertStateChanges = Readonly<Record<Part, Texts>>;

/** What the notifier needs of its store (store/notify-store.ts). */
export interface NotifyStorePort {
  nowMs(): Promise<number>;
  take(owner: string, durationMs: number): Promise<boolean>;
  leave(owner: string): Promise<void>;
  read(count: number): Promise<Batch>;
  states(part: Part, fields?: readonly string[]): Promise<Map<string, string>>;
  save(owner: string, batch: Pick<Batch, "cursor" | "passed">, changes: AlertStateChanges): Promise<boolean>;
  noteLost(count: number): Promise<void>;
}

interface Batch {
  readonly events: readonly NotifyEvent[];
  readonly cursor: string;
  readonly passed: number;
  readonly lost: number;
  readonly unreadable: number;
}

/** What a notifier needs. */
export interface NotifierOptions {
  readonly notifyStore: NotifyStorePort;
  /** Unique over all replicas and restarts. */
  readonly owner: string;
  readonly set: () => PolicySet;
  readonly policy: (name: string) => Policy | undefined;
  readonly deliver: DeliverNotices;
  readonly breaker: (service: string) => Promise<Breaker>;
  /**
   * The stale ones of these policies, and since when; `floors`: the end of the last outage of each
   * service.
   */
  readonly silences: (
    policies: readonly Policy[],
    floors: ReadonlyMap<string, number>,
  ) => Promise<ReadonlyMap<string, number>>;
  /** Tokens that expire soon and cannot be renewed: service → instant. */
  readonly tokens: () => ReadonlyMap<string, number>;
  /** Called on each tick of the replica that has the lease. */
  readonly onTick?: () => void;
  readonly clock: Clock;
  readonly log: EventLog;
}
