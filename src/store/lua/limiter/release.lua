-- Releases a permit and learns from its ending. When the breaker closes, the resources that had
-- failed stay watched until a request for them succeeds: each further failure starts a cool-down of
-- one period for that resource alone.
-- KEYS: the four of a limiter
-- ARGV: exchange, leaseMs, health, throttleMs ('' for none), '1' for the probe, failuresMax (they
-- open the breaker), probeEveryMs, failure (its kind), rememberMs, resource
-- Answers the limiter's view with what changed for all replicas: 'throttled', 'opened', 'closed' or
-- ''.
local exchange, leaseMs, health, throttleMs, isProbe, failuresMax, probeEveryMs, failure, rememberMs, resource =
  unpack(ARGV)
--- @include "limiter-release"
local coolDownsKeptMs = 3600000
-- A throttle that begins so soon after another one goes on with it.
local throttlesApartMs = 300000
-- A few resources of 17 characters are enough: more of them mean that the service is down.
local failingMax = 1000
local limiter = openLimiter(unpack(KEYS))
local stateKey, coolDownsKey, isOpen = limiter.stateKey, limiter.coolDownsKey, limiter.isOpen
local word = ''
releasePermit(limiter, exchange, leaseMs)

local function throttle()
  local untilMs = now + tonumber(throttleMs)
  if untilMs > limiter.throttledUntilMs then redis.call('HSET', stateKey, 'throttledUntilMs', untilMs) end
  if limiter.throttledUntilMs <= now then word = 'throttled' end
  if limiter.throttledUntilMs + throttlesApartMs < now then redis.call('HSET', stateKey, 'throttledSinceMs', now) end
end

-- Notes the resource; answers whether all failures are about one.
local function noteFailing()
  if resource ~= '' and not isFailing(limiter, resource) and #limiter.failing < failingMax then
    limiter.failing = (limiter.failing == '' and ' ' or limiter.failing) .. resource .. ' '
    redis.call('HSET', stateKey, 'failing', limiter.failing)
  end
  return select(2, string.gsub(limiter.failing, ' ', '')) == 2
end

local function fail()
  local isOne = noteFailing()
  redis.call('HSET', stateKey, 'lastFailure', failure)
  if isOpen then
    if not isOne then redis.call('HSET', stateKey, 'isBroad', '1') end
    return
  end
  local nextProbeMs = now + tonumber(probeEveryMs)
  if redis.call('HEXISTS', coolDownsKey, resource) == 1 then
    redis.call('HSET', coolDownsKey, resource, nextProbeMs)
    redis.call('PEXPIRE', coolDownsKey, coolDownsKeptMs + tonumber(probeEveryMs))
  end
  if redis.call('HINCRBY', stateKey, 'failures', 1) < tonumber(failuresMax) then return end
  redis.call('HSET', stateKey, 'state', 'open', 'openedAtMs', now, 'nextProbeMs', nextProbeMs)
  redis.call('HSET', stateKey, 'isBroad', isOne and '0' or '1')
  word = 'opened'
end

local function closeBreaker()
  redis.call('HDEL', stateKey, 'state', 'openedAtMs', 'nextProbeMs', 'failures', 'lastFailure', 'failing', 'isBroad')
  if not isOpen then return end
  word = 'closed'
  for failing in string.gmatch(limiter.failing, '%x+') do
    redis.call('HSETNX', coolDownsKey, failing, 0)
    redis.call('PEXPIRE', coolDownsKey, coolDownsKeptMs)
  end
end

if throttleMs ~= '' then throttle() end
if health == 'failing' then fail() end
if health == 'alive' then
  if isProbe == '1' or not isOpen then closeBreaker() end
  redis.call('HDEL', coolDownsKey, resource)
end
redis.call('PEXPIRE', stateKey, rememberMs)
return view(openLimiter(unpack(KEYS)), word, 0)
