-- Names the sync jobs of a run over masks, if this step has the claim.
-- KEYS: entry, event stream
-- ARGV: claimant, targets (JSON), policy, slot, '1' to notify sinks
-- Answers 1 when done.
local entryKey, streamKey = unpack(KEYS)
local claimant, targets, policy, slot, isNotified = unpack(ARGV)
--- @include "events"
local entry = redis.call('HMGET', entryKey, 'state', 'claimant')
if entry[1] ~= 'claimed' or entry[2] ~= claimant then return 0 end
redis.call('HSET', entryKey, 'targets', targets)
if isNotified == '1' then addEvent(streamKey, 'p', policy, 's', slot, 'm', targets) end
return 1
