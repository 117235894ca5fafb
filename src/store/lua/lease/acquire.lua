-- Takes or prolongs a lease for a claimed start.
-- KEYS: lease, entry
-- ARGV: task, owner, durationMs
-- Answers the holder; nothing when another owner has the claim.
local leaseKey, entryKey = unpack(KEYS)
local task, owner, durationMs = unpack(ARGV)
--- @include "lease"
local entry = redis.call('HMGET', entryKey, 'state', 'owner')
if entry[1] ~= 'claimed' or entry[2] ~= owner then return false end
return acquireLease(leaseKey, task, durationMs)
