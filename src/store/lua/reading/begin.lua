-- Asks for a reading.
-- KEYS: reading, first request of the task
-- ARGV: token, sinceMs, afterMs, '1' when the task's first request counts
-- Answers { 'take' | 'read' | 'wait' | 'alone', since when, now }.
local readingKey, firstRequestKey = unpack(KEYS)
local token, sinceMs, afterMs, hasFirstRequest = unpack(ARGV)
--- @include "reading"
local firstRequestKeptMs = 3600000
local since = tonumber(sinceMs)
if hasFirstRequest == '1' then
  redis.call('SET', firstRequestKey, now, 'NX', 'PX', firstRequestKeptMs)
  since = math.max(since, tonumber(redis.call('GET', firstRequestKey)))
end
local beganMs, endedMs, reader, readerBeganMs, readerUntilMs, aloneUntilMs = unpack(redis.call(
  'HMGET', readingKey, 'beganMs', 'endedMs', 'reader', 'readerBeganMs', 'readerUntilMs', 'aloneUntilMs'
))
local began = tonumber(beganMs or 0)
if endedMs and began >= since and began > tonumber(afterMs) and now - endedMs <= readingKeptMs then
  return { 'take', began, now }
end
if tonumber(aloneUntilMs or 0) > now then
  redis.call('HINCRBY', readingKey, 'unshared', 1)
  return { 'alone', now, now }
end
if reader and tonumber(readerUntilMs) > now then return { 'wait', tonumber(readerBeganMs), now } end
redis.call('HSET', readingKey, 'reader', token, 'readerBeganMs', now)
prolongReader(readingKey)
return { 'read', now, now }
