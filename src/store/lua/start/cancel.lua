-- Notes that a person cancels a task. No request of it is permitted from now on: a worker that has
-- the claim loses it.
-- KEYS: entry
-- ARGV: cancelled (by whom, and why), retentionMs
-- Answers the state that it meets: 'claimed' (also without an entry), 'sending', 'confirmed',
-- 'settled'; or 'fanned-out', when tasks of sync jobs replace this one.
local entryKey = KEYS[1]
local cancelled, retentionMs = unpack(ARGV)
--- @include "now"
local entry = redis.call('HMGET', entryKey, 'state', 'targets', 'fannedOutInto')
local state = entry[1] or 'claimed'
if entry[2] or entry[3] then return 'fanned-out' end
if state == 'settled' then return state end
if state == 'claimed' then
  redis.call('HSET', entryKey, 'v', 1, 'state', state, 'claimant', '')
  redis.call('HSETNX', entryKey, 'claimedAtMs', now)
end
redis.call('HSETNX', entryKey, 'cancelled', cancelled)
redis.call('PEXPIRE', entryKey, retentionMs)
return state
