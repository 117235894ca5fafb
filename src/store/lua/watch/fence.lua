-- Checks the fence alone.
-- KEYS: watch, losses
-- ARGV: term, slot, startBy
-- Answers 'undecided', 'loss' or ''.
--- @include "fence"
return checkFence(KEYS[1], KEYS[2], unpack(ARGV)) or ''
