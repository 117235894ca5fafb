// The atomic steps that find out whether Redis has lost something, in Redis's own language. Used by redis-watch.ts and start-journal.ts.
//
// Two numbers only ever grow: the stamp (moved by every process once a second) and the count of intents (moved with each
// permission to send). A term is a time in which Redis was one process with one memory:
//
//   (nothing) ──first beat──▶ settled ──another server process, or a smaller stamp──▶ held for 3 s ──▶ settled, a new term
//
// A new term notes what Redis had kept of both numbers (its base). Each process holds its own memory against that base at its first
// beat in the term; what it remembers beyond is lost. Processes that lived then and do not come by while it is held may have
// known more, so what they could have known counts as lost too.
import { createScript } from "./redis.ts";

/** How long nothing starts in a new term, so that every process can say what it remembers. */
const holdMs = 3_000;

/** Lua that sets `run`: the identity of this server process; empty where INFO is not allowed. */
const identityLua = `
local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''`;

/**
 * A beat. KEYS: watch, processes, losses. ARGV: this process, its remembered term, stamp and count of intents, the window.
 * Answers term, stamp, count of intents, 'changed' when this beat began a new term in place of another, then from, until and
 * kind of the losses that it found.
 */
export const beatScript = createScript(`
local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)
${identityLua}
local me, seenTerm, seenStamp, seenIntents, window = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local function text(number) return string.format('%.0f', number) end
local known = redis.call('HMGET', KEYS[1], 'runId', 'term', 'stamp', 'intents', 'base', 'baseIntents', 'since', 'settled')
local term, stamp, intents = known[2], tonumber(known[3] or 0), tonumber(known[4] or 0)
local base, baseIntents, since, settled = tonumber(known[5] or 0), tonumber(known[6] or 0), tonumber(known[7] or 0), known[8]
local changed = known[1] and (known[1] ~= run or (term == seenTerm and stamp < seenStamp))
if changed or not known[1] then
  term, base, baseIntents, since = run .. '/' .. text(now), stamp, intents, now
  settled = changed and '0' or '1'
  redis.call('HSET', KEYS[1], 'v', 1, 'runId', run, 'term', term, 'base', text(base), 'baseIntents', baseIntents, 'since', text(now), 'settled', settled)
end
local answer = { term, '', '', changed and 'changed' or '' }
local function lose(from, untilMs, kind)
  local member = text(math.max(0, from)) .. ':' .. text(untilMs)
  redis.call('ZADD', KEYS[3], text(untilMs), member)
  redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -101)
  for _, value in ipairs({ text(math.max(0, from)), text(untilMs), kind }) do table.insert(answer, value) end
end
if seenTerm ~= '' and seenTerm ~= term and (seenStamp > base or seenIntents > baseIntents) then
  lose(base - window, seenStamp + window, base == 0 and 'flushed' or 'went-back')
end
if settled == '0' and now >= since + ${holdMs} then
  if redis.call('ZCOUNT', KEYS[2], text(base - 10000), text(base)) > 0 then
    local started = now - 1000 * tonumber(type(info) == 'string' and string.match(info, 'uptime_in_seconds:(%d+)') or 0)
    local persistence = redis.pcall('INFO', 'persistence')
    local appends = type(persistence) == 'string' and string.find(persistence, 'aof_enabled:1', 1, true)
    local untilMs = started < base and since or started
    if appends and started >= base then untilMs = math.min(started, base + window) end
    lose(base - window, untilMs, 'unwitnessed')
  end
  redis.call('HSET', KEYS[1], 'settled', '1')
end
stamp = math.max(now, stamp + 1)
redis.call('HSET', KEYS[1], 'stamp', text(stamp))
redis.call('ZADD', KEYS[2], text(stamp), me)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', text(stamp - 3600000))
answer[2], answer[3] = text(stamp), intents
return answer`);

/**
 * Lua for the scripts that permit a request, which need `now`: why the fence of a task is shut, or nothing. `fence`: its keys, watch and
 * losses, or none for no such check; the remembered term; the task's slot and start-by time. 'hold' while Redis is not the one of
 * the last beat or its term is not settled, 'loss' when the task's intent may be among what was lost. INFO costs 3 µs here.
 */
export const fenceLua = `
local function shut(fence)
  if not fence.watch then return end
  ${identityLua}
  local watch = redis.call('HMGET', fence.watch, 'runId', 'term', 'settled', 'since')
  if watch[1] ~= run or watch[2] ~= fence.term or watch[3] ~= '1' then return 'hold' end
  if tonumber(fence.slot) < tonumber(watch[4]) and now < tonumber(watch[4]) + ${holdMs} then return 'hold' end
  for _, loss in ipairs(redis.call('ZRANGEBYSCORE', fence.losses, fence.slot, '+inf')) do
    if tonumber(string.match(loss, '^(%d+):')) <= tonumber(fence.startBy) then return 'loss' end
  end
end`;

/** Lua that counts an intent in the step that writes it: the new count, or '' where nobody watches. */
export const countIntentLua = `
local function countIntent(watch) return watch and redis.call('HINCRBY', watch, 'intents', 1) or '' end`;

/** Asks the fence alone. KEYS: watch, losses. ARGV: term, slot, start-by time. Answers 'hold', 'loss' or nothing. */
export const fenceScript = createScript(`
local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)
${fenceLua}
return shut({ watch = KEYS[1], losses = KEYS[2], term = ARGV[1], slot = ARGV[2], startBy = ARGV[3] })`);

/**
 * What is known of this server's replicas. KEYS: watch. ARGV: '1' notes that it has some now. Answers how long ago (ms) that was noted last;
 * nothing when it never was of this server process: what was noted of the master before it came here by replication.
 */
export const replicasScript = createScript(`
local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)
${identityLua}
if ARGV[1] == '1' then redis.call('HSET', KEYS[1], 'replicasOf', run, 'replicasAt', string.format('%.0f', now)) end
local noted = redis.call('HMGET', KEYS[1], 'replicasOf', 'replicasAt')
if run == '' or noted[1] ~= run then return false end
return now - tonumber(noted[2])`);
