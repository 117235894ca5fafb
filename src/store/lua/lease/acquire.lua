-- Takes or prolongs a lease.
-- KEYS: lease
-- ARGV: claimant, durationMs
-- Answers the holder.
--- @include "lease"
return acquireLease(KEYS[1], ARGV[1], ARGV[2])
