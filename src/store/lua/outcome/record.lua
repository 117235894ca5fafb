-- Records an outcome: settles the start, releases the lease, ends the waiting for feeds, and notes
-- it for metrics, chains, the notifier and the next poll.
-- KEYS: outcomes of the policy, their index, failed tasks of all policies, outcomes-kept,
-- unpublished, entry, in flight, lease, last success, troubles, join counter, event stream, poll
-- memory, policy state, changed policies, month of the day summary, then the waiters of the feeds
-- ARGV: 1 task, outcome, finishedMs, target, status, policy, placeMs, '1' when a new try may help;
-- 9 the state and claimant that the journal must show ('' for any), '1' when the outcome brings the
-- answer, the requests that it knows of; 13 retention of the entry, time to publish, retention of a
-- last success ('' when this is none); 16 outcomes to keep, place before which one is too old; 18
-- changes of the troubles; 19 '1' for a task of the schedule; 20 '1' to write an event for the
-- notifier; 21 for the policy's state: target (JSON), weight, figures of a success, last outcome
-- (JSON), rank of its trouble; 26 the change of the day's summary; 27 for a poll: revision, feed,
-- state, count, atMs, '1' when it saw items, digests
-- Answers 'superseded', 'already-recorded', 'recorded', or 'recorded-awaited' when a chain waits.
local outcomesKey, indexKey, failedKey, keptKey, unpublishedKey, entryKey, inFlightKey, leaseKey = unpack(KEYS, 1, 8)
local successKey, troublesKey, counterKey, streamKey, pollKey, stateKey, changedKey, daysKey = unpack(KEYS, 9, 16)
local task, outcome, finishedMs, target, status, policy, placeMs, isReplayable = unpack(ARGV, 1, 8)
local fromState, fromClaimant, isAnswer, sends, entryKeptMs, publishWithinMs, successKeptMs = unpack(ARGV, 9, 15)
local most, oldest, troubles, isScheduled, isNotified = unpack(ARGV, 16, 20)
local revision, feed, pollState, count, readAtMs, hasSeen, seen = unpack(ARGV, 27, 33)
--- @include "now"
--- @include "lease"
--- @include "in-flight"
--- @include "events"
--- @include "troubles"
--- @include "policy-state"
--- @include "day-summary"
local pollKeptMs = 400 * 86400000
-- A trim at each outcome would cost each start. So Redis keeps up to 15 outcomes more.
local trimEvery = 16
-- An activity of an ended start may still appear. So the start stays in flight until its newest
-- request is 60 s older than the first request of the oldest start that goes on, or than now if
-- none goes on; 600 s at the most. The next outcome of the sync job takes it out.
local endedKeptMs, endedKeptMsMax = 60000, 600000
local hadLease

local function releaseTask()
  hadLease = releaseLease(leaseKey, task)
  for feedIndex = 17, #KEYS do redis.call('ZREM', KEYS[feedIndex], task) end
end

