-- Starts a slot that a pause had skipped.
-- KEYS: slots, outbox
-- ARGV: slot, record, outbox field, tasks
-- Answers 1 when done.
local slotsKey, outboxKey = unpack(KEYS)
local slot, record, field, tasks = unpack(ARGV)
local text = redis.call('HGET', slotsKey, slot)
if not text then return 0 end
local known = cjson.decode(text)
if known.state ~= 'skipped' or known.detail ~= 'paused' then return 0 end
redis.call('HSET', slotsKey, slot, record)
redis.call('HSET', outboxKey, field, tasks)
return 1
