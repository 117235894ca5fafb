-- What Redis may have lost since an instant.
-- KEYS: watch, losses
-- ARGV: term, the instant
-- Answers 'undecided', or each loss (`from:until`).
--- @include "fence"
local term, since = unpack(ARGV)
if isUndecided(KEYS[1], term, since) then return 'undecided' end
return redis.call('ZRANGEBYSCORE', KEYS[2], since, '+inf')
