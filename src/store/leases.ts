// Leases: who works on a sync job right now. Called by work/ before a start; a lease ends by itself when its holder dies.
import { createScript, type Store } from "./redis.ts";

/** Lua: takes or prolongs a lease; who holds it. Part of the step that permits a plain start, too (journal-scripts.ts). */
export const acquireLua = `
local function acquire(lease, task, durationMs)
  local holder = redis.call('GET', lease)
  if holder and holder ~= task then return holder end
  redis.call('SET', lease, task, 'PX', durationMs)
  return task
end`;

/** Lua: gives a lease back, if this holder has it. Part of the step that writes an outcome, too (history.ts). */
export const releaseLua = `
local function release(lease, task)
  if redis.call('GET', lease) == task then redis.call('DEL', lease) end
end`;

const acquireScript = createScript(`${acquireLua}
return acquire(KEYS[1], ARGV[1], ARGV[2])`);

const releaseScript = createScript(`${releaseLua}
release(KEYS[1], ARGV[1])`);

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
    return String(await acquireScript(this.#store, [leaseKey(this.#store, subject)], [holder, durationMs]));
  }

  /** Who holds the lease: a task's id; undefined when it is free. */
  async holder(subject: LeaseSubject): Promise<string | undefined> {
    return (await this.#store.redis.get(leaseKey(this.#store, subject))) ?? undefined;
  }

  /** Gives the lease back, if this holder has it. */
  async release(subject: LeaseSubject, holder: string): Promise<void> {
    await releaseScript(this.#store, [leaseKey(this.#store, subject)], [holder]);
  }
}

/** Where the lease on a sync job stands. */
export function leaseKey({ key }: Pick<Store, "key">, { service, repository, target }: LeaseSubject): string {
  return key("lease", service, repository ?? "", target);
}
