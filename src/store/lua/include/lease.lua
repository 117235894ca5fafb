-- Takes or prolongs a lease; answers its holder.
local function acquireLease(leaseKey, holder, durationMs)
  local known = redis.call('GET', leaseKey)
  if known and known ~= holder then return known end
  redis.call('SET', leaseKey, holder, 'PX', durationMs)
  return holder
end

-- Releases a lease, if this holder has it.
local function releaseLease(leaseKey, holder)
  if redis.call('GET', leaseKey) == holder then redis.call('DEL', leaseKey) end
end