-- Three kinds of ended starts stay in flight, marked "e". One whose activity was not seen, and one
-- that was sent again: another start would get what yet appears of them. And one that ends beside
-- others, which may have got its activity.
local function leaveFlight()
  local isUnseen = { accepted = true, unknown = true, ['timed-out'] = true, blocked = true }
  local isNothing = { ['not-started'] = true, skipped = true, missed = true }
  local flat, sent, since, isAlone, ended = redis.call('HGETALL', inFlightKey), nil, now, true, {}
  for i = 1, #flat, 2 do
    local requests = requestsOf(flat[i + 1])
    if flat[i] == task then
      sent = requests
    elseif string.sub(flat[i + 1], 1, 1) == 'e' then
      ended[flat[i]] = requests[#requests]
    else
      isAlone, since = false, math.min(since, requests[1])
    end
  end
  if sent and not isNothing[status] and (isUnseen[status] or #sent > 1 or not isAlone) then
    redis.call('HSET', inFlightKey, task, 'e' .. table.concat(sent, ':') .. '+')
  elseif sent then
    redis.call('HDEL', inFlightKey, task)
  end
  since = math.max(since - endedKeptMs, now - endedKeptMsMax)
  for other, sentAtMs in pairs(ended) do
    if sentAtMs < since then redis.call('HDEL', inFlightKey, other) end
  end
  if hadLease and not isAlone then passLease(leaseKey, redis.call('HGETALL', inFlightKey)) end
end

-- Saves the note of a poll; another list begins anew.
local function notePoll()
  if redis.call('HGET', pollKey, 'of') ~= feed then redis.call('HDEL', pollKey, 'count', 'atMs', 'seen', 'metMs') end
  redis.call('HINCRBY', pollKey, 'revision', 1)
  redis.call('HSET', pollKey, 'of', feed, 'state', pollState)
  if pollState == 'good' then redis.call('HSET', pollKey, 'metMs', finishedMs) end
  if count ~= '' then
    redis.call('HSET', pollKey, 'count', count, 'atMs', readAtMs)
    if hasSeen == '1' then redis.call('HSET', pollKey, 'seen', seen) else redis.call('HDEL', pollKey, 'seen') end
  end
  redis.call('PEXPIRE', pollKey, pollKeptMs)
end

-- Counts the outcome for a chain that waits for the slot; answers whether one does.
local function countForChain()
  if isScheduled ~= '1' or redis.call('EXISTS', counterKey) == 0 then return false end
  if redis.call('HGET', counterKey, '=' .. target) == '' then redis.call('HINCRBY', counterKey, 'open', -1) end
  redis.call('HSET', counterKey, '=' .. target, status)
  local ended = tonumber(redis.call('HGET', counterKey, 'ended') or 0)
  if tonumber(finishedMs) > ended then redis.call('HSET', counterKey, 'ended', finishedMs) end
  return true
end

local function noteSuccess()
  if tonumber(finishedMs) <= tonumber(redis.call('GET', successKey) or 0) then return end
  redis.call('SET', successKey, finishedMs, 'PX', successKeptMs)
end

-- Drops what is too many or too old, at most a thousand outcomes in one step.
local function trim()
  local held = redis.call('ZCARD', indexKey)
  if held % trimEvery ~= 0 then return end
  local extra = math.max(held - tonumber(most), redis.call('ZCOUNT', indexKey, '-inf', '(' .. oldest))
  if extra <= 0 then return end
  local old, names = redis.call('ZPOPMIN', indexKey, math.min(extra, 1000)), {}
  for i = 1, #old, 2 do names[#names + 1] = old[i] end
  redis.call('HDEL', outcomesKey, unpack(names))
  redis.call('ZREM', unpublishedKey, unpack(names))
  redis.call('ZREM', failedKey, unpack(names))
  local newest, since = old[#old], redis.call('HGET', keptKey, policy)
  if (tonumber(since) or 0) < tonumber(newest) then redis.call('HSET', keptKey, policy, newest) end
end

local isRecorded = redis.call('HEXISTS', outcomesKey, task) == 1
if revision and not isRecorded and (redis.call('HGET', pollKey, 'revision') or '0') ~= revision then
  return 'superseded'
end
local entry = redis.call('HMGET', entryKey, 'state', 'claimant', 'sends')
local state, confirmedAtMs = entry[1], nil
if isAnswer == '1' and (state == 'sending' or not state) then
  -- The answer is true even if the worker had no time to note it, or Redis forgot the request.
  if not state then redis.call('HSET', entryKey, 'v', 1) end
  state, confirmedAtMs = 'confirmed', math.min(now, tonumber(finishedMs))
end
if state == 'settled' and not isRecorded then
  releaseTask()
  return 'already-recorded'
end
-- A request that it does not know of may be under way.
local isWhole = (tonumber(entry[3]) or 0) <= tonumber(sends)
local isAsExpected = fromState == ''
  or (state == fromState and isWhole and (fromClaimant == '' or entry[2] == fromClaimant))
if state ~= 'settled' and not isAsExpected then return 'superseded' end
releaseTask()
if state then
  redis.call('HSET', entryKey, 'state', 'settled')
  if confirmedAtMs then redis.call('HSET', entryKey, 'confirmedAtMs', confirmedAtMs) end
  redis.call('PEXPIRE', entryKey, entryKeptMs)
  leaveFlight()
end
if isRecorded then return 'already-recorded' end
redis.call('HSET', outcomesKey, task, outcome)
-- The notifier reports a broken stream. It must not change how a task ends.
if isNotified == '1' then pcall(addEvent, streamKey, 'o', outcome) end
-- Before what else may fail (a key of a wrong type): what is written is published and listed.
redis.call('ZADD', unpublishedKey, now + publishWithinMs, task)
redis.call('ZADD', indexKey, placeMs, task)
if redis.call('ZCARD', indexKey) == 1 then redis.call('HSETNX', keptKey, policy, '') end
if isReplayable == '1' then redis.call('ZADD', failedKey, placeMs, task) end
if revision then notePoll() end
if successKeptMs ~= '' then noteSuccess() end
noteTroubles(troublesKey, tonumber(finishedMs), troubles)
notePolicyState(stateKey, finishedMs, unpack(ARGV, 21, 25))
noteChanged(changedKey, policy)
addToDay(daysKey, ARGV[26])
local isAwaited = countForChain()
trim()
return isAwaited and 'recorded-awaited' or 'recorded'
