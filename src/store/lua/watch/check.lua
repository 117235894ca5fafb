-- One check whether Redis is the one that this process remembers.
--
-- Three numbers only grow: the stamp (each process moves it once a second), the count of intents
-- (each permission to send moves it) and the count of processes that ever began. A term is a time
-- in which Redis was one process with one memory:
--
--   (nothing) ──first check──▶ permits ──another server process,
--     or a smaller stamp──▶ no starts for 3 s ──▶ permits, a new term
--
-- A new term notes what Redis kept of these numbers: its base. At its first check in the term each
-- process compares its own memory with the base; what it remembers beyond is lost. Processes that
-- lived then and stay away for those 3 s may have known more: what they could have known counts as
-- lost, too.
--
-- Where every request waits for a replica to have its intent, a smaller stamp proves no lost start.
-- A master that Sentinels replace as planned still moves the stamp for a second or two, but permits
-- nothing, since no replica answers it. There a start is lost only if a process remembers an intent
-- of its own beyond the base, or the new master does not know a process.
--
-- KEYS: watch, processes, losses
-- ARGV: this process, its term, stamp, count of intents and of processes, the window, '1' when a
-- replica had every intent that it relied on
-- Answers term, stamp, count of intents, count of processes, 'changed' when this check began a new
-- term; then from, until and kind of each loss. Kind 'writes': surely no start was lost.
local watchKey, processesKey, lossesKey = unpack(KEYS)
local me, seenTerm, seenStamp, seenIntents, seenBegun, window, isReplicated = unpack(ARGV)
--- @include "now"
--- @include "server-run"
seenStamp, seenIntents, seenBegun = tonumber(seenStamp), tonumber(seenIntents), tonumber(seenBegun)
window = tonumber(window)
local lossesMax, processesKeptMs = 100, 3600000
-- A process that lived at the base ticked within this span before it.
local aliveForMs = 10000
local run, info = serverRun()
local names = { 'runId', 'term', 'permits', 'stamp', 'intents', 'begun', 'since', 'base', 'baseIntents', 'baseBegun' }
local known = redis.call('HMGET', watchKey, unpack(names))
local knownRun, term, permits = known[1], known[2], known[3]
local function number(index) return tonumber(known[index] or 0) end
local stamp, intents, begun, since = number(4), number(5), number(6), number(7)
local base, baseIntents, baseBegun = number(8), number(9), number(10)

local isChanged = knownRun and (knownRun ~= run or (term == seenTerm and stamp < seenStamp))
if isChanged or not knownRun then
  term, base, baseIntents, baseBegun, since = run .. '/' .. now, stamp, intents, begun, now
  permits = isChanged and '0' or '1'
  redis.call('HSET', watchKey, 'v', 1, 'runId', run, 'term', term, 'since', since, 'permits', permits)
  redis.call('HSET', watchKey, 'base', base, 'baseIntents', baseIntents, 'baseBegun', baseBegun)
end
if seenTerm == '' then begun = redis.call('HINCRBY', watchKey, 'begun', 1) end

-- Notes a loss. Those that touch are one: each process notes its own of the same gap.
local function note(from, untilMs)
  for _, known in ipairs(redis.call('ZRANGEBYSCORE', lossesKey, from, '+inf')) do
    local knownFrom, knownUntil = string.match(known, '^(%d+):(%d+)$')
    if tonumber(knownFrom) <= untilMs then
      from, untilMs = math.min(from, knownFrom), math.max(untilMs, knownUntil)
      redis.call('ZREM', lossesKey, known)
    end
  end
  redis.call('ZADD', lossesKey, untilMs, string.format('%.0f:%.0f', from, untilMs))
  redis.call('ZREMRANGEBYRANK', lossesKey, 0, -lossesMax - 1)
end

local losses = {}
local function lose(from, untilMs, kind)
  from = math.max(0, from)
  if kind ~= 'writes' then note(from, untilMs) end
  for _, value in ipairs({ from, untilMs, kind }) do table.insert(losses, value) end
end
if seenTerm ~= '' and seenTerm ~= term then
  local isStampLost = seenStamp > base and (base == 0 or isReplicated ~= '1')
  if seenIntents > baseIntents or seenBegun > baseBegun or isStampLost then
    lose(base - window, seenStamp + window, base == 0 and 'flushed' or 'went-back')
  elseif seenStamp > base then
    lose(base, seenStamp, 'writes')
  end
end

-- Processes that lived at the base and stay away may have known more than Redis has.
local function loseUnwitnessed()
  if redis.call('ZCOUNT', processesKey, base - aliveForMs, base) == 0 then return end
  local started = now - 1000 * tonumber(string.match(info, 'uptime_in_seconds:(%d+)') or 0)
  local persistence = redis.pcall('INFO', 'persistence')
  local appends = type(persistence) == 'string' and string.find(persistence, 'aof_enabled:1', 1, true)
  local untilMs = started < base and since or started
  if appends and started >= base then untilMs = math.min(started, base + window) end
  lose(base - window, untilMs, 'unwitnessed')
end
if permits == '0' and now >= since + holdMs then
  loseUnwitnessed()
  redis.call('HSET', watchKey, 'permits', '1')
end

stamp = math.max(now, stamp + 1)
redis.call('HSET', watchKey, 'stamp', stamp)
redis.call('ZADD', processesKey, stamp, me)
redis.call('ZREMRANGEBYSCORE', processesKey, '-inf', stamp - processesKeptMs)
return { term, stamp, intents, begun, isChanged and 'changed' or '', losses }
