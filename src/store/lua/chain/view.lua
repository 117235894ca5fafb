-- Reads the state of a predecessor's slot.
-- KEYS: join counter, slots, waiting
-- ARGV: slot, field in waiting
-- Answers 'open', 'nothing', 'record' with the slot's record, or 'ended' with the join counter.
local counterKey, slotsKey, waitingKey = unpack(KEYS)
local slot, field = unpack(ARGV)
local open = redis.call('HGET', counterKey, 'open')
if open then
  if tonumber(open) > 0 then return { 'open' } end
  return { 'ended', redis.call('HGETALL', counterKey) }
end
local record = redis.call('HGET', slotsKey, slot)
if record then return { 'record', record } end
return { redis.call('HEXISTS', waitingKey, field) == 1 and 'open' or 'nothing' }
