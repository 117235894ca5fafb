-- Releases the permit of an exchange, and learns from it how long an exchange takes.
--- @include "limiter"
local function releasePermit(limiter, exchange, leaseMs)
  local ends = redis.call('ZSCORE', limiter.exchangesKey, exchange)
  if not ends then return end
  redis.call('ZREM', limiter.exchangesKey, exchange)
  limiter.usedMs = limiter.usedMs * 0.8 + math.max(now - (ends - leaseMs), 0) * 0.2
  redis.call('HSET', limiter.stateKey, 'usedMs', string.format('%.0f', limiter.usedMs))
end
