-- Shares a reading.
-- KEYS: reading
-- ARGV: token, beganMs, number of items, the packed pages ('' for a list that is too long)
local readingKey = KEYS[1]
local token, beganMs, count, pages = unpack(ARGV)
--- @include "reading"
releaseReader(readingKey, token)
if tonumber(redis.call('HGET', readingKey, 'beganMs') or 0) > tonumber(beganMs) then return end
redis.call('HSET', readingKey, 'beganMs', beganMs, 'endedMs', now, 'count', count, 'pages', pages)
redis.call('PEXPIRE', readingKey, readingKeptMs)
