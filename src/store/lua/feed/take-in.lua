-- Takes items in.
-- KEYS: status, items, order, then for each bucket the present and the previous one
-- ARGV: factsMax, sinceSeq, '1' when the first item must be known, keptMs, generation; then of each
-- item its bucket here, digest, id, fingerprint, facts
-- Answers 'new', 'again' (first seen after sinceSeq) or 'known' for each item; nothing: the first
-- item had to be known and was not.
local statusKey, itemsKey, orderKey = unpack(KEYS, 1, 3)
local factsMax, sinceSeq, mustKnowFirst, keptMs, generation = unpack(ARGV, 1, 5)
--- @include "now"
--- @include "drop-oldest"
local function find(bucket, digest, id)
  local presentKey, previousKey = KEYS[2 * bucket + 2], KEYS[2 * bucket + 3]
  local value = redis.call('HGET', presentKey, digest)
  if value then return value end
  value = redis.call('HGET', previousKey, digest)
  if not value and generation == '0' then
    -- Items with facts count as seen, too.
    local first, fingerprint = string.match(redis.call('HGET', itemsKey, id) or '', '^(%d+) (%S+)')
    value = first and first .. ' ' .. string.sub(fingerprint, 1, 8)
  end
  if value then redis.call('HSET', presentKey, digest, value) end
  return value
end
local function isFirstKnown() return ARGV[6] and find(tonumber(ARGV[6]), ARGV[7], ARGV[8]) end
if mustKnowFirst == '1' and not isFirstKnown() then return false end
local novelties, grew = {}, false
for i = 6, #ARGV, 5 do
  local bucket, digest, id, fingerprint, facts = unpack(ARGV, i, i + 4)
  local short = string.sub(fingerprint, 1, 8)
  local value = find(tonumber(bucket), digest, id)
  local first, seen = string.match(value or '', '^(%d+) (.*)')
  novelties[#novelties + 1] = not first and 'new' or (tonumber(first) > tonumber(sinceSeq) and 'again' or 'known')
  if seen ~= short then
    local seq = redis.call('HINCRBY', statusKey, 'seq', 1)
    first = first or seq
    redis.call('HSET', KEYS[2 * bucket + 2], digest, first .. ' ' .. short)
    local seenAt = now
    if value then seenAt = string.match(redis.call('HGET', itemsKey, id) or '', '^%d+ [^ @]*@(%d+) ') or '' end
    redis.call('HSET', itemsKey, id, first .. ' ' .. fingerprint .. '@' .. seenAt .. ' ' .. facts)
    redis.call('ZADD', orderKey, seq, id)
    grew = true
  end
end
if grew then
  redis.call('HSET', statusKey, 'grewAtMs', now)
  dropOldest(orderKey, itemsKey, factsMax)
end
for i = 1, #KEYS do redis.call('PEXPIRE', KEYS[i], keptMs) end
return novelties
