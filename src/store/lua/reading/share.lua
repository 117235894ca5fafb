-- Shares a reading.
-- KEYS: reading
-- ARGV: token, beganMs, number of items, the packed pages ('' for a list that is too long)
-- Answers for how many polls in a row the list was too large to share.
local readingKey = KEYS[1]
local token, beganMs, count, pages = unpack(ARGV)
--- @include "reading"
releaseReader(readingKey, token)
local unshared = tonumber(redis.call('HGET', readingKey, 'unshared') or 0)
redis.call('HDEL', readingKey, 'aloneUntilMs')
if pages ~= '' then redis.call('HDEL', readingKey, 'unshared') end
if tonumber(redis.call('HGET', readingKey, 'beganMs') or 0) > tonumber(beganMs) then return unshared end
redis.call('HSET', readingKey, 'beganMs', beganMs, 'endedMs', now, 'count', count, 'pages', pages)
if pages ~= '' then redis.call('PEXPIRE', readingKey, readingKeptMs) else keepAtLeast(readingKey, readingKeptMs) end
return unshared
