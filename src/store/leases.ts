// Leases: which task works on a sync job now. A lease ends with its holder's outcome, by a takeover
// from a holder without a worker (tasks/step.ts), or by itself.
import type { Store } from "./redis.ts";
import { asNothing, asOptional, asText, createScript } from "./script.ts";
import { entryKey } from "./start-entry.ts";

const acquireScript = createScript("lease/acquire-for-start", asOptional(asText));
const takeOverScript = createScript("lease/take-over", asOptional(asText));
const releaseScript = createScript("lease/release", asNothing);

/** The subject of a lease: one sync job of one repository at one service. */
export interface LeaseSubject {
  readonly service: string;
  readonly repository: string | null;
  readonly target: string;
}

/** Leases in Redis. */
export class Leases {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Takes or prolongs the lease; answers its holder, or undefined: another step has the claim. */
  async acquire(
    task: LeaseSubject & { readonly id: string },
    claimant: string,
    durationMs: number,
  ): Promise<string | undefined> {
    const keys = [leaseKey(this.#store, task), entryKey(this.#store, task.id)];
    return acquireScript(this.#store, keys, [task.id, claimant, durationMs]);
  }

  /**
   * As `acquire`, but from this holder, whose worker is gone, if it has sent nothing or is over.
   * The holder loses its claim.
   */
  async takeOver(
    task: LeaseSubject & { readonly id: string },
    claimant: string,
    from: { readonly holder: string; readonly isOver: boolean; readonly durationMs: number },
  ): Promise<string | undefined> {
    const entries = [task.id, from.holder].map((id) => entryKey(this.#store, id));
    const args = [task.id, claimant, from.durationMs, from.holder, from.isOver ? 1 : 0];
    return takeOverScript(this.#store, [leaseKey(this.#store, task), ...entries], args);
  }

  /** Returns the task that holds the lease; undefined when it is free. */
  async holder(subject: LeaseSubject): Promise<string | undefined> {
    return (await this.#store.redis.get(leaseKey(this.#store, subject))) ?? undefined;
  }

  /** Releases the lease, if this task holds it. */
  async release(subject: LeaseSubject, holder: string): Promise<void> {
    await releaseScript(this.#store, [leaseKey(this.#store, subject)], [holder]);
  }
}

/** Key of the lease on a sync job. */
export function leaseKey({ key }: Pick<Store, "key">, { service, repository, target }: LeaseSubject): string {
  return key("lease", service, repository ?? "", target);
}
