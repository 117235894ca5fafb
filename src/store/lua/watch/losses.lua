-- What Redis may have lost since an instant, once each process could say what it remembers.
-- KEYS: watch, losses
-- ARGV: term, the instant
-- Answers 'undecided', or each loss (`from:until`).
--- @include "fence"
local term, since = unpack(ARGV)
-- Of no loss: none begins before 0.
local obstacle = checkFence(KEYS[1], KEYS[2], term, since, -1)
return obstacle or redis.call('ZRANGEBYSCORE', KEYS[2], since, '+inf')
