-- Starts a slot that a pause or a quarantine had skipped.
-- KEYS: slots, outbox, month of the day summary
-- ARGV: slot, record, outbox field, tasks, change of the day's summary
-- Answers 1 when done, also to the same command again, after a lost answer.
local slotsKey, outboxKey, daysKey = unpack(KEYS)
local slot, record, field, tasks, change = unpack(ARGV)
--- @include "day-summary"
local text = redis.call('HGET', slotsKey, slot)
if not text then return 0 end
if text == record then return 1 end
local known = cjson.decode(text)
if known.state ~= 'skipped' or (known.detail ~= 'paused' and known.detail ~= 'quarantine') then return 0 end
redis.call('HSET', slotsKey, slot, record)
redis.call('HSET', outboxKey, field, tasks)
addToDay(daysKey, change)
return 1
