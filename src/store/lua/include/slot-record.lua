--- @include "events"
--- @include "troubles"
local function isMissed(record) return string.find(record, '"state":"missed"', 1, true) ~= nil end

-- Writes one record, unless the slot has one, and notes a missed slot. Answers whether it is new.
local function writeRecord(slotsKey, indexKey, troublesKey, policy, at, slot, record)
  local isNew = redis.call('HSETNX', slotsKey, slot, record) == 1
  redis.call('ZADD', indexKey, slot, slot)
  if isMissed(record) then noteTroubles(troublesKey, tonumber(at), '+missed/' .. policy .. '/') end
  return isNew
end

-- Writes a missed slot as an event for the notifier, which decides what sinks hear of it.
local function notifyMissed(streamKey, policy, slot, record)
  if isMissed(record) then addEvent(streamKey, 'p', policy, 's', slot, 'r', record) end
end

-- Drops old and surplus records. kept-since only moves forward; its field POLICY/dropped is the
-- newest slot that was dropped, also of an earlier schedule.
local function trimRecords(slotsKey, indexKey, keptSinceKey, policy, most, oldest)
  redis.call('PERSIST', slotsKey)
  redis.call('PERSIST', indexKey)
  local extra = redis.call('ZCARD', indexKey) - tonumber(most)
  extra = math.max(extra, redis.call('ZCOUNT', indexKey, '-inf', '(' .. oldest))
  if extra <= 0 then return end
  local old = redis.call('ZPOPMIN', indexKey, extra)
  for i = 1, #old, 2 do redis.call('HDEL', slotsKey, old[i]) end
  local newest = old[#old - 1]
  for _, field in ipairs({ policy, policy .. '/dropped' }) do
    local since = redis.call('HGET', keptSinceKey, field)
    if not since or tonumber(since) < tonumber(newest) then redis.call('HSET', keptSinceKey, field, newest) end
  end
end
