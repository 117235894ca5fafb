-- Marks a start as confirmed. A good answer to the only request ends the doubt, also where an
-- activity has confirmed the start before.
-- KEYS: entry, in flight
-- ARGV: task, confirmedBy ('answer' or 'evidence'), when the answer came ('': now)
-- Answers 0 when the start ended without this, or Redis forgot it; 0 also when its permission was
-- taken back; else 1.
local entryKey, inFlightKey = unpack(KEYS)
local task, confirmedBy, atMs = unpack(ARGV)
--- @include "now"
local entry = redis.call('HMGET', entryKey, 'state', 'sends', 'confirmedBy')
local isByActivity = entry[1] == 'confirmed' and entry[3] == 'evidence'
if entry[1] ~= 'sending' and not (isByActivity and confirmedBy == 'answer') then
  return entry[3] and (confirmedBy == 'evidence' or entry[3] == 'answer') and 1 or 0
end
if confirmedBy == 'answer' and entry[2] == '1' then redis.call('HDEL', entryKey, 'doubt') end
local confirmedAtMs = math.min(now, tonumber(atMs) or now)
redis.call('HSET', entryKey, 'state', 'confirmed', 'confirmedAtMs', confirmedAtMs, 'confirmedBy', confirmedBy)
local sent = redis.call('HGET', inFlightKey, task)
if sent and not isByActivity then redis.call('HSET', inFlightKey, task, sent .. '+') end
return 1
