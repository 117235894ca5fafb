// The atomic steps of telling, in Redis's own language. Called by telling-book.ts only, apart from `noteOutcomeLua` and `noteSlotLua`, which
// are part of the steps that record an outcome (history.ts) and a slot (ledger-scripts.ts).
import { tellingEventsMax } from "../tasks/telling-event.ts";
import { createScript } from "./redis.ts";

/** Lua: adds an outcome to the stream. The stream holds a bounded number; the teller counts what it never saw. */
export const noteOutcomeLua = `
local function tell(stream, outcome) redis.call('XADD', stream, 'MAXLEN', '~', ${tellingEventsMax}, '*', 'o', outcome) end`;

/** Lua: adds a slot to the stream when its record says that it was missed. */
export const noteSlotLua = `
local function tell(stream, policy, slot, record)
  if not string.find(record, '"state":"missed"', 1, true) then return end
  redis.call('XADD', stream, 'MAXLEN', '~', ${tellingEventsMax}, '*', 'p', policy, 's', slot, 'r', record)
end`;

/** Takes or prolongs the lease. KEYS: lease. ARGV: owner, duration. Answers 1 when it is the owner's now. */
export const takeScript = createScript(`
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`);

/** Lets go of the lease. KEYS: lease. ARGV: owner. */
export const leaveScript = createScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1`);

/**
 * The next events. KEYS: stream, state. ARGV: the most. Answers the events from the cursor on, how many were lost, and now. What was handled is taken out when it is saved, so all that is there is still to be told.
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
 * Saves what telling has come to, if the lease is still held: all or nothing.
 * KEYS: lease, state, stream, policies, services, held, heartbeats. ARGV: owner, cursor ('' for none), how many events it passes, then
 * triples of 4 to 7 (the key), field and value ('' takes the field out). Answers 1, or 0 when the lease is another's.
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

/** Takes a heartbeat out that was sent, unless a newer one is due. KEYS: heartbeats. ARGV: policy, value. */
export const sentScript = createScript(`
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
return 1`);
