-- Sets a field, unless it is set.
-- KEYS: entry
-- ARGV: field, value ('' for now)
-- Answers its value.
local entryKey = KEYS[1]
local field, value = unpack(ARGV)
--- @include "now"
redis.call('HSETNX', entryKey, field, value == '' and now or value)
return redis.call('HGET', entryKey, field)
