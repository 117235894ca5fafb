// The atomic steps of a service's limiter, in Lua. Called by service-limiter.ts only. Each is one
// command by Redis's clock, so all replicas share one limit, one breaker and one throttle.
//
// KEYS of a limiter:
//   1  the state of the service (hash)
//   2  exchanges under way (sorted set: permit → end of its lease)
//   3  when the newest requests went out (list of microseconds, newest first; the rate's count)
//   4  cool-downs (hash: resource key → until when it is not read); a resource key that failed
//      while the breaker was open stays here until a request for it succeeds
import { createScript } from "./redis.ts";

const time = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

/**
 * Lua: opens a limiter with one read, and builds the answer: a word, a wait, the state of the
 * service. Needs `t` and `now`.
 */
const limiterLua = `
local function text(n) return string.format('%.0f', n) end
local function openLimiter(known, inside, sent, rests)
  local had = redis.call('HMGET', known, 'state', 'throttledUntilMs', 'nextProbeMs', 'failures', 'turnMs', 'usedMs', 'sick', 'isBroad')
  return {
    known = known, inside = inside, sent = sent, rests = rests, isOpen = had[1] == 'open', throttledUntilMs = tonumber(had[2] or 0),
    nextProbeMs = tonumber(had[3] or 0), failures = tonumber(had[4] or 0), turnMs = tonumber(had[5] or 0), usedMs = tonumber(had[6] or 0),
    sick = had[7] or '', isBroad = had[8] == '1',
  }
end
local function isSick(limiter, subject) return subject ~= '' and string.find(limiter.sick, ' ' .. subject .. ' ', 1, true) ~= nil end
local function view(limiter, word, wait)
  local probe = -1
  if limiter.isOpen then probe = limiter.isBroad and math.max(limiter.nextProbeMs - now, 0) or 0 end
  return { word, wait, math.max(limiter.throttledUntilMs - now, 0), probe, limiter.failures, redis.call('HLEN', limiter.rests) }
end`;

/**
 * Lua: asks a limiter for one exchange. `want`, from `first` on: permit, '1' for a read, places (0:
 * no limit), lease, rate's count (0: no limit), rate's window in microseconds, probe's period,
 * longest wait for a reserved slot, resource key.
 * Answers 'in', 'probe', or the reason of the denial and the wait.
 *
 * While all failures are about one resource key, a read of another one is the probe at once: it
 * tells a service that is down from a broken resource. Otherwise resource keys that have not failed
 * go first, so that one that is asked for all the time is not always the probe.
 *
 * A request denied by a limit gets a reserved slot, one after the other, so that a thousand waiting
 * requests do not all ask again at once. It is a hint, no right: the limit is checked again. Part
 * of the fast path, too (journal-scripts.ts).
 */
export const limiterAcquireLua = `${limiterLua}
-- A replica with other limits must not drop what this one counts on: each entry holds its own end.
local keptMs = 86400000
local function enter(limiter, want, first)
  local us = t[1] * 1000000 + t[2]
  local throttled = limiter.throttledUntilMs - now
  if throttled > 0 then return view(limiter, 'throttle', throttled) end
  local subject = want[first + 8] or ''
  local rest = not limiter.isOpen and want[first + 1] == '1' and tonumber(redis.call('HGET', limiter.rests, subject) or 0) - now or 0
  if rest > 0 then return view(limiter, 'breaker', rest) end
  if limiter.isOpen then
    local from = limiter.nextProbeMs
    if isSick(limiter, subject) then
      if limiter.isBroad then from = from + math.ceil(tonumber(want[first + 6]) / 4) end
    elseif not limiter.isBroad then
      from = 0
    end
    local wait = from - now
    if wait > 0 or want[first + 1] ~= '1' then return view(limiter, 'breaker', math.max(wait, 0)) end
  end
  local function turnedAway(word, free, step)
    -- A request a moment before its reserved slot waits that moment, not behind all others.
    if free < step / 4 then return view(limiter, word, free) end
    local turn = math.max(limiter.turnMs, now + free)
    local latest = now + math.max(free, tonumber(want[first + 7]))
    if turn < latest then redis.call('HSET', limiter.known, 'turnMs', text(turn + step)) end
    return view(limiter, word, math.min(turn, latest) - now)
  end
  local places = tonumber(want[first + 2])
  if places > 0 and redis.call('ZCARD', limiter.inside) >= places then
    -- Holders of a place may have died.
    redis.call('ZREMRANGEBYSCORE', limiter.inside, '-inf', now)
    if redis.call('ZCARD', limiter.inside) >= places then
      local step = math.max(math.ceil(limiter.usedMs / places), 1)
      return turnedAway('concurrency', math.max(step, 20), step)
    end
  end
  local count, window = tonumber(want[first + 4]), tonumber(want[first + 5])
  if count > 0 then
    local oldest = redis.call('LINDEX', limiter.sent, count - 1)
    local free = oldest and tonumber(oldest) + window - us or 0
    if free > 0 then return turnedAway('rate', math.ceil(free / 1000), math.ceil(window / count / 1000)) end
    redis.call('LPUSH', limiter.sent, text(us))
    redis.call('LTRIM', limiter.sent, 0, count - 1)
    redis.call('PEXPIRE', limiter.sent, math.max(math.ceil(window / 1000) + 1000, keptMs))
  end
  if places > 0 then
    redis.call('ZADD', limiter.inside, text(now + tonumber(want[first + 3])), want[first])
    redis.call('PEXPIRE', limiter.inside, math.max(tonumber(want[first + 3]), keptMs))
  end
  if limiter.isOpen then
    limiter.nextProbeMs = now + tonumber(want[first + 6])
    limiter.isBroad = limiter.isBroad or not isSick(limiter, subject)
    redis.call('HSET', limiter.known, 'nextProbeMs', text(limiter.nextProbeMs), 'isBroad', limiter.isBroad and '1' or '0')
    return view(limiter, 'probe', 0)
  end
  return view(limiter, 'in', 0)
end`;

