// The atomic steps of a service's gate, in Redis's own language. Called by service-gate.ts only, which knows what they are for.
// One command each, by Redis's clock: so all replicas together keep one limit, one breaker and one throttle.
//
// Keys of a gate, in this order: 1 what is known of the service (hash), 2 who is inside (sorted set: pass → end of its lease), 3 when
// the newest requests went out (list of microseconds, newest first; as long as the rate's count), 4 what failed while the breaker was open and has not been well since (hash:
// subject → until when it is left alone).
import { createScript } from "./redis.ts";

const time = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

/** Lua: opens a gate, which is one read, and shows it: a word, a wait, and what the answer says of the service. Needs `t` and `now`. */
const gateLua = `
local function text(n) return string.format('%.0f', n) end
local function openGate(known, inside, sent, rests)
  local had = redis.call('HMGET', known, 'state', 'throttledUntilMs', 'nextProbeMs', 'failures', 'turnMs', 'usedMs', 'sick', 'isBroad')
  return {
    known = known, inside = inside, sent = sent, rests = rests, isOpen = had[1] == 'open', throttledUntilMs = tonumber(had[2] or 0),
    nextProbeMs = tonumber(had[3] or 0), failures = tonumber(had[4] or 0), turnMs = tonumber(had[5] or 0), usedMs = tonumber(had[6] or 0),
    sick = had[7] or '', isBroad = had[8] == '1',
  }
end
local function isSick(gate, subject) return subject ~= '' and string.find(gate.sick, ' ' .. subject .. ' ', 1, true) ~= nil end
local function view(gate, word, wait)
  local probe = -1
  if gate.isOpen then probe = gate.isBroad and math.max(gate.nextProbeMs - now, 0) or 0 end
  return { word, wait, math.max(gate.throttledUntilMs - now, 0), probe, gate.failures, redis.call('HLEN', gate.rests) }
end`;

/**
 * Lua: asks a gate for one exchange. `want`, from `first` on: pass, is it a read, places (0: no limit), lease, rate's count (0: no
 * limit), rate's window in microseconds, probe's period, longest turn, subject. Answers 'in', 'probe', or what holds it back and for how long.
 *
 * While all that failed is about one subject, a read about another one is the probe at once: that shows whether the service is down or that
 * one thing is sick. Otherwise what has not failed yet goes first, so that who asks for a sick thing all the time is not always the probe.
 *
 * Whoever is turned away by a limit is given a turn of its own, one after the other, so that a thousand who wait do not all ask
 * again at once. A turn is a hint, no right: the limit is checked again. Part of the step that permits a plain start, too (journal-scripts.ts).
 */
export const enterLua = `${gateLua}
-- A replica with other limits must not let go what this one counts on: each entry says itself how long it holds.
local keptMs = 86400000
local function enter(gate, want, first)
  local us = t[1] * 1000000 + t[2]
  local throttled = gate.throttledUntilMs - now
  if throttled > 0 then return view(gate, 'throttle', throttled) end
  local subject = want[first + 8] or ''
  local rest = not gate.isOpen and want[first + 1] == '1' and tonumber(redis.call('HGET', gate.rests, subject) or 0) - now or 0
  if rest > 0 then return view(gate, 'breaker', rest) end
  if gate.isOpen then
    local from = gate.nextProbeMs
    if isSick(gate, subject) then
      if gate.isBroad then from = from + math.ceil(tonumber(want[first + 6]) / 4) end
    elseif not gate.isBroad then
      from = 0
    end
    local wait = from - now
    if wait > 0 or want[first + 1] ~= '1' then return view(gate, 'breaker', math.max(wait, 0)) end
  end
  local function turnedAway(word, free, step)
    -- Who is here a moment before its turn waits that moment, and not behind all others.
    if free < step / 4 then return view(gate, word, free) end
    local turn = math.max(gate.turnMs, now + free)
    local latest = now + math.max(free, tonumber(want[first + 7]))
    if turn < latest then redis.call('HSET', gate.known, 'turnMs', text(turn + step)) end
    return view(gate, word, math.min(turn, latest) - now)
  end
  local places = tonumber(want[first + 2])
  if places > 0 and redis.call('ZCARD', gate.inside) >= places then
    -- Perhaps some of them have died.
    redis.call('ZREMRANGEBYSCORE', gate.inside, '-inf', now)
    if redis.call('ZCARD', gate.inside) >= places then
      local step = math.max(math.ceil(gate.usedMs / places), 1)
      return turnedAway('concurrency', math.max(step, 20), step)
    end
  end
  local count, window = tonumber(want[first + 4]), tonumber(want[first + 5])
  if count > 0 then
    local oldest = redis.call('LINDEX', gate.sent, count - 1)
    local free = oldest and tonumber(oldest) + window - us or 0
    if free > 0 then return turnedAway('rate', math.ceil(free / 1000), math.ceil(window / count / 1000)) end
    redis.call('LPUSH', gate.sent, text(us))
    redis.call('LTRIM', gate.sent, 0, count - 1)
    redis.call('PEXPIRE', gate.sent, math.max(math.ceil(window / 1000) + 1000, keptMs))
  end
  if places > 0 then
    redis.call('ZADD', gate.inside, text(now + tonumber(want[first + 3])), want[first])
    redis.call('PEXPIRE', gate.inside, math.max(tonumber(want[first + 3]), keptMs))
  end
  if gate.isOpen then
    gate.nextProbeMs = now + tonumber(want[first + 6])
    gate.isBroad = gate.isBroad or not isSick(gate, subject)
    redis.call('HSET', gate.known, 'nextProbeMs', text(gate.nextProbeMs), 'isBroad', gate.isBroad and '1' or '0')
    return view(gate, 'probe', 0)
  end
  return view(gate, 'in', 0)
end`;

