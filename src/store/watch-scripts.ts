// The atomic steps that find out whether Redis has lost something, in Redis's own language. Used by redis-watch.ts and start-journal.ts.
//
// Two numbers only ever grow: the stamp (moved by every process once a second) and the count of intents (moved with each
// permission to send). A process that remembers a greater one than Redis has, knows that Redis went back.
import { createScript } from "./redis.ts";

/** Lua that sets `run`: the identity of this server process; empty where INFO is not allowed. */
const identityLua = `
local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''`;

/**
 * Looks at Redis and moves the stamp. KEYS: watch, processes, losses. ARGV: this process, its remembered stamp, count of intents
 * and number of losses, window, hold. Answers stamp, intents, number of losses, 'changed' or '', from and until of a new loss or '', its kind.
 *
 * - Its stamp went back: lost is what was written after it, up to what this process remembers, with the window on both sides.
 * - Somebody else has found a loss, but this process remembers more: the loss is longer.
 * - The count went back and the stamp did not: somebody without memory began it anew, all from before is lost.
 * - Another process of Redis, and this process remembers nothing, but others lived: as the first, up to when Redis was started.
 */
export const beatScript = createScript(`
local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)
${identityLua}
local me, seenStamp, seenIntents, seenLosses = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local window, hold = tonumber(ARGV[5]), tonumber(ARGV[6])
local known = redis.call('HMGET', KEYS[1], 'runId', 'stamp', 'intents', 'losses', 'lostFrom', 'lostUntil')
local stamp, intents, losses = tonumber(known[2] or 0), tonumber(known[3] or 0), tonumber(known[4] or 0)
local changed = known[1] and known[1] ~= run
local from, untilMs, kind
if stamp < seenStamp then
  kind = stamp == 0 and 'flushed' or 'went-back'
  from = math.max(0, stamp - window)
  untilMs = seenStamp + window
elseif seenStamp > 0 and losses > seenLosses then
  if seenStamp + window > tonumber(known[6] or 0) then
    kind = 'longer'
    from = tonumber(known[5] or 0)
    untilMs = seenStamp + window
  end
elseif intents < seenIntents then
  kind = 'flushed'
  from = 0
  untilMs = seenStamp + window
elseif changed and seenStamp == 0 and redis.call('ZCOUNT', KEYS[2], stamp - 10000, '+inf') > 0 then
  kind = 'unwitnessed'
  from = math.max(0, stamp - window)
  local persistence = redis.pcall('INFO', 'persistence')
  local started = now - 1000 * tonumber(type(info) == 'string' and string.match(info, 'uptime_in_seconds:(%d+)') or 0)
  if started < stamp then untilMs = now
  elseif type(persistence) == 'string' and string.find(persistence, 'aof_enabled:1', 1, true) then untilMs = math.min(started, stamp + window)
  else untilMs = started end
end
if kind then
  losses = math.max(losses, seenLosses) + 1
  redis.call('ZADD', KEYS[3], untilMs, string.format('%.0f:%.0f', from, untilMs))
  redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -101)
  redis.call('HSET', KEYS[1], 'lostFrom', string.format('%.0f', from), 'lostUntil', string.format('%.0f', untilMs))
end
if changed or kind then redis.call('HSET', KEYS[1], 'holdUntil', string.format('%.0f', now + hold)) end
stamp = math.max(now, stamp + 1, seenStamp + 1)
intents = math.max(intents, seenIntents)
redis.call('HSET', KEYS[1], 'v', 1, 'runId', run, 'stamp', string.format('%.0f', stamp), 'intents', intents, 'losses', losses)
redis.call('ZADD', KEYS[2], stamp, me)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', stamp - 3600000)
return { string.format('%.0f', stamp), intents, losses, changed and 'changed' or '', from and string.format('%.0f', from) or '', untilMs and string.format('%.0f', untilMs) or '', kind or '' }`);

/**
 * Lua for the script that permits a request: needs `now`; KEYS[2] and KEYS[3] are watch and losses, or absent for no such check.
 * ARGV[4]: the remembered count of intents, ARGV[5]: the task's slot, ARGV[2]: its start-by time. Returns 'hold' while Redis is
 * another one than the last beat saw, went back, or changed a moment ago; 'loss' when the intent may be among what was lost.
 */
export const fenceLua = `
if KEYS[2] then
  ${identityLua}
  local watch = redis.call('HMGET', KEYS[2], 'runId', 'holdUntil', 'intents')
  if not watch[1] or watch[1] ~= run or now < tonumber(watch[2] or 0) or tonumber(watch[3] or 0) < tonumber(ARGV[4]) then return 'hold' end
  for _, loss in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], ARGV[5], '+inf')) do
    if tonumber(string.match(loss, '^(%d+):')) <= tonumber(ARGV[2]) then return 'loss' end
  end
end`;

/** Lua that counts an intent in the step that writes it, and sets `count` to `' '` and the new count, or to nothing. */
export const countIntentLua = `
local count = KEYS[2] and ' ' .. redis.call('HINCRBY', KEYS[2], 'intents', 1) or ''`;
