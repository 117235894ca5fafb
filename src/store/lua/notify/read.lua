-- Reads the next events. Saving removes handled events, so all in the stream are new.
-- KEYS: stream, state
-- ARGV: most events
-- Answers the events after the cursor, how many were lost, and now. Before Redis 7.0 a stream does
-- not say how many events came, so the lost ones are not known: 0.
local streamKey, stateKey = unpack(KEYS)
local most = ARGV[1]
--- @include "now"
if redis.call('EXISTS', streamKey) == 0 then return { {}, 0, now } end
local cursor = redis.call('HGET', stateKey, 'cursor')
local events = redis.call('XRANGE', streamKey, cursor and ('(' .. cursor) or '-', '+', 'COUNT', most)
local info, added = redis.call('XINFO', 'STREAM', streamKey), nil
for i = 1, #info, 2 do if info[i] == 'entries-added' then added = info[i + 1] end end
if not added then return { events, 0, now } end
local lost = added - tonumber(redis.call('HGET', stateKey, 'handled') or 0) - redis.call('XLEN', streamKey)
return { events, lost, now }
