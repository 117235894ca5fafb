// Leases: who works on a sync job right now. Called by work/ before a start; a lease ends by itself when its holder dies.
import { createScript, type Store } from "./redis.ts";

const acquireScript = createScript(`
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return holder end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]`);

const releaseScript = createScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`);

/** What a lease is on: one sync job of one repository at one service. */
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

  /** Takes or prolongs the lease for this holder. Answers who holds it: the holder itself when it worked. */
  async acquire(subject: LeaseSubject, holder: string, durationMs: number): Promise<string> {
    return String(await acquireScript(this.#store, [this.#key(subject)], [holder, durationMs]));
  }

  /** Who holds the lease: a task's id; undefined when it is free. */
  async holder(subject: LeaseSubject): Promise<string | undefined> {
    return (await this.#store.redis.get(this.#key(subject))) ?? undefined;
  }

  /** Gives the lease back, if this holder has it. */
  async release(subject: LeaseSubject, holder: string): Promise<void> {
    await releaseScript(this.#store, [this.#key(subject)], [holder]);
  }

  #key({ service, repository, target }: LeaseSubject): string {
    return this.#store.key("lease", service, repository ?? "", target);
  }
}
