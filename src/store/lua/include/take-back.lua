-- Takes back the only permission of a start.
local function takeBack(entryKey, inFlightKey, task)
  redis.call('HSET', entryKey, 'state', 'claimed')
  redis.call('HDEL', entryKey, 'sends', 'sentAtMs', 'lastSentAtMs', 'baseline', 'knownSeq', 'doubt')
  redis.call('HDEL', entryKey, 'limitedUntilMs', 'unreadableAtMs')
  redis.call('HDEL', inFlightKey, task)
end
