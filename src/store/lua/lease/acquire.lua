-- Takes or prolongs a lease.
-- KEYS: lease
-- ARGV: claimant, durationMs
-- Answers 'prolonged' where the claimant had it already, or 'taken', or 'refused': another has it.
local leaseKey = KEYS[1]
local claimant, durationMs = unpack(ARGV)
--- @include "lease"
local had = redis.call('GET', leaseKey) == claimant
if acquireLease(leaseKey, claimant, durationMs) ~= claimant then return 'refused' end
return had and 'prolonged' or 'taken'
