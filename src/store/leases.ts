// Leases: who works on a sync job right now. Called by work/ before a start; a lease ends with the outcome of its holder (history.ts), and
// by itself when nobody brings that about.
import { createScript, type Store } from "./redis.ts";
import { entryKey } from "./start-entry.ts";

/** Lua: takes or prolongs a lease; who holds it. Part of the steps that claim a start, and that permit a plain one (journal-scripts.ts). */
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

// KEYS: lease, journal entry. ARGV: task, owner, duration. Answers the holder; nothing when the claim is somebody else's by now.
const acquireScript = createScript(`${acquireLua}
local entry = redis.call('HMGET', KEYS[2], 'state', 'owner')
if entry[1] ~= 'claimed' or entry[2] ~= ARGV[2] then return false end
return acquire(KEYS[1], ARGV[1], ARGV[3])`);

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

  /**
   * Takes or prolongs the lease for a task that this owner has claimed. Answers which task holds it: this one when it worked. undefined
   * when the claim is not this owner's any more: the start has gone on without it, perhaps to its end, and must hold nothing after that.
   */
  async acquire(
    task: LeaseSubject & { readonly id: string },
    owner: string,
    durationMs: number,
  ): Promise<string | undefined> {
    const keys = [leaseKey(this.#store, task), entryKey(this.#store, task.id)];
    const holder = await acquireScript(this.#store, keys, [task.id, owner, durationMs]);
    return typeof holder === "string" ? holder : undefined;
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
