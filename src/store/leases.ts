// Leases: which task works on a sync job now. A worker takes one before a start. It ends with the
// outcome of its holder (history.ts); another task takes it over from a holder without a worker
// (tasks/step.ts); otherwise it expires.
import { createScript, type Store } from "./redis.ts";
import { entryKey } from "./start-entry.ts";

/**
 * Lua: takes or prolongs a lease and answers its holder. Part of the steps that claim a start and
 * of the fast path (journal-scripts.ts).
 */
export const acquireLua = `
local function acquire(lease, task, durationMs)
  local holder = redis.call('GET', lease)
  if holder and holder ~= task then return holder end
  redis.call('SET', lease, task, 'PX', durationMs)
  return task
end`;

/**
 * Lua: releases a lease, if this task holds it. Part of the step that writes an outcome
 * (history.ts).
 */
export const releaseLua = `
local function release(lease, task)
  if redis.call('GET', lease) == task then redis.call('DEL', lease) end
end`;

// Takes or prolongs a lease for a claimed start.
// KEYS: lease, journal entry.
// ARGV: task, owner, duration.
// Answers the holder; nothing when another owner has the claim.
const acquireScript = createScript(`${acquireLua}
local entry = redis.call('HMGET', KEYS[2], 'state', 'owner')
if entry[1] ~= 'claimed' or entry[2] ~= ARGV[2] then return false end
return acquire(KEYS[1], ARGV[1], ARGV[3])`);

// Takes a lease over from a holder that has sent nothing or is over. The holder's entry loses its
// owner, so that a worker still on it may send nothing.
// KEYS: lease, journal entry, entry of the holder.
// ARGV: task, owner, duration, holder, '1' when the holder is over.
// Answers as above. Without the holder's entry, or with a newer one, its requests are unknown: the
// lease stays.
const takeOverScript = createScript(`${acquireLua}
local entry = redis.call('HMGET', KEYS[2], 'state', 'owner')
if entry[1] ~= 'claimed' or entry[2] ~= ARGV[2] then return false end
if redis.call('GET', KEYS[1]) == ARGV[4] then
  local held = redis.call('HMGET', KEYS[3], 'state', 'v')
  if (tonumber(held[2]) or 1) > 1 or (held[1] ~= 'claimed' and ARGV[5] ~= '1') then return ARGV[4] end
  if held[1] then redis.call('HSET', KEYS[3], 'owner', '') end
  redis.call('DEL', KEYS[1])
end
return acquire(KEYS[1], ARGV[1], ARGV[3])`);

const releaseScript = createScript(`${releaseLua}
release(KEYS[1], ARGV[1])`);

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

  /**
   * Takes or prolongs the lease for a task that this owner has claimed. Answers the holder's task
   * id; undefined when the owner lost the claim: the start went on elsewhere and must take no lease
   * here.
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

  /**
   * As `acquire`, but takes the lease over from this holder, whose worker is gone, if it has sent
   * nothing or is over. The holder loses its claim in the same step, so it may send nothing
   * afterwards. Leases of other holders stay.
   */
  async takeOver(
    task: LeaseSubject & { readonly id: string },
    owner: string,
    from: { readonly holder: string; readonly isOver: boolean; readonly durationMs: number },
  ): Promise<string | undefined> {
    const entries = [task.id, from.holder].map((id) => entryKey(this.#store, id));
    const args = [task.id, owner, from.durationMs, from.holder, from.isOver ? 1 : 0];
    const holder = await takeOverScript(this.#store, [leaseKey(this.#store, task), ...entries], args);
    return typeof holder === "string" ? holder : undefined;
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
