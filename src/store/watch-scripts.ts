// The atomic steps that detect a loss in Redis, in Lua. Used by redis-watch.ts and
// start-journal.ts.
//
// Three numbers only grow: the stamp (each process moves it once a second), the count of intents
// (each permission to send moves it) and the count of processes that ever began. A term is a time
// in which Redis was one process with one memory:
//
//   (nothing) ──first check──▶ settled ──another server process,
//     or a smaller stamp──▶ no starts for 3 s ──▶ settled, a new term
//
// A new term notes what Redis kept of these numbers: its base. At its first check in the term each
// process compares its own memory with the base; what it remembers beyond is lost. Processes that
// lived then and stay away for those 3 s may have known more: what they could have known counts as
// lost, too.
//
// Where every request waits for a replica to have its intent, a smaller stamp proves no lost start.
// A master that Sentinels replace as planned still moves the stamp for a second or two, but permits
// nothing, since no replica answers it. There a start is lost only if a process remembers an intent
// of its own beyond the base, or the new master does not know a process.
import { createScript } from "./redis.ts";

/** How long nothing starts in a new term, so that every process can report what it remembers. */
const holdMs = 3_000;

/** Lua: sets `run`, the identity of this server process; empty where INFO is not allowed. */
const identityLua = `
local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''`;

/**
 * One check.
 * KEYS: watch, processes, losses.
 * ARGV: this process, its term, stamp, count of intents and of processes, the window, '1' when a
 * replica had every intent that it relied on.
 * Answers term, stamp, count of intents, count of processes, 'changed' when this check began a new
 * term; then from, until and kind of each loss. Kind 'writes': surely no start was lost.
 */
export const checkScript = createScript(`
local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)
${identityLua}
local me, seenTerm, seenStamp, seenIntents, seenBegun = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local window, isReplicated = tonumber(ARGV[6]), ARGV[7] == '1'
local function text(number) return string.format('%.0f', number) end
local known = redis.call('HMGET', KEYS[1], 'runId', 'term', 'stamp', 'intents', 'base', 'baseIntents', 'since', 'settled', 'begun', 'baseBegun')
local term, stamp, intents = known[2], tonumber(known[3] or 0), tonumber(known[4] or 0)
local base, baseIntents, since, settled = tonumber(known[5] or 0), tonumber(known[6] or 0), tonumber(known[7] or 0), known[8]
local begun, baseBegun = tonumber(known[9] or 0), tonumber(known[10] or 0)
local changed = known[1] and (known[1] ~= run or (term == seenTerm and stamp < seenStamp))
if changed or not known[1] then
  term, base, baseIntents, baseBegun, since = run .. '/' .. text(now), stamp, intents, begun, now
  settled = changed and '0' or '1'
  redis.call('HSET', KEYS[1], 'v', 1, 'runId', run, 'term', term, 'base', text(base), 'baseIntents', baseIntents, 'baseBegun', baseBegun, 'since', text(now), 'settled', settled)
end
if seenTerm == '' then begun = redis.call('HINCRBY', KEYS[1], 'begun', 1) end
local answer = { term, '', '', text(begun), changed and 'changed' or '' }
local function lose(from, untilMs, kind)
  local member = text(math.max(0, from)) .. ':' .. text(untilMs)
  if kind ~= 'writes' then
    redis.call('ZADD', KEYS[3], text(untilMs), member)
    redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -101)
  end
  for _, value in ipairs({ text(math.max(0, from)), text(untilMs), kind }) do table.insert(answer, value) end
end
if seenTerm ~= '' and seenTerm ~= term then
  if seenIntents > baseIntents or seenBegun > baseBegun or (seenStamp > base and (base == 0 or not isReplicated)) then
    lose(base - window, seenStamp + window, base == 0 and 'flushed' or 'went-back')
  elseif seenStamp > base then
    lose(base, seenStamp, 'writes')
  end
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
 * Lua: checks the fence of a task, in a script that permits a request. Needs `now`. INFO costs 3
 * µs. `fence`: its keys (watch and losses, or none for no check), the remembered term, the task's
 * slot and start-by time.
 * Answers 'hold' while Redis is not the one of the last check or its term is not settled, 'loss'
 * when the task's intent may be lost, else nothing.
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

/** Lua: counts an intent in the step that writes it. Answers the count, or '' without a watch. */
export const countIntentLua = `
local function countIntent(watch) return watch and redis.call('HINCRBY', watch, 'intents', 1) or '' end`;

/**
 * Checks the fence alone.
 * KEYS: watch, losses.
 * ARGV: term, slot, start-by time.
 * Answers 'hold', 'loss' or nothing.
 */
export const fenceScript = createScript(`
local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)
${fenceLua}
return shut({ watch = KEYS[1], losses = KEYS[2], term = ARGV[1], slot = ARGV[2], startBy = ARGV[3] })`);

/**
 * Notes, or reads, when this server process last had replicas.
 * KEYS: watch.
 * ARGV: '1' to note that it has some now.
 * Answers how long ago (ms) that was; nothing when it was another server process: what the master
 * noted comes to a replica as well.
 */
export const replicasScript = createScript(`
local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)
${identityLua}
if ARGV[1] == '1' then redis.call('HSET', KEYS[1], 'replicasOf', run, 'replicasAt', string.format('%.0f', now)) end
local noted = redis.call('HMGET', KEYS[1], 'replicasOf', 'replicasAt')
if run == '' or noted[1] ~= run then return false end
return now - tonumber(noted[2])`);

/**
 * Lua, for a pipeline before WAIT.
 * KEYS: watch.
 * Answers the count of intents, and how many replicas are in step.
 */
export const replicatedLua = `
local info = redis.pcall('INFO', 'replication')
local _, inStep = string.gsub(type(info) == 'string' and info or '', 'state=online', '')
return { tonumber(redis.call('HGET', KEYS[1], 'intents') or 0), inStep }`;
