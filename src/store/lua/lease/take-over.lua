-- Takes a lease over from a holder that is not in the queue, if it has sent nothing, is over, or
-- has not renewed the lease for long. The holder's entry loses its claimant, so that a worker still
-- on it may send nothing.
-- KEYS: lease, entry, entry of the holder
-- ARGV: task, claimant, durationMs, holder, '1' when the holder is over, silentMs
-- Answers as lease/acquire-for-start. The requests of a holder with a newer entry, or without one
-- unless it is over, are unknown: the lease stays until it has not been renewed for `silentMs`.
local leaseKey, entryKey, holderEntryKey = unpack(KEYS)
local task, claimant, durationMs, holder, isOver, silentMs = unpack(ARGV)
--- @include "lease"
local entry = redis.call('HMGET', entryKey, 'state', 'claimant')
if entry[1] ~= 'claimed' or entry[2] ~= claimant then return false end
if redis.call('GET', leaseKey) == holder then
  local held = redis.call('HMGET', holderEntryKey, 'state', 'v')
  local isUnsure = (tonumber(held[2]) or 1) > 1 or (held[1] ~= 'claimed' and isOver ~= '1')
  if isUnsure and redis.call('PTTL', leaseKey) > durationMs - silentMs then return holder end
  if held[1] then redis.call('HSET', holderEntryKey, 'claimant', '') end
  redis.call('DEL', leaseKey)
end
return acquireLease(leaseKey, task, durationMs)
