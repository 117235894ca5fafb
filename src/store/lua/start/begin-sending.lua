-- Permits the request. The same command again, after a lost answer, is permitted again.
-- KEYS: entry, in flight (include/in-flight), watch, losses; of an activation before a run: the
-- run's entry
-- ARGV: claimant, startBy, term, slot, commandId, task, baseline,
-- knownSeq (or ''), inFlightMs (retention)
-- Answers { 'permitted', count of intents }, or { why not }.
local entryKey, inFlightKey, watchKey, lossesKey, runKey = unpack(KEYS)
local claimant, startBy, term, slot, commandId, task, baseline, knownSeq, inFlightMs = unpack(ARGV)
--- @include "fence"
--- @include "run-claim"
local entry = redis.call('HMGET', entryKey, 'state', 'claimant', 'commandId', 'cancelled')
if entry[1] == 'sending' and entry[3] == commandId then return { 'permitted', countIntent(watchKey, term) } end
if entry[1] ~= 'claimed' or entry[2] ~= claimant or entry[4] then return { 'lost-claim' } end
if runKey and not hasRunClaim(runKey, claimant) then return { 'lost-claim' } end
if now > tonumber(startBy) then return { 'too-late' } end
local obstacle = checkFence(watchKey, lossesKey, term, slot, startBy)
if obstacle then return { obstacle } end
redis.call('HSET', entryKey, 'state', 'sending', 'sends', 1, 'sentAtMs', now, 'lastSentAtMs', now)
redis.call('HSET', entryKey, 'baseline', baseline, 'commandId', commandId)
if knownSeq ~= '' then redis.call('HSET', entryKey, 'knownSeq', knownSeq) end
redis.call('HSET', inFlightKey, task, now)
redis.call('PEXPIRE', inFlightKey, inFlightMs)
return { 'permitted', countIntent(watchKey, term) }
