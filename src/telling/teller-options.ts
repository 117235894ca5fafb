// What the teller is made of: the book it keeps, and what it asks of others. Read by teller.ts; filled in by app/create-telling.ts.
import type { Policy, PolicySet } from "../config/policy-set.ts";
import type { Clock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";
import type { DeliverNotices } from "../tasks/notice.ts";
import type { TellingEvent } from "../tasks/telling-event.ts";
import type { Breaker } from "./pass.ts";

/** Texts by field; undefined takes the field out. */
export type Texts = ReadonlyMap<string, string | undefined>;
type Part = "policies" | "services" | "held" | "heartbeats";
/** What a save changes. */
export type Changes = Readonly<Record<Part, Texts>>;

/** What the teller needs of the telling book (store/telling-book.ts). */
export interface Book {
  nowMs(): Promise<number>;
  take(owner: string, durationMs: number): Promise<boolean>;
  leave(owner: string): Promise<void>;
  read(count: number): Promise<Portion>;
  standing(part: Part, fields?: readonly string[]): Promise<Map<string, string>>;
  save(owner: string, portion: Pick<Portion, "cursor" | "passed">, changes: Changes): Promise<boolean>;
  noteLost(count: number): Promise<void>;
}

interface Portion {
  readonly events: readonly TellingEvent[];
  readonly cursor: string;
  readonly passed: number;
  readonly lost: number;
  readonly unreadable: number;
}

/** What a teller is made of. */
export interface TellerOptions {
  readonly book: Book;
  /** One name over all replicas and restarts. */
  readonly owner: string;
  readonly set: () => PolicySet;
  readonly policy: (name: string) => Policy | undefined;
  readonly deliver: DeliverNotices;
  readonly breaker: (service: string) => Promise<Breaker>;
  /** Of these policies those without a success for two intervals, and since when; `floors`: the end of the last outage of each service. */
  readonly silences: (
    policies: readonly Policy[],
    floors: ReadonlyMap<string, number>,
  ) => Promise<ReadonlyMap<string, number>>;
  /** Tokens that cannot be renewed and run out soon: service → instant. */
  readonly tokens: () => ReadonlyMap<string, number>;
  /** Called on each beat of whoever has the lease. */
  readonly onBeat?: () => void;
  readonly clock: Clock;
  readonly log: EventLog;
}
