-- The fast path: claim, lease, permit of the limiter and permission in one step.
-- KEYS: entry, in flight, watch, losses, lease, feed status, the four of the limiter
-- ARGV: claimant, startBy, term, slot, commandId, task, retentionMs, inFlightMs,
-- leaseMs ('' for none), '1' to note how far the feed is known; then the request for the limiter,
-- if it has limits
-- Answers 'permitted', 'denied' (by the limiter) or 'obstacle' (the single steps name it), now, the
-- count of intents, and the limiter's answer ('' without one).
local entryKey, inFlightKey, watchKey, lossesKey, leaseKey, feedKey = unpack(KEYS, 1, 6)
local claimant, startBy, term, slot, commandId, task, retentionMs, inFlightMs, leaseMs, notesFeed = unpack(ARGV, 1, 10)
--- @include "start"
--- @include "lease"
--- @include "fence"
--- @include "limiter-acquire"
local entry = redis.call('HMGET', entryKey, 'state', 'v', 'claimedAtMs', 'commandId', 'cancelled')
if entry[1] == 'sending' and entry[4] == commandId then
  -- The same command again, after a lost answer. No request has gone out, so it begins anew.
  entry[1] = 'claimed'
  takeBack(entryKey, inFlightKey, task)
end
if (entry[1] and entry[1] ~= 'claimed') or (tonumber(entry[2]) or 1) > 1 or entry[5] then return { 'obstacle' } end
local function refuse(...)
  claim(entryKey, claimant, retentionMs)
  return { ... }
end
if now > tonumber(startBy) then return refuse('obstacle') end
if leaseMs ~= '' and (redis.call('GET', leaseKey) or task) ~= task then return refuse('obstacle') end
if checkFence(watchKey, lossesKey, term, slot, startBy) then return refuse('obstacle') end
local limiterAnswer = ''
if ARGV[11] then
  limiterAnswer = acquirePermit(openLimiter(unpack(KEYS, 7, 10)), unpack(ARGV, 11))
  if limiterAnswer[1] ~= 'acquired' then
    -- It may wait for long: meanwhile other tasks may start the sync job.
    releaseLease(leaseKey, task)
    return refuse('denied', now, 0, limiterAnswer)
  end
end
local intent = { 'v', 1, 'state', 'sending', 'claimant', claimant, 'claimedAtMs', entry[3] or now, 'sends', 1 }
for _, text in ipairs({ 'sentAtMs', now, 'lastSentAtMs', now, 'baseline', '', 'commandId', commandId }) do
  table.insert(intent, text)
end
if notesFeed == '1' then
  table.insert(intent, 'knownSeq')
  table.insert(intent, redis.call('HGET', feedKey, 'seq') or 0)
end
if leaseMs ~= '' then acquireLease(leaseKey, task, leaseMs) end
redis.call('HSET', entryKey, unpack(intent))
redis.call('PEXPIRE', entryKey, retentionMs)
redis.call('HSET', inFlightKey, task, now)
redis.call('PEXPIRE', inFlightKey, inFlightMs)
return { 'permitted', now, countIntent(watchKey, term), limiterAnswer }
