// Leases: which task works on a sync job now. A lease ends with its holder's outcome, by a takeover
// from a holder that is no longer in the queue (tasks/step.ts), or by itself after seven days
// without a step of it. Until then the holder keeps it, though no worker steps for long: its run
// may go on.
import type { FindJobStatus } from "../model/task-processing.ts";
import type { Store } from "./redis.ts";
import { asNothing, asOptional, asText, createScript } from "./script.ts";
import { entryKey } from "./start-entry.ts";

const acquireScript = createScript("lease/acquire-for-start", asOptional(asText));
const takeOverScript = createScript("lease/take-over", asOptional(asText));
const releaseScript = createScript("lease/release", asNothing);

/** A lease that no task takes over ends by itself after so long. A step of its holder renews it. */
export const leaseMs = 7 * 86_400_000;
/** A holder that is not in the queue and does not renew its lease for this long counts as dead. */
const silentMs = 300_000;

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
  async acquire(task: LeaseSubject & { readonly id: string }, claimant: string): Promise<string | undefined> {
    const keys = [leaseKey(this.#store, task), entryKey(this.#store, task.id)];
    return acquireScript(this.#store, keys, [task.id, claimant, leaseMs]);
  }

  /**
   * As `acquire`, but from this holder, which is not in the queue, if it has sent nothing, is over,
   * or has been silent for five minutes. The holder loses its claim.
   */
  async takeOver(
    task: LeaseSubject & { readonly id: string },
    claimant: string,
    from: { readonly holder: string; readonly isOver: boolean },
  ): Promise<string | undefined> {
    const entries = [task.id, from.holder].map((id) => entryKey(this.#store, id));
    const args = [task.id, claimant, leaseMs, from.holder, from.isOver ? 1 : 0, silentMs];
    return takeOverScript(this.#store, [leaseKey(this.#store, task), ...entries], args);
  }

  /** The task that holds the lease, also one that has been silent for long. */
  async holder(subject: LeaseSubject): Promise<string | undefined> {
    return (await this.#store.redis.get(leaseKey(this.#store, subject))) ?? undefined;
  }

  /** The same, unless that has been silent for five minutes and is not in the queue. */
  async liveHolder(subject: LeaseSubject, jobStatus: FindJobStatus): Promise<string | undefined> {
    const endsIn = this.#store.redis.pttl(leaseKey(this.#store, subject));
    const [holder, endsInMs] = await Promise.all([this.holder(subject), endsIn]);
    if (holder === undefined || leaseMs - endsInMs <= silentMs) return holder;
    return (await jobStatus(subject.service, holder)) === "pending" ? holder : undefined;
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
