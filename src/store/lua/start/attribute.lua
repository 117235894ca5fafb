-- Attributes each activity to one start in flight: that with the nearest request. Without a time:
-- the first one without an activity, confirmed ones before others, none that is over. It stays so.
-- KEYS: attributions (activity → task), their order, in flight (include/in-flight), losses
-- ARGV: retentionMs, most, timelessForMs (an activity without a time that appears later is of
-- another start); then pairs of activity and its beginning ('' when unknown), oldest first
-- Answers the task of each activity ('' for none); pairs of start in flight, unless it is over, and
-- the instants of its requests (`123:456`); losses.
local attributionsKey, orderKey, inFlightKey, lossesKey = unpack(KEYS)
local retentionMs, most, timelessForMs = unpack(ARGV, 1, 3)
--- @include "now"
--- @include "in-flight"
--- @include "drop-oldest"
local flat = redis.call('HGETALL', inFlightKey)
local starts, has, oldest = {}, {}, now
for i = 1, #flat, 2 do
  local start = { task = flat[i], isUnconfirmed = string.sub(flat[i + 1], -1) ~= '+' }
  start.requests = requestsOf(flat[i + 1])
  start.first, start.newest = start.requests[1], start.requests[#start.requests]
  start.isEnded = string.sub(flat[i + 1], 1, 1) == 'e'
  if not start.isEnded then oldest = math.min(oldest, start.first) end
  starts[#starts + 1] = start
end
-- An ended start is over for those sent so much later: what they see first is not its own.
local function isOver(start) return start.isEnded and start.newest < oldest - tonumber(timelessForMs) end
table.sort(starts, function(a, b)
  if a.isUnconfirmed ~= b.isUnconfirmed then return b.isUnconfirmed end
  if a.first ~= b.first then return a.first < b.first end
  return a.task < b.task
end)
if #starts > 1 then
  for _, task in ipairs(redis.call('HVALS', attributionsKey)) do has[task] = true end
end
local function distance(start, began)
  local least = math.huge
  for _, at in ipairs(start.requests) do least = math.min(least, math.abs(at - began)) end
  return least
end
local function nearest(began)
  local best
  for _, start in ipairs(starts) do
    if began then
      if not best or distance(start, began) < distance(best, began) then best = start end
    elseif not isOver(start) and (not best or (has[best.task] and not has[start.task])) then
      best = start
    end
  end
  return best and best.task
end
local tasks, inFlight = {}, {}
for i = 4, #ARGV, 2 do
  local activity = ARGV[i]
  local task = redis.call('HGET', attributionsKey, activity)
  if not task then
    task = nearest(tonumber(ARGV[i + 1]))
    if task then
      has[task] = true
      redis.call('HSET', attributionsKey, activity, task)
      redis.call('ZADD', orderKey, now, activity)
      redis.call('PEXPIRE', attributionsKey, retentionMs)
      redis.call('PEXPIRE', orderKey, retentionMs)
    end
  end
  tasks[#tasks + 1] = task or ''
end
dropOldest(orderKey, attributionsKey, most)
for _, start in ipairs(starts) do
  if not isOver(start) then
    inFlight[#inFlight + 1] = start.task
    inFlight[#inFlight + 1] = table.concat(start.requests, ':')
  end
end
return { tasks, inFlight, redis.call('ZRANGE', lossesKey, 0, -1) }
