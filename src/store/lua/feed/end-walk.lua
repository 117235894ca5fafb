-- Ends a walk. Earlier list totals stay where it did not count (their `at` shows their age). Where
-- the list cannot be counted they go, but for since when there are any.
-- KEYS: status, items, order, list totals
-- ARGV: sinceMs (when it began; where it resumed another from a page, when that one began), number
-- of items, keptMs, '1' for the whole list, wholeWalksMin and generationMs (a generation of seen
-- items lasts at least so many whole walks and so long: known-items.ts), startedAtMs (when it began
-- itself), cost ('costly', 'cheap' or 'same'), reason, '1' for the pages of a poll, then pairs of
-- field and count, or '' where the list cannot be counted
-- Answers 1 when the generation is due to end.
local statusKey, _, _, totalsKey = unpack(KEYS)
local sinceMs, count, keptMs, isWhole, wholeWalksMin, generationMs = unpack(ARGV, 1, 6)
local startedAtMs, cost, reason, isGiven = unpack(ARGV, 7, 10)
--- @include "now"
--- @include "mark-logged"
redis.call(
  'HSET', statusKey, 'count', count, 'walkBeganAtMs', sinceMs, 'walkEndedAtMs', now, 'walkTookMs', now - startedAtMs
)
if isGiven == '0' then redis.call('HSET', statusKey, 'ownWalkEndedAtMs', now, 'ownWalkTookMs', now - startedAtMs) end
if isWhole == '1' then redis.call('HSET', statusKey, 'wholeWalkBeganAtMs', sinceMs) end
redis.call('HINCRBY', statusKey, 'walks', 1)
redis.call('HSETNX', statusKey, 'generationSinceMs', now)
local wholeWalks = redis.call('HINCRBY', statusKey, 'wholeWalks', isWhole)
redis.call('HDEL', statusKey, 'failingSinceMs', 'failedAtMs', 'failure', 'unreadSinceMs', 'unreadUntilMs')
if cost == 'cheap' then redis.call('HDEL', statusKey, 'costlyWalks', 'costlySinceMs', 'costlyReason') end
if cost == 'costly' then
  redis.call('HSETNX', statusKey, 'costlySinceMs', startedAtMs)
  redis.call('HSET', statusKey, 'costlyReason', reason)
  redis.call('HINCRBY', statusKey, 'costlyWalks', 1)
end
markLogged(statusKey)
if ARGV[11] == '' then
  for _, field in ipairs(redis.call('HKEYS', totalsKey)) do
    if string.sub(field, 1, 1) ~= '~' then redis.call('HDEL', totalsKey, field) end
  end
elseif ARGV[11] then
  local since = {}
  for i = 11, #ARGV, 2 do since[i] = redis.call('HGET', totalsKey, '~' .. ARGV[i]) or startedAtMs end
  redis.call('DEL', totalsKey)
  redis.call('HSET', totalsKey, 'at', startedAtMs, 'seq', redis.call('HGET', statusKey, 'seq') or 0)
  for i = 11, #ARGV, 2 do
    redis.call('HSET', totalsKey, ':' .. ARGV[i], ARGV[i + 1])
    if tonumber(ARGV[i + 1]) > 0 then redis.call('HSET', totalsKey, '~' .. ARGV[i], since[i]) end
  end
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, keptMs) end
local isOld = now - redis.call('HGET', statusKey, 'generationSinceMs') >= tonumber(generationMs)
return isOld and wholeWalks >= tonumber(wholeWalksMin) and 1 or 0
