-- Replaces a task by those that it fanned out into.
-- KEYS: entry
-- ARGV: tasks (JSON), retentionMs
local entryKey = KEYS[1]
local tasks, retentionMs = unpack(ARGV)
redis.call('HSET', entryKey, 'v', 1, 'state', 'settled', 'fannedOutInto', tasks)
redis.call('HDEL', entryKey, 'targets')
redis.call('PEXPIRE', entryKey, retentionMs)
