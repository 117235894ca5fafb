-- Gives the reading up.
-- KEYS: reading
-- ARGV: token
--- @include "reading"
releaseReader(KEYS[1], ARGV[1])
