-- Takes or prolongs a lease; answers its holder.
local function acquireLease(leaseKey, holder, durationMs)
  local known = redis.call('GET', leaseKey)
  if known and known ~= holder then return known end
  redis.call('SET', leaseKey, holder, 'PX', durationMs)
  return holder
end

-- Releases a lease, if this holder has it; answers whether it had.
local function releaseLease(leaseKey, holder)
  local hadIt = redis.call('GET', leaseKey) == holder
  if hadIt then redis.call('DEL', leaseKey) end
  return hadIt
end

-- Gives the free lease of a run that ended to one beside it that goes on (`overlap: allow`).
-- `flat`: the starts in flight. It is shorter than one that its holder renews (store/leases.ts):
-- until the next step of the run that got it the queue alone says whether that lives.
local function passLease(leaseKey, flat)
  for i = 1, #flat, 2 do
    if string.sub(flat[i + 1], 1, 1) ~= 'e' then return acquireLease(leaseKey, flat[i], 6 * 86400000) end
  end
end
