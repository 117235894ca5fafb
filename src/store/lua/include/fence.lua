-- Term '-': this process watches nothing.
--- @include "now"
--- @include "server-run"
-- Whether Redis is not the one of the last check, or its term permits nothing yet, or the task's
-- slot is older than the term, and the processes still have time to report what they remember.
local function isUndecided(watchKey, term, slot)
  local watch = redis.call('HMGET', watchKey, 'runId', 'term', 'permits', 'since')
  if watch[1] ~= serverRun() or watch[2] ~= term or watch[3] ~= '1' then return true end
  return tonumber(slot) < tonumber(watch[4]) and now < tonumber(watch[4]) + holdMs
end

-- Answers 'undecided', 'loss' when the task's intent may be lost, or nothing.
local function checkFence(watchKey, lossesKey, term, slot, startBy)
  if term == '-' then return end
  if isUndecided(watchKey, term, slot) then return 'undecided' end
  for _, loss in ipairs(redis.call('ZRANGEBYSCORE', lossesKey, slot, '+inf')) do
    if tonumber(string.match(loss, '^(%d+):')) <= tonumber(startBy) then return 'loss' end
  end
end

-- Counts an intent in the step that writes it.
local function countIntent(watchKey, term)
  return term == '-' and 0 or redis.call('HINCRBY', watchKey, 'intents', 1)
end
