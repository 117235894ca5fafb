-- Takes back the newest permission of this owner. With no request left, the task may claim anew.
-- Repeating the command changes nothing.
-- KEYS: entry, in flight
-- ARGV: owner, task
local entryKey, inFlightKey = unpack(KEYS)
local owner, task = unpack(ARGV)
--- @include "take-back"
local entry = redis.call('HMGET', entryKey, 'state', 'owner', 'sends')
if entry[1] ~= 'sending' or entry[2] ~= owner then return end
local sends = entry[3] - 1
if sends > 0 then
  redis.call('HSET', entryKey, 'sends', sends, 'owner', '')
else
  takeBack(entryKey, inFlightKey, task)
end
