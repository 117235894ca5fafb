-- Marks a start as confirmed. A good answer to the only request ends the doubt.
-- KEYS: entry, in flight
-- ARGV: task, confirmedBy ('answer' or 'evidence')
-- Answers 0 when the start ended without this, or Redis forgot it; else 1.
local entryKey, inFlightKey = unpack(KEYS)
local task, confirmedBy = unpack(ARGV)
--- @include "now"
local entry = redis.call('HMGET', entryKey, 'state', 'sends', 'confirmedBy')
if entry[1] ~= 'sending' then return entry[3] and 1 or 0 end
if confirmedBy == 'answer' and entry[2] == '1' then redis.call('HDEL', entryKey, 'doubt') end
redis.call('HSET', entryKey, 'state', 'confirmed', 'confirmedAtMs', now, 'confirmedBy', confirmedBy)
local sent = redis.call('HGET', inFlightKey, task)
if sent then redis.call('HSET', inFlightKey, task, sent .. '+') end
return 1
