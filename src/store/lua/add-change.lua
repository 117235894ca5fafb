-- Adds a change to the audit record and drops the oldest.
-- KEYS: changes
-- ARGV: change, index of the last one to keep
redis.call('LPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], 0, ARGV[2])
