-- Begins a generation of seen items.
-- KEYS: status
local statusKey = KEYS[1]
--- @include "now"
redis.call('HSET', statusKey, 'generationSinceMs', now, 'wholeWalks', 0)
redis.call('HINCRBY', statusKey, 'generation', 1)
