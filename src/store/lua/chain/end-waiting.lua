-- Ends the waiting of a slot: writes record, tasks and join counter. Exactly one caller succeeds.
-- KEYS: waiting, outbox, kept-since, slots, slot-index, own join counter, the predecessor's join
-- counter, event stream, troubles, watermarks, month of the day summary when it counts the slot
-- ARGV: most records, their retention (ms), policy, field in waiting, slot, record, at (now),
-- tasks, number of followers, '1' to write a missed slot as an event, change of the day's summary
-- ('' for none), '1' when the predecessor's join counter does not count the slot
-- Answers the watermark of its tasks in the outbox; nothing when the slot waits no more.
local waitingKey, outboxKey, keptSinceKey, slotsKey, indexKey, ownKey, predecessorKey = unpack(KEYS, 1, 7)
local streamKey, troublesKey, watermarksKey, daysKey = unpack(KEYS, 8)
local most, retentionMs, policy, waitingField, slot, record, at, tasks, followers, isNotified, change, isLeftOut =
  unpack(ARGV)
--- @include "slot-record"
--- @include "join-counter"
--- @include "day-summary"
if redis.call('HDEL', waitingKey, waitingField) == 0 then return false end
-- It had ended before its policy was forgotten.
if isLeftOut == '1' and redis.call('HEXISTS', slotsKey, slot) == 1 then return false end
local isNew = writeRecord(slotsKey, indexKey, troublesKey, policy, at, slot, record)
if isNew and change ~= '' then addToDay(daysKey, change) end
if isNotified == '1' then notifyMissed(streamKey, policy, slot, record) end
local watermark = tonumber(at)
while redis.call('HEXISTS', outboxKey, policy .. '/' .. watermark) == 1 do watermark = watermark + 1 end
if tasks ~= '[]' then redis.call('HSET', outboxKey, policy .. '/' .. watermark, tasks) end
openJoinCounter(ownKey, record, tonumber(followers))
if redis.call('HEXISTS', watermarksKey, policy) == 1 then
  trimRecords(slotsKey, indexKey, keptSinceKey, policy, most, slot - retentionMs)
else
  -- A removed policy: its records expire, as in slots/forget.lua.
  for _, recordsKey in ipairs({ slotsKey, indexKey }) do
    if redis.call('PTTL', recordsKey) == -1 then redis.call('PEXPIRE', recordsKey, retentionMs) end
  end
end
if isLeftOut == '1' then return watermark end
if redis.call('EXISTS', predecessorKey) == 1 and redis.call('HINCRBY', predecessorKey, 'waiting', -1) <= 0 then
  redis.call('DEL', predecessorKey)
end
return watermark
