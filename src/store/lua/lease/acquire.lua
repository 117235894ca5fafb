-- Takes or prolongs a lease, unless another one has it.
-- KEYS: lease
-- ARGV: claimant, durationMs
-- Answers who had it before; '' for none.
local leaseKey = KEYS[1]
local claimant, durationMs = unpack(ARGV)
--- @include "lease"
local before = redis.call('GET', leaseKey)
acquireLease(leaseKey, claimant, durationMs)
return before or ''
