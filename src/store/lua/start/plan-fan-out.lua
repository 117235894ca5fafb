-- Names the sync jobs of a run over masks, if this owner has the claim.
-- KEYS: entry, event stream
-- ARGV: owner, targets (JSON), policy, slot, '1' to publish them
-- Answers 1 when done.
local entryKey, streamKey = unpack(KEYS)
local owner, targets, policy, slot, isPublished = unpack(ARGV)
--- @include "events"
local entry = redis.call('HMGET', entryKey, 'state', 'owner')
if entry[1] ~= 'claimed' or entry[2] ~= owner then return 0 end
redis.call('HSET', entryKey, 'targets', targets)
if isPublished == '1' then addEvent(streamKey, 'p', policy, 's', slot, 'm', targets) end
return 1
