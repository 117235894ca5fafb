-- Claims a start, unless it is beyond `claimed` or its entry has a newer version.
--- @include "now"
local function claim(entryKey, claimant, retentionMs)
  local entry = redis.call('HMGET', entryKey, 'state', 'v')
  if (entry[1] and entry[1] ~= 'claimed') or (tonumber(entry[2]) or 1) > 1 then return end
  redis.call('HSET', entryKey, 'v', 1, 'state', 'claimed', 'claimant', claimant)
  redis.call('HSETNX', entryKey, 'claimedAtMs', now)
  redis.call('PEXPIRE', entryKey, retentionMs)
end

-- Takes back the only permission of a start.
local function takeBack(entryKey, inFlightKey, task)
  redis.call('HSET', entryKey, 'state', 'claimed')
  redis.call('HDEL', entryKey, 'sends', 'sentAtMs', 'lastSentAtMs', 'baseline', 'knownSeq', 'doubt')
  redis.call('HDEL', entryKey, 'deniedUntilMs', 'windowOverAtMs', 'confirmedAtMs', 'confirmedBy')
  redis.call('HDEL', entryKey, 'finishSeenAtMs', 'finishSeenOf', 'longAtMs', 'longNotedAtMs', 'overdueAtMs')
  redis.call('HDEL', inFlightKey, task)
end
