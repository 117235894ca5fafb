-- Takes or prolongs a lease, unless another one has it.
-- KEYS: lease
-- ARGV: owner, durationMs
-- Answers who had it before; '' for none.
local leaseKey = KEYS[1]
local owner, durationMs = unpack(ARGV)
--- @include "lease"
local before = redis.call('GET', leaseKey)
acquireLease(leaseKey, owner, durationMs)
return before or ''
