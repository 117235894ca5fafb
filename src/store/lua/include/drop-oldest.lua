-- Drops the members with the lowest scores beyond `most`, and their fields in the hash; at most
-- 1,000 a call.
local function dropOldest(orderKey, hashKey, most)
  local extra = math.min(redis.call('ZCARD', orderKey) - tonumber(most), 1000)
  if extra <= 0 then return end
  local old, members = redis.call('ZPOPMIN', orderKey, extra), {}
  for i = 1, #old, 2 do table.insert(members, old[i]) end
  redis.call('HDEL', hashKey, unpack(members))
end
