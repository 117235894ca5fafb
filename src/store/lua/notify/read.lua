-- Reads the next events. Saving removes handled events, so all in the stream are new.
-- KEYS: stream, state
-- ARGV: most events
-- Answers the events after the cursor, how many were lost, and now.
local streamKey, stateKey = unpack(KEYS)
local most = ARGV[1]
--- @include "now"
if redis.call('EXISTS', streamKey) == 0 then return { {}, 0, now } end
local cursor = redis.call('HGET', stateKey, 'cursor')
local events = redis.call('XRANGE', streamKey, cursor and ('(' .. cursor) or '-', '+', 'COUNT', most)
local info, added = redis.call('XINFO', 'STREAM', streamKey), 0
for i = 1, #info, 2 do if info[i] == 'entries-added' then added = info[i + 1] end end
local lost = added - tonumber(redis.call('HGET', stateKey, 'handled') or 0) - redis.call('XLEN', streamKey)
return { events, lost, now }
