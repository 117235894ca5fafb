-- Reads watermarks. A new policy begins now; so does one whose schedule changed, unless its
-- watermark is later. kept-since then says that earlier slots have no records. Records become
-- permanent again.
-- KEYS: watermarks, schedules, kept-since, then slots and slot-index of each policy
-- ARGV: at (now), then pairs of policy and schedule
-- Answers the watermarks.
local watermarksKey, schedulesKey, keptSinceKey = unpack(KEYS, 1, 3)
local at = ARGV[1]
local watermarks = {}
for i = 2, #ARGV, 2 do
  local policy, schedule = ARGV[i], ARGV[i + 1]
  redis.call('PERSIST', KEYS[i + 2])
  redis.call('PERSIST', KEYS[i + 3])
  local watermark = redis.call('HGET', watermarksKey, policy)
  local known = redis.call('HGET', schedulesKey, policy)
  local isChanged = known and known ~= schedule
  local begins = isChanged or not watermark
  if not watermark or (isChanged and tonumber(watermark) < tonumber(at)) then
    watermark = at
    redis.call('HSET', watermarksKey, policy, watermark)
  end
  if begins then
    redis.call('HSET', keptSinceKey, policy, watermark)
  else
    redis.call('HSETNX', keptSinceKey, policy, at)
  end
  if known ~= schedule then redis.call('HSET', schedulesKey, policy, schedule) end
  watermarks[i / 2] = watermark
end
return watermarks
