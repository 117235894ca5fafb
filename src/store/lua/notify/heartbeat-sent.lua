-- Removes a sent heartbeat, unless a newer one is due.
-- KEYS: heartbeats
-- ARGV: policy, value
local heartbeatsKey = KEYS[1]
local policy, value = unpack(ARGV)
if redis.call('HGET', heartbeatsKey, policy) == value then redis.call('HDEL', heartbeatsKey, policy) end
