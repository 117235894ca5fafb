-- Takes back the newest permission of this claimant. With no request left, the task may claim anew,
-- and other tasks may start the sync job meanwhile. Repeating the command changes nothing.
-- KEYS: entry, in flight, lease
-- ARGV: claimant, task, the holder of its lease
-- Answers 0 when the start ended as sent meanwhile; else 1.
local entryKey, inFlightKey, leaseKey = unpack(KEYS)
local claimant, task, leaseHolder = unpack(ARGV)
--- @include "start"
--- @include "lease"
local entry = redis.call('HMGET', entryKey, 'state', 'claimant', 'sends')
if entry[1] == 'settled' and entry[2] == claimant and entry[3] then return 0 end
if entry[1] ~= 'sending' or entry[2] ~= claimant then return 1 end
local sends = entry[3] - 1
if sends > 0 then
  redis.call('HSET', entryKey, 'sends', sends, 'claimant', '')
else
  takeBack(entryKey, inFlightKey, task)
  local hadLease = redis.call('GET', leaseKey) == leaseHolder
  releaseLease(leaseKey, leaseHolder)
  -- Of a run: one beside it that goes on gets its lease, as in outcome/record.
  local flat = hadLease and leaseHolder == task and redis.call('HGETALL', inFlightKey) or {}
  for i = 1, #flat, 2 do
    if string.sub(flat[i + 1], 1, 1) ~= 'e' then acquireLease(leaseKey, flat[i], 6 * 86400000) end
  end
end
return 1
