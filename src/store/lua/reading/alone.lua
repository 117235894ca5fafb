-- Marks a list as too large to share: each worker reads it by itself for ten minutes.
-- KEYS: reading
-- ARGV: token
-- Answers for how many polls in a row it is too large, this one included.
local readingKey, token = KEYS[1], ARGV[1]
--- @include "reading"
local aloneForMs, countKeptMs = 600000, 691200000
releaseReader(readingKey, token)
redis.call('HDEL', readingKey, 'beganMs', 'endedMs', 'count', 'pages')
redis.call('HSET', readingKey, 'aloneUntilMs', now + aloneForMs)
redis.call('PEXPIRE', readingKey, countKeptMs)
return redis.call('HINCRBY', readingKey, 'unshared', 1)
