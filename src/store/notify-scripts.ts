// The atomic steps of the notifier, in Lua. Called by notify-store.ts only, except
// `noteOutcomeLua`, `noteSlotLua` and `noteMasksLua`: they run in the steps that record an outcome
// (history.ts), a slot (ledger-scripts.ts) and the sync jobs of masks (journal-scripts.ts).
import { notifyEventsMax } from "../model/notify-event.ts";
import { createScript } from "./redis.ts";

/**
 * Lua: adds an outcome to the stream. The stream is bounded; the notifier counts the events it
 * missed.
 */
export const noteOutcomeLua = `
local function tell(stream, outcome) redis.call('XADD', stream, 'MAXLEN', '~', ${notifyEventsMax}, '*', 'o', outcome) end`;

/** Lua: adds a slot to the stream, if its record says that it was missed. */
export const noteSlotLua = `
local function tell(stream, policy, slot, record)
  if not string.find(record, '"state":"missed"', 1, true) then return end
  redis.call('XADD', stream, 'MAXLEN', '~', ${notifyEventsMax}, '*', 'p', policy, 's', slot, 'r', record)
end`;

/** Lua: adds the sync jobs of a policy's masks to the stream. */
export const noteMasksLua = `
local function tellMasks(stream, policy, slot, syncJobs)
  redis.call('XADD', stream, 'MAXLEN', '~', ${notifyEventsMax}, '*', 'p', policy, 's', slot, 'm', syncJobs)
end`;

/**
 * Takes or prolongs the lease.
 * KEYS: lease.
 * ARGV: owner, duration.
 * Answers 1 when the owner has it.
 */
export const takeScript = createScript(`
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`);

/**
 * Releases the lease.
 * KEYS: lease.
 * ARGV: owner.
 */
export const releaseScript = createScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1`);

/**
 * Reads the next events. Saving removes handled events, so all that is in the stream is
 * unpublished.
 * KEYS: stream, state.
 * ARGV: most events.
 * Answers the events after the cursor, how many were lost, and now.
 */
export const readScript = createScript(`
local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)
if redis.call('EXISTS', KEYS[1]) == 0 then return { {}, 0, now } end
local cursor = redis.call('HGET', KEYS[2], 'cursor')
local events = redis.call('XRANGE', KEYS[1], cursor and ('(' .. cursor) or '-', '+', 'COUNT', ARGV[1])
local info, added = redis.call('XINFO', 'STREAM', KEYS[1]), 0
for i = 1, #info, 2 do if info[i] == 'entries-added' then added = info[i + 1] end end
local lost = added - tonumber(redis.call('HGET', KEYS[2], 'handled') or 0) - redis.call('XLEN', KEYS[1])
return { events, lost, now }`);

/**
 * Saves the notifier's states and moves its cursor, all or nothing, if the owner has the lease.
 * KEYS: lease, state, stream, policies, services, muted, outbox, heartbeats.
 * ARGV: owner, cursor ('' for none), number of events that it passes, then triples of key (4 to 8),
 * field and value ('' removes the field).
 * Answers 1, or 0 when another notifier has the lease.
 */
export const saveScript = createScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
for i = 4, #ARGV, 3 do
  local key = KEYS[tonumber(ARGV[i])]
  if ARGV[i + 2] == '' then redis.call('HDEL', key, ARGV[i + 1]) else redis.call('HSET', key, ARGV[i + 1], ARGV[i + 2]) end
end
redis.call('HINCRBY', KEYS[2], 'handled', ARGV[3])
if ARGV[2] ~= '' then
  redis.call('HSET', KEYS[2], 'cursor', ARGV[2])
  redis.call('XTRIM', KEYS[3], 'MINID', '=', ARGV[2])
  redis.call('XDEL', KEYS[3], ARGV[2])
end
return 1`);

/**
 * Removes a sent heartbeat, unless a newer one is due.
 * KEYS: heartbeats.
 * ARGV: policy, value.
 */
export const sentScript = createScript(`
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
return 1`);
