-- Notes why a start is in doubt. What its sender says replaces a guess that it died.
-- KEYS: entry
-- ARGV: doubt (JSON), its kind
-- Answers the doubt that stands; the given one where none is noted any more.
local entryKey = KEYS[1]
local doubt, kind = unpack(ARGV)
local state, known = unpack(redis.call('HMGET', entryKey, 'state', 'doubt'))
if known and (kind == 'crash' or cjson.decode(known).kind ~= 'crash') then return known end
if state == 'sending' or state == 'confirmed' then redis.call('HSET', entryKey, 'doubt', doubt) end
return doubt
