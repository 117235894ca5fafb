-- A limiter: one read opens it, `view` builds the answer. Its four keys:
--   state      hash: breaker (state, nextProbeMs, failures), throttledUntilMs, reservedMs (until
--              when turns are reserved), failing (the resources that failed, between spaces),
--              isBroad (1: not one of them alone, so the service itself may be down), usedMs (how
--              long an exchange takes)
--   exchanges  sorted set: exchange under way → end of its lease
--   sent       list: when the newest requests went out, microseconds, newest first
--   coolDowns  hash: resource → until when it is not read; a resource that failed while the breaker
--              was open stays here until a request for it succeeds
--- @include "now"
local function openLimiter(stateKey, exchangesKey, sentKey, coolDownsKey)
  local names = { 'state', 'throttledUntilMs', 'nextProbeMs', 'failures', 'reservedMs', 'usedMs', 'failing', 'isBroad' }
  local state = redis.call('HMGET', stateKey, unpack(names))
  return {
    stateKey = stateKey, exchangesKey = exchangesKey, sentKey = sentKey, coolDownsKey = coolDownsKey,
    isOpen = state[1] == 'open',
    throttledUntilMs = tonumber(state[2] or 0),
    nextProbeMs = tonumber(state[3] or 0),
    failures = tonumber(state[4] or 0),
    reservedMs = tonumber(state[5] or 0),
    usedMs = tonumber(state[6] or 0),
    failing = state[7] or '',
    isBroad = state[8] == '1',
  }
end

local function isFailing(limiter, resource)
  return resource ~= '' and string.find(limiter.failing, ' ' .. resource .. ' ', 1, true) ~= nil
end

-- Answers the word, the wait, then the state: throttle, next probe (-1: the breaker is closed),
-- failures, resources in `coolDowns`: those that cool down, and those watched since they failed.
local function view(limiter, word, waitMs)
  local probeMs = -1
  if limiter.isOpen then probeMs = limiter.isBroad and math.max(limiter.nextProbeMs - now, 0) or 0 end
  local throttleMs = math.max(limiter.throttledUntilMs - now, 0)
  return { word, waitMs, throttleMs, probeMs, limiter.failures, redis.call('HLEN', limiter.coolDownsKey) }
end
