-- Marks a list as too large to share: each worker reads it by itself for ten minutes.
-- KEYS: reading
-- ARGV: token
local readingKey, token = KEYS[1], ARGV[1]
--- @include "reading"
local aloneForMs = 600000
releaseReader(readingKey, token)
redis.call('HDEL', readingKey, 'beganMs', 'endedMs', 'count', 'pages')
redis.call('HSET', readingKey, 'aloneUntilMs', now + aloneForMs)
redis.call('PEXPIRE', readingKey, aloneForMs)
