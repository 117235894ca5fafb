-- Takes back the newest permission of this claimant. With no request left, the task may claim anew,
-- and other tasks may start the sync job meanwhile. Repeating the command changes nothing.
-- KEYS: entry, in flight, lease
-- ARGV: claimant, task, the holder of its lease, who says so ('sender', or the service's 'answer')
-- Answers 0 when the start ended as sent meanwhile, and no newer request went out; else 1.
local entryKey, inFlightKey, leaseKey = unpack(KEYS)
local claimant, task, leaseHolder, by = unpack(ARGV)
--- @include "start"
--- @include "lease"
local entry = redis.call('HMGET', entryKey, 'state', 'claimant', 'sends', 'confirmedBy')
if entry[1] == 'settled' and entry[2] == claimant and entry[3] then return 0 end
-- An activity that confirmed the only request is another start's, if the sender did not send it.
local isMistaken = entry[1] == 'confirmed' and entry[4] == 'evidence' and entry[3] == '1' and by == 'sender'
if (entry[1] ~= 'sending' and not isMistaken) or entry[2] ~= claimant then return 1 end
local sends = entry[3] - 1
if sends > 0 then
  redis.call('HSET', entryKey, 'sends', sends, 'claimant', '')
  local earlier = string.match(redis.call('HGET', inFlightKey, task) or '', '^(.+):%d+$')
  if earlier then redis.call('HSET', inFlightKey, task, earlier) end
else
  takeBack(entryKey, inFlightKey, task)
  -- An activation has the lease in the name of its run.
  local hadIt = releaseLease(leaseKey, leaseHolder) and leaseHolder == task
  if hadIt then passLease(leaseKey, redis.call('HGETALL', inFlightKey)) end
end
return 1