/**
 * Reads the state of a service: throttle, breaker, failures in a row.
 * KEYS: the four of a limiter.
 */
export const viewScript = createScript(`${time} ${limiterLua}
return view(openLimiter(KEYS[1], KEYS[2], KEYS[3], KEYS[4]), '', 0)`);

/**
 * Asks for one exchange.
 * KEYS: the four of a limiter.
 * ARGV: as `limiterAcquireLua` wants it.
 */
export const acquireScript = createScript(`${time} ${limiterAcquireLua}
return enter(openLimiter(KEYS[1], KEYS[2], KEYS[3], KEYS[4]), ARGV, 1)`);

/** Lua: releases a permit, and learns from it how long a place is used. */
const releasePermitLua = `
local function goOut(limiter, pass, lease)
  local ends = redis.call('ZSCORE', limiter.inside, pass)
  if not ends then return end
  redis.call('ZREM', limiter.inside, pass)
  local used = math.max(now - (tonumber(ends) - tonumber(lease)), 0)
  limiter.usedMs = limiter.usedMs * 0.8 + used * 0.2
  limiter.isUsed = true
end
local function close(limiter, remember)
  if limiter.isUsed then redis.call('HSET', limiter.known, 'usedMs', text(limiter.usedMs)) end
  redis.call('PEXPIRE', limiter.known, remember)
end`;

/**
 * Releases permits of exchanges that went well while the service was well.
 * KEYS: the four of a limiter.
 * ARGV: retention of a quiet service, lease, permits.
 */
export const releaseQuietlyScript = createScript(`${time} ${limiterLua} ${releasePermitLua}
local limiter = openLimiter(KEYS[1], KEYS[2], KEYS[3], KEYS[4])
for i = 3, #ARGV do goOut(limiter, ARGV[i], ARGV[2]) end
close(limiter, ARGV[1])
return view(limiter, '', 0)`);

/**
 * Releases a permit. When the breaker closes, the resource keys that had failed stay watched until
 * a request for them succeeds: each further failure starts a cool-down of one period for that key
 * alone.
 * KEYS: the four of a limiter.
 * ARGV: permit, health, throttle in milliseconds ('' for none), '1' for the probe, failures that
 * open the breaker, probe's period, kind of the failure, retention of a quiet service, lease,
 * resource key.
 * Answers what changed for all replicas: 'throttled', 'opened', 'closed' or ''.
 */
export const releaseScript = createScript(`${time} ${limiterLua} ${releasePermitLua}
local restsMs = 3600000
local limiter = openLimiter(KEYS[1], KEYS[2], KEYS[3], KEYS[4])
goOut(limiter, ARGV[1], ARGV[9])
local word = ''
local open = limiter.isOpen
if ARGV[3] ~= '' then
  local before = limiter.throttledUntilMs
  local untilMs = now + tonumber(ARGV[3])
  if untilMs > before then redis.call('HSET', KEYS[1], 'throttledUntilMs', text(untilMs)) end
  if before <= now then word = 'throttled' end
end
if ARGV[2] == 'failing' then
  -- Without failures no resource key can be sick: a replica may have dropped the failures alone.
  if limiter.failures == 0 and not open then limiter.sick = '' end
  -- A few keys of 17 characters are enough: more of them mean that the service is down.
  local isNew = ARGV[10] ~= '' and not isSick(limiter, ARGV[10]) and #limiter.sick < 1000
  if isNew then
    limiter.sick = (limiter.sick == '' and ' ' or limiter.sick) .. ARGV[10] .. ' '
    redis.call('HSET', KEYS[1], 'sick', limiter.sick)
  end
  local isOne = select(2, string.gsub(limiter.sick, ' ', '')) == 2
  if open then
    if not isOne then redis.call('HSET', KEYS[1], 'isBroad', '1') end
  else
    if redis.call('HEXISTS', KEYS[4], ARGV[10]) == 1 then
      redis.call('HSET', KEYS[4], ARGV[10], text(now + tonumber(ARGV[6])))
      redis.call('PEXPIRE', KEYS[4], restsMs + tonumber(ARGV[6]))
    end
    if redis.call('HINCRBY', KEYS[1], 'failures', 1) >= tonumber(ARGV[5]) then
      local nextProbe = text(now + tonumber(ARGV[6]))
      redis.call('HSET', KEYS[1], 'state', 'open', 'openedAtMs', text(now), 'nextProbeMs', nextProbe, 'isBroad', isOne and '0' or '1')
      word = 'opened'
    end
    redis.call('HSET', KEYS[1], 'lastFailure', ARGV[7])
  end
elseif ARGV[2] == 'alive' and (ARGV[4] == '1' or not open) then
  redis.call('HDEL', KEYS[1], 'state', 'openedAtMs', 'nextProbeMs', 'failures', 'lastFailure', 'sick', 'isBroad')
  if open then
    word = 'closed'
    for subject in string.gmatch(limiter.sick, '%x+') do
      redis.call('HSETNX', KEYS[4], subject, 0)
      redis.call('PEXPIRE', KEYS[4], restsMs)
    end
  end
end
if ARGV[2] == 'alive' then redis.call('HDEL', KEYS[4], ARGV[10]) end
close(limiter, ARGV[8])
return view(openLimiter(KEYS[1], KEYS[2], KEYS[3], KEYS[4]), word, 0)`);
