-- Drops the members with the lowest scores beyond `most`, and their fields in the hash.
local function dropOldest(orderKey, hashKey, most)
  local extra = redis.call('ZCARD', orderKey) - tonumber(most)
  if extra <= 0 then return end
  local old = redis.call('ZPOPMIN', orderKey, extra)
  for i = 1, #old, 2 do redis.call('HDEL', hashKey, old[i]) end
end
