-- A shared reading: how long it is kept, and the lease of its reader. After a reader's silence of
-- that long, it counts as dead.
--- @include "now"
local readingKeptMs, readerLeaseMs = 60000, 30000
local function keepAtLeast(readingKey, forMs)
  if redis.call('PTTL', readingKey) < forMs then redis.call('PEXPIRE', readingKey, forMs) end
end
local function prolongReader(readingKey)
  redis.call('HSET', readingKey, 'readerUntilMs', now + readerLeaseMs)
  keepAtLeast(readingKey, readingKeptMs)
end
local function releaseReader(readingKey, token)
  if redis.call('HGET', readingKey, 'reader') == token then redis.call('HDEL', readingKey, 'reader') end
end
