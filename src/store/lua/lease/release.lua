-- Releases a lease, if this holder has it.
-- KEYS: lease
-- ARGV: holder
--- @include "lease"
releaseLease(KEYS[1], ARGV[1])
