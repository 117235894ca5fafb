-- Marks a start as answered. A good answer to the only request ends the doubt.
-- KEYS: entry, in flight
-- ARGV: task, shownBy ('answer' or 'evidence')
local entryKey, inFlightKey = unpack(KEYS)
local task, shownBy = unpack(ARGV)
--- @include "now"
local entry = redis.call('HMGET', entryKey, 'state', 'sends')
if entry[1] ~= 'sending' then return end
if shownBy == 'answer' and entry[2] == '1' then redis.call('HDEL', entryKey, 'doubt') end
redis.call('HSET', entryKey, 'state', 'answered', 'answeredAtMs', now, 'shownBy', shownBy)
local sent = redis.call('HGET', inFlightKey, task)
if sent then redis.call('HSET', inFlightKey, task, sent .. '+') end
