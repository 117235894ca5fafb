// Leases: who works on a sync job right now. Called by work/ before a start; a lease ends with the outcome of its holder (history.ts), is
// taken over from one that nobody works on any more (work/take-lease.ts), and ends by itself when nobody brings that about.
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

// KEYS: lease, journal entry, entry of its holder. ARGV: task, owner, duration, holder, '1' when the holder is over. Answers as above. Its entry
// loses its owner: whatever still works on the holder may send nothing any more. Without an entry, or with a newer one, nobody knows what it sent.
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

  /**
   * As `acquire`, but takes the lease from this holder too, which the queue will not work on any more: if that has sent nothing, or is over.
   * In the same step it loses its claim, so that it may send nothing after that. Anybody else's lease stays.
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
