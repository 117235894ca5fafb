-- Prolongs the reader's lease.
-- KEYS: reading
-- ARGV: token
--- @include "reading"
if redis.call('HGET', KEYS[1], 'reader') == ARGV[1] then prolongReader(KEYS[1]) end
