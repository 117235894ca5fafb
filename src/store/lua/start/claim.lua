-- Claims a start. One under way takes or prolongs its lease; an ended one must not take it again.
-- KEYS: entry, lease (if the task needs one)
-- ARGV: claimant, retentionMs, task, leaseMs
-- Answers the entry: fields and values in turn.
local entryKey, leaseKey = unpack(KEYS)
local claimant, retentionMs, task, leaseMs = unpack(ARGV)
--- @include "start"
--- @include "lease"
claim(entryKey, claimant, retentionMs)
local state = redis.call('HGET', entryKey, 'state')
if leaseKey and (state == 'sending' or state == 'confirmed') then acquireLease(leaseKey, task, leaseMs) end
return redis.call('HGETALL', entryKey)
