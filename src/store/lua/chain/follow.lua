-- Ends the waiting of a slot: writes record, tasks and join counter. Exactly one caller succeeds.
-- KEYS: waiting, outbox, kept-since, slots, slot-index, own join counter, the predecessor's join
-- counter, event stream, troubles
-- ARGV: most records, oldest slot kept, policy, field in waiting, slot, record, at (now), tasks,
-- number of followers, '1' to publish a missed slot
-- Answers the watermark of its tasks in the outbox; nothing when the slot waits no more.
local waitingKey, outboxKey, keptSinceKey, slotsKey, indexKey, ownKey, predecessorKey, streamKey, troublesKey =
  unpack(KEYS)
local most, oldest, policy, waitingField, slot, record, at, tasks, followers, isPublished = unpack(ARGV)
--- @include "slot-record"
--- @include "join-counter"
if redis.call('HDEL', waitingKey, waitingField) == 0 then return false end
writeRecord(slotsKey, indexKey, troublesKey, policy, at, slot, record)
if isPublished == '1' then publishMissed(streamKey, policy, slot, record) end
local watermark = tonumber(at)
while redis.call('HEXISTS', outboxKey, policy .. '/' .. watermark) == 1 do watermark = watermark + 1 end
if tasks ~= '[]' then redis.call('HSET', outboxKey, policy .. '/' .. watermark, tasks) end
openJoinCounter(ownKey, record, tonumber(followers))
trimRecords(slotsKey, indexKey, keptSinceKey, policy, most, oldest)
if redis.call('EXISTS', predecessorKey) == 1 and redis.call('HINCRBY', predecessorKey, 'waiting', -1) <= 0 then
  redis.call('DEL', predecessorKey)
end
return watermark
