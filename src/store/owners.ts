// The owners of a prefix. Every process with an owner's name announces it once a second; the first
// owner holds the prefix until its processes have been silent for 15 seconds. Called by
// app/redis-guard.ts; `syncline doctor` and `syncline status` read it.
import { createScript, type Store } from "./redis.ts";

/** The holder of a prefix, and other owners with live processes. */
export interface Owners {
  readonly holder: string | undefined;
  readonly others: readonly string[];
}

const silentForMs = 15_000;

/**
 * Announces an owner.
 * KEYS: owners (hash: name → when it was seen; '' → the holder).
 * ARGV: this owner, or '' to read only.
 * Answers the holder, then the other owners.
 */
const ownersScript = createScript(`
local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)
local me, names, alive = ARGV[1], redis.call('HGETALL', KEYS[1]), {}
for i = 1, #names, 2 do
  if names[i] ~= '' and now - tonumber(names[i + 1]) <= ${silentForMs} then alive[names[i]] = true end
end
local holder = redis.call('HGET', KEYS[1], '')
if not holder or not alive[holder] then holder = me end
if me ~= '' then
  redis.call('HSET', KEYS[1], me, string.format('%.0f', now), '', holder)
  for i = 1, #names, 2 do
    if names[i] ~= '' and names[i] ~= me and not alive[names[i]] then redis.call('HDEL', KEYS[1], names[i]) end
  end
end
local answer = { holder }
for name in pairs(alive) do
  if name ~= holder then table.insert(answer, name) end
end
return answer`);

/** Announces a process of this owner, and takes the prefix where no other owner holds it. */
export function announceOwner(store: Store, owner: string): Promise<Owners> {
  return ask(store, owner);
}

/** Reads the holder of the prefix and the other owners. */
export function readOwners(store: Store): Promise<Owners> {
  return ask(store, "");
}

async function ask(store: Store, owner: string): Promise<Owners> {
  const answer = await ownersScript(store, [store.key("owners")], [owner]);
  const [holder = "", ...others] = Array.isArray(answer) ? answer.map(String) : [];
  return { holder: holder === "" ? undefined : holder, others: others.toSorted() };
}

/** The error for two owners under one prefix, with the cure. */
export function foreignOwner(owners: readonly string[]): string {
  return `policies of ${owners.join(" and ")} run under one prefix, and each would run the other's; give each a --prefix of its own`;
}
