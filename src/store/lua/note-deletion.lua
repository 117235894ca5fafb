-- Notes a deleted sync job; the newest note of a sync job wins.
-- KEYS: notes, order
-- ARGV: field, note, atMs, most, keptMs
local notesKey, orderKey = unpack(KEYS)
local field, note, atMs, most, keptMs = unpack(ARGV)
--- @include "drop-oldest"
redis.call('HSET', notesKey, field, note)
redis.call('ZADD', orderKey, atMs, field)
dropOldest(orderKey, notesKey, most)
redis.call('PEXPIRE', notesKey, keptMs)
redis.call('PEXPIRE', orderKey, keptMs)
