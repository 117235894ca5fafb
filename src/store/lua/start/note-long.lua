-- Notes that a run goes on for unusually long, and writes its event, once.
-- KEYS: entry, event stream
-- ARGV: run (JSON), policy, slot, '1' to write an event for the notifier
-- Answers 1 when it is noted now, 0 when it was before, or the run is over.
local entryKey, streamKey = unpack(KEYS)
local run, policy, slot, isNotified = unpack(ARGV)
--- @include "now"
--- @include "events"
if redis.call('HGET', entryKey, 'state') ~= 'confirmed' then return 0 end
if redis.call('HSETNX', entryKey, 'longNotedAtMs', now) == 0 then return 0 end
if isNotified == '1' then addEvent(streamKey, 'p', policy, 's', slot, 'l', run) end
return 1
