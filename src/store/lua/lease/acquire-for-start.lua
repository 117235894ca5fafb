-- Takes or prolongs a lease for a claimed start.
-- KEYS: lease, entry
-- ARGV: task, claimant, durationMs
-- Answers the holder; nothing when another step has the claim.
local leaseKey, entryKey = unpack(KEYS)
local task, claimant, durationMs = unpack(ARGV)
--- @include "lease"
local entry = redis.call('HMGET', entryKey, 'state', 'claimant')
if entry[1] ~= 'claimed' or entry[2] ~= claimant then return false end
return acquireLease(leaseKey, task, durationMs)
