-- Notes a deleted sync job; the newest note of a sync job wins.
-- KEYS: notes, order
-- ARGV: field, note, atMs, most, keptMs
local notesKey, orderKey = unpack(KEYS)
local field, note, atMs, most, keptMs = unpack(ARGV)
--- @include "drop-oldest"
if redis.call('ZADD', orderKey, 'GT', 'CH', atMs, field) == 1 then redis.call('HSET', notesKey, field, note) end
dropOldest(orderKey, notesKey, most)
redis.call('PEXPIRE', notesKey, keptMs)
redis.call('PEXPIRE', orderKey, keptMs)
