-- Reads watermarks and the schedules in force. A new policy begins now. A changed schedule comes
-- into force when every slot of the one before, `from`, is recorded up to now; kept-since then says
-- that its earlier slots have no records, and begun that it has no earlier slots. Records become
-- permanent again.
-- KEYS: watermarks, schedules, kept-since, begun, then slots and slot-index of each policy
-- ARGV: policy, schedule, from ('' for none) and where it begins, in turn
-- Answers watermark and schedule in force of each policy, in turn.
local watermarksKey, schedulesKey, keptSinceKey, begunKey = unpack(KEYS, 1, 4)
for i = 5, #KEYS do redis.call('PERSIST', KEYS[i]) end
local answer = {}
for i = 1, #ARGV, 4 do
  local policy, schedule, from, at = unpack(ARGV, i, i + 3)
  local watermark = redis.call('HGET', watermarksKey, policy)
  local inForce = watermark and redis.call('HGET', schedulesKey, policy)
  local isChanged = inForce == from and from ~= schedule
  if not watermark or (isChanged and tonumber(watermark) < tonumber(at)) then
    watermark = at
    redis.call('HSET', watermarksKey, policy, watermark)
    redis.call('HSET', keptSinceKey, policy, watermark)
    redis.call('HSET', begunKey, policy, watermark)
  elseif isChanged then
    redis.call('HSET', keptSinceKey, policy, watermark)
    redis.call('HSET', begunKey, policy, watermark)
  end
  if isChanged or not inForce then
    inForce = schedule
    redis.call('HSET', schedulesKey, policy, schedule)
  end
  answer[#answer + 1] = watermark
  answer[#answer + 1] = inForce
end
return answer
