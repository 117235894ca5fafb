-- Asks for a reading.
-- KEYS: reading, when the task first asked
-- ARGV: token, sinceMs, afterMs, '1' when the first ask counts
-- Answers { 'take' | 'read' | 'wait' | 'alone', since when, now }.
local readingKey, firstAskKey = unpack(KEYS)
local token, sinceMs, afterMs, countsFirstAsk = unpack(ARGV)
--- @include "reading"
local firstAskKeptMs = 3600000
local since = tonumber(sinceMs)
if countsFirstAsk == '1' then
  redis.call('SET', firstAskKey, now, 'NX', 'PX', firstAskKeptMs)
  since = math.max(since, tonumber(redis.call('GET', firstAskKey)))
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
