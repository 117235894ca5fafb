// The atomic steps of a service's gate, in Redis's own language. Called by service-gate.ts only, which knows what they are for.
// One command each, by Redis's clock: so all replicas together keep one limit, one breaker and one throttle.
//
// KEYS: 1 what is known of the service (hash), 2 who is inside (sorted set: pass → end of its lease), 3 when the newest requests
// went out (list of microseconds, newest first; as long as the rate's count).
import { createScript } from "./redis.ts";

/** The pieces that all steps begin with: the time, and what the answer says of the service. */
const head = `local t = redis.call('TIME')
local us = t[1] * 1000000 + t[2]
local now = math.floor(us / 1000)
local function number(name) return tonumber(redis.call('HGET', KEYS[1], name) or '0') end
local function text(n) return string.format('%.0f', n) end
local function view(word, wait)
  local probe = -1
  if redis.call('HGET', KEYS[1], 'state') == 'open' then probe = math.max(number('nextProbeMs') - now, 0) end
  return { word, wait, math.max(number('throttledUntilMs') - now, 0), probe, number('failures') }
end
`;

/** Looks: throttled for how long, breaker open or not, failures in a row. Changes nothing. */
export const lookScript = createScript(`${head}
return view('', 0)`);

/**
 * Asks for one exchange. ARGV: pass, is it a read, places (0: no limit), lease, rate's count (0: no limit), rate's window in
 * microseconds, probe's period, longest turn. Answers 'in', 'probe', or what holds it back and for how long.
 *
 * Whoever is turned away by a limit is given a turn of its own, one after the other, so that a thousand who wait do not all ask
 * again at once. A turn is a hint, no right: the limit is checked again.
 */
export const enterScript = createScript(`${head}
local throttled = number('throttledUntilMs') - now
if throttled > 0 then return view('throttle', throttled) end
local probing = redis.call('HGET', KEYS[1], 'state') == 'open'
if probing then
  local wait = number('nextProbeMs') - now
  if wait > 0 or ARGV[2] ~= '1' then return view('breaker', math.max(wait, 0)) end
end
local function turnedAway(word, free, step)
  local turn = math.max(number('turnMs'), now + free)
  local latest = now + math.max(free, tonumber(ARGV[8]))
  if turn < latest then redis.call('HSET', KEYS[1], 'turnMs', text(turn + step)) end
  return view(word, math.min(turn, latest) - now)
end
local places = tonumber(ARGV[3])
if places > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
  if redis.call('ZCARD', KEYS[2]) >= places then
    local step = math.max(math.ceil(number('usedMs') / places), 1)
    return turnedAway('concurrency', math.max(step, 20), step)
  end
end
local count, window = tonumber(ARGV[5]), tonumber(ARGV[6])
if count > 0 then
  local oldest = redis.call('LINDEX', KEYS[3], count - 1)
  local free = oldest and tonumber(oldest) + window - us or 0
  if free > 0 then return turnedAway('rate', math.ceil(free / 1000), math.ceil(window / count / 1000)) end
  redis.call('LPUSH', KEYS[3], text(us))
  redis.call('LTRIM', KEYS[3], 0, count - 1)
  redis.call('PEXPIRE', KEYS[3], math.ceil(window / 1000) + 1000)
end
if places > 0 then
  redis.call('ZADD', KEYS[2], text(now + tonumber(ARGV[4])), ARGV[1])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
if probing then redis.call('HSET', KEYS[1], 'nextProbeMs', text(now + tonumber(ARGV[7]))) end
return view(probing and 'probe' or 'in', 0)`);

/** Lua: takes out a pass, and learns from it how long a place is used. */
const goOutLua = `
local function goOut(pass, lease)
  local ends = redis.call('ZSCORE', KEYS[2], pass)
  if not ends then return end
  redis.call('ZREM', KEYS[2], pass)
  local used = math.max(now - (tonumber(ends) - tonumber(lease)), 0)
  redis.call('HSET', KEYS[1], 'usedMs', text(number('usedMs') * 0.8 + used * 0.2))
end`;

/** Gives back passes of exchanges that went well while all was well. ARGV: how long a quiet service is remembered, lease, passes. */
export const leaveQuietlyScript = createScript(`${head} ${goOutLua}
for i = 3, #ARGV do goOut(ARGV[i], ARGV[2]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return view('', 0)`);

/**
 * Gives a pass back. ARGV: pass, health, throttle in milliseconds ('' for none), was it the probe, failures that open the
 * breaker, probe's period, kind of the failure, how long a quiet service is remembered, lease. Answers what has changed for
 * all replicas: 'throttled', 'opened', 'closed' or ''.
 */
export const leaveScript = createScript(`${head} ${goOutLua}
goOut(ARGV[1], ARGV[9])
local word = ''
local open = redis.call('HGET', KEYS[1], 'state') == 'open'
if ARGV[3] ~= '' then
  local before = number('throttledUntilMs')
  local untilMs = now + tonumber(ARGV[3])
  if untilMs > before then redis.call('HSET', KEYS[1], 'throttledUntilMs', text(untilMs)) end
  if before <= now then word = 'throttled' end
end
if ARGV[2] == 'failing' and not open then
  if redis.call('HINCRBY', KEYS[1], 'failures', 1) >= tonumber(ARGV[5]) then
    redis.call('HSET', KEYS[1], 'state', 'open', 'openedAtMs', text(now), 'nextProbeMs', text(now + tonumber(ARGV[6])))
    word = 'opened'
  end
  redis.call('HSET', KEYS[1], 'lastFailure', ARGV[7])
elseif ARGV[2] == 'alive' and (ARGV[4] == '1' or not open) then
  redis.call('HDEL', KEYS[1], 'state', 'openedAtMs', 'nextProbeMs', 'failures', 'lastFailure')
  if open then word = 'closed' end
end
redis.call('PEXPIRE', KEYS[1], ARGV[8])
return view(word, 0)`);
