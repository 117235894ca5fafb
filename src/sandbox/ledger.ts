// The ledger: every change that happened, whether or not its answer arrived, and every request by
// status. The exchange writes it; tests, the demo and `/_sandbox/ledger` read it.
import type { OperationName } from "./address.ts";
import type { Effect } from "./reply.ts";

/** One change. A refused request has no entry. */
export interface LedgerEntry extends Effect {
  /** 1 for the first change. */
  readonly number: number;
  readonly operation: OperationName;
  /** When it happened, in milliseconds since 1970-01-01 UTC. */
  readonly atMs: number;
  /** The `Idempotency-Key` header, recorded only. */
  readonly idempotencyKey: string | null;
  /** `500`: answered 500 all the same; `lost`: the answer was not sent, or only in part. */
  readonly answered: "yes" | "lost" | "500";
}

/** Requests by operation (or `unknown`) and by status (or `cut`: no whole answer was intended). */
export type RequestCounts = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** The most changes in a ledger; further operations get 500. */
const entriesMax = 100_000;

/** Sets how an entry was answered. */
export type SetAnswered = (answered: LedgerEntry["answered"]) => void;

/** The ledger of one sandbox. */
export class Ledger {
  readonly #entries: LedgerEntry[] = [];
  readonly #counts = new Map<string, Map<string, number>>();

  /** True when no further change fits. */
  get isFull(): boolean {
    return this.#entries.length >= entriesMax;
  }

  /** Records a change, as `lost` until the returned function is called. */
  record(what: Omit<LedgerEntry, "number" | "answered">): SetAnswered {
    const index = this.#entries.length;
    const entry: LedgerEntry = { number: index + 1, ...what, answered: "lost" };
    this.#entries.push(entry);
    return (answered) => {
      this.#entries[index] = { ...entry, answered };
    };
  }

  /** Counts one request. `status` is the HTTP status, or `cut`. */
  count(operation: OperationName | "unknown", status: number | "cut"): void {
    const counts = this.#counts.get(operation) ?? new Map<string, number>();
    this.#counts.set(operation, counts.set(String(status), (counts.get(String(status)) ?? 0) + 1));
  }

  /** The changes so far, oldest first. */
  entries(): readonly LedgerEntry[] {
    return [...this.#entries];
  }

  /** The requests so far. Those to `/_sandbox` do not count. */
  requests(): RequestCounts {
    return Object.fromEntries([...this.#counts].map(([operation, counts]) => [operation, Object.fromEntries(counts)]));
  }
}
