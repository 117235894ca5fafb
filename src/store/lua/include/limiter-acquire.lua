-- Asks a limiter for one exchange. The request: id of the exchange, the resource ('' for any), '1'
-- for a read, concurrency (0: no limit), leaseMs, the rate's count (0: no limit) and its window in
-- microseconds, the probe's period, the longest wait for a reserved turn.
-- Answers 'acquired', 'probe', or what denies the exchange, and the wait.
--
-- While all failures are about one resource, a read of another one is the probe at once: it tells a
-- service that is down from a broken resource. Otherwise resources that have not failed go first,
-- so that one that is asked for all the time is not always the probe.
--- @include "limiter"
-- A replica with other limits must not drop what this one counts on: each entry holds its own end.
local keptMs = 86400000

-- The breaker's wait for this request; nothing when the request may be the probe.
local function breakerWait(limiter, isRead, resource, probeEveryMs)
  local from = limiter.nextProbeMs
  if isFailing(limiter, resource) then
    if limiter.isBroad then from = from + math.ceil(probeEveryMs / 4) end
  elseif not limiter.isBroad then
    from = 0
  end
  if from > now or not isRead then return math.max(from - now, 0) end
end

-- A request denied by a limit gets a reserved turn, one after the other, so that a thousand waiting
-- requests do not all ask again at once. It is a hint, no right: the limit is checked again.
local function reserveTurn(limiter, word, freeMs, stepMs, mostMs)
  -- A request a moment before its reserved turn waits that moment, not behind all others.
  if freeMs < stepMs / 4 then return view(limiter, word, freeMs) end
  local turn = math.max(limiter.reservedMs, now + freeMs)
  local latest = now + math.max(freeMs, mostMs)
  if turn < latest then redis.call('HSET', limiter.stateKey, 'reservedMs', turn + stepMs) end
  return view(limiter, word, math.min(turn, latest) - now)
end

local function acquirePermit(limiter, exchange, resource, read, ...)
  local isRead, numbers = read == '1', { ... }
  for i, text in ipairs(numbers) do numbers[i] = tonumber(text) end
  local concurrency, leaseMs, count, windowUs, probeEveryMs, mostMs = unpack(numbers)
  local nowUs = time[1] * 1000000 + time[2]
  if limiter.throttledUntilMs > now then return view(limiter, 'throttle', limiter.throttledUntilMs - now) end
  if limiter.isOpen then
    local waitMs = breakerWait(limiter, isRead, resource, probeEveryMs)
    if waitMs then return view(limiter, 'breaker', waitMs) end
  elseif isRead then
    local coolDownMs = tonumber(redis.call('HGET', limiter.coolDownsKey, resource) or 0) - now
    if coolDownMs > 0 then return view(limiter, 'breaker', coolDownMs) end
  end
  if concurrency > 0 and redis.call('ZCARD', limiter.exchangesKey) >= concurrency then
    -- Workers with a permit may have died.
    redis.call('ZREMRANGEBYSCORE', limiter.exchangesKey, '-inf', now)
    if redis.call('ZCARD', limiter.exchangesKey) >= concurrency then
      local stepMs = math.max(math.ceil(limiter.usedMs / concurrency), 1)
      return reserveTurn(limiter, 'concurrency', math.max(stepMs, 20), stepMs, mostMs)
    end
  end
  if count > 0 then
    local oldest = redis.call('LINDEX', limiter.sentKey, count - 1)
    local freeUs = oldest and tonumber(oldest) + windowUs - nowUs or 0
    -- Redis's clock was set back: what was sent before it says nothing.
    if freeUs > windowUs then
      freeUs, limiter.reservedMs = 0, 0
      redis.call('HDEL', limiter.stateKey, 'reservedMs')
    end
    if freeUs > 0 then
      return reserveTurn(limiter, 'rate', math.ceil(freeUs / 1000), math.ceil(windowUs / count / 1000), mostMs)
    end
    redis.call('LPUSH', limiter.sentKey, string.format('%.0f', nowUs))
    redis.call('LTRIM', limiter.sentKey, 0, count - 1)
    redis.call('PEXPIRE', limiter.sentKey, math.max(math.ceil(windowUs / 1000) + 1000, keptMs))
  end
  if concurrency > 0 then
    redis.call('ZADD', limiter.exchangesKey, now + leaseMs, exchange)
    redis.call('PEXPIRE', limiter.exchangesKey, math.max(leaseMs, keptMs))
  end
  if not limiter.isOpen then return view(limiter, 'acquired', 0) end
  limiter.nextProbeMs = now + probeEveryMs
  limiter.isBroad = limiter.isBroad or not isFailing(limiter, resource)
  redis.call('HSET', limiter.stateKey, 'nextProbeMs', limiter.nextProbeMs, 'isBroad', limiter.isBroad and '1' or '0')
  return view(limiter, 'probe', 0)
end
