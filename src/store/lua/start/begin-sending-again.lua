-- Permits one more request after `sends` in doubt, the newest of `sender`. Another sender in
-- the entry: that request was taken back, and a newer one may be under way, so none is permitted.
-- KEYS: entry, in flight, watch, losses; of an activation before a run: the run's entry
-- ARGV: claimant, startBy, term, slot, commandId, task, sends, sender, inFlightMs (retention)
-- Answers as start/begin-sending.
local entryKey, inFlightKey, watchKey, lossesKey, runKey = unpack(KEYS)
local claimant, startBy, term, slot, commandId, task, sends, sender, inFlightMs = unpack(ARGV)
--- @include "fence"
--- @include "run-claim"
local entry = redis.call('HMGET', entryKey, 'state', 'sends', 'claimant', 'commandId', 'cancelled', 'sentAtMs')
if entry[1] == 'sending' and entry[4] == commandId then return { 'permitted', countIntent(watchKey, term) } end
if entry[1] ~= 'sending' or entry[2] ~= sends or entry[3] ~= sender or entry[5] then
  return { 'lost-claim' }
end
if runKey and not hasRunClaim(runKey, claimant) then return { 'lost-claim' } end
if now > tonumber(startBy) then return { 'too-late' } end
local obstacle = checkFence(watchKey, lossesKey, term, slot, startBy)
if obstacle then return { obstacle } end
redis.call('HSET', entryKey, 'claimant', claimant, 'sends', sends + 1, 'lastSentAtMs', now, 'commandId', commandId)
redis.call('HDEL', entryKey, 'windowOverAtMs')
redis.call('HSET', inFlightKey, task, (redis.call('HGET', inFlightKey, task) or entry[6]) .. ':' .. now)
redis.call('PEXPIRE', inFlightKey, inFlightMs)
return { 'permitted', countIntent(watchKey, term) }
