-- Notes since when the same activities of a run are finished.
-- KEYS: entry
-- ARGV: activities (as one text; '' while one of them goes on)
-- Answers since when; nothing for ''.
local entryKey, activities = KEYS[1], ARGV[1]
--- @include "now"
if activities == '' then
  redis.call('HDEL', entryKey, 'finishSeenAtMs', 'finishSeenOf')
  return false
end
if redis.call('HGET', entryKey, 'finishSeenOf') ~= activities then
  redis.call('HSET', entryKey, 'finishSeenOf', activities, 'finishSeenAtMs', now)
end
return redis.call('HGET', entryKey, 'finishSeenAtMs')