/** Looks: throttled for how long, breaker open or not, failures in a row. Changes nothing. */
export const lookScript = createScript(`${time} ${gateLua}
return view(openGate(KEYS[1], KEYS[2], KEYS[3], KEYS[4]), '', 0)`);

/** Asks for one exchange. ARGV: as `enterLua` wants it. */
export const enterScript = createScript(`${time} ${enterLua}
return enter(openGate(KEYS[1], KEYS[2], KEYS[3], KEYS[4]), ARGV, 1)`);

/** Lua: takes out a pass, and learns from it how long a place is used. */
const goOutLua = `
local function goOut(gate, pass, lease)
  local ends = redis.call('ZSCORE', gate.inside, pass)
  if not ends then return end
  redis.call('ZREM', gate.inside, pass)
  local used = math.max(now - (tonumber(ends) - tonumber(lease)), 0)
  gate.usedMs = gate.usedMs * 0.8 + used * 0.2
  gate.isUsed = true
end
local function close(gate, remember)
  if gate.isUsed then redis.call('HSET', gate.known, 'usedMs', text(gate.usedMs)) end
  redis.call('PEXPIRE', gate.known, remember)
end`;

/** Gives back passes of exchanges that went well while all was well. ARGV: how long a quiet service is remembered, lease, passes. */
export const leaveQuietlyScript = createScript(`${time} ${gateLua} ${goOutLua}
local gate = openGate(KEYS[1], KEYS[2], KEYS[3], KEYS[4])
for i = 3, #ARGV do goOut(gate, ARGV[i], ARGV[2]) end
close(gate, ARGV[1])
return view(gate, '', 0)`);

/**
 * Gives a pass back. ARGV: pass, health, throttle in milliseconds ('' for none), was it the probe, failures that open the
 * breaker, probe's period, kind of the failure, how long a quiet service is remembered, lease, subject. What had failed when the breaker
 * closes is watched until it is well: its next failure, and each one after that, is followed by a period in which it alone is not read. Answers what has changed for
 * all replicas: 'throttled', 'opened', 'closed' or ''.
 */
export const leaveScript = createScript(`${time} ${gateLua} ${goOutLua}
local restsMs = 3600000
local gate = openGate(KEYS[1], KEYS[2], KEYS[3], KEYS[4])
goOut(gate, ARGV[1], ARGV[9])
local word = ''
local open = gate.isOpen
if ARGV[3] ~= '' then
  local before = gate.throttledUntilMs
  local untilMs = now + tonumber(ARGV[3])
  if untilMs > before then redis.call('HSET', KEYS[1], 'throttledUntilMs', text(untilMs)) end
  if before <= now then word = 'throttled' end
end
if ARGV[2] == 'failing' then
  -- A replica of the version before forgets the failures alone.
  if gate.failures == 0 and not open then gate.sick = '' end
  -- More than these few are as good as anything: 17 characters each.
  local isNew = ARGV[10] ~= '' and not isSick(gate, ARGV[10]) and #gate.sick < 1000
  if isNew then
    gate.sick = (gate.sick == '' and ' ' or gate.sick) .. ARGV[10] .. ' '
    redis.call('HSET', KEYS[1], 'sick', gate.sick)
  end
  local isOne = select(2, string.gsub(gate.sick, ' ', '')) == 2
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
    for subject in string.gmatch(gate.sick, '%x+') do
      redis.call('HSETNX', KEYS[4], subject, 0)
      redis.call('PEXPIRE', KEYS[4], restsMs)
    end
  end
end
if ARGV[2] == 'alive' then redis.call('HDEL', KEYS[4], ARGV[10]) end
close(gate, ARGV[8])
return view(openGate(KEYS[1], KEYS[2], KEYS[3], KEYS[4]), word, 0)`);
