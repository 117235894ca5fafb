-- Takes items in.
-- KEYS: status, items, order, the present buckets, then the previous ones where there are any
-- ARGV: factsMax, sinceSeq, '1' when the first item must be known, keptMs, what is learned of the
-- list (empty: nothing), number of buckets; then of each item its bucket here, digest, id, stamp
-- (of its content; behind a dot, of its facts), facts
-- Answers 'new', 'again' (first seen after sinceSeq) or 'known' for each item, in one text;
-- nothing: the first item had to be known and was not.
local statusKey, itemsKey, orderKey = unpack(KEYS, 1, 3)
local factsMax, sinceSeq, mustKnowFirst, keptMs, knowledge, buckets = unpack(ARGV, 1, 6)
--- @include "now"
--- @include "drop-oldest"
local digests, written, values = {}, {}, {}
for bucket = 1, buckets do digests[bucket], written[bucket] = {}, {} end
for i = 7, #ARGV, 5 do table.insert(digests[tonumber(ARGV[i])], ARGV[i + 1]) end
local function write(bucket, digest, value)
  values[digest] = value
  table.insert(written[bucket], digest)
  table.insert(written[bucket], value)
end
for bucket, some in ipairs(digests) do
  local present = redis.call('HMGET', KEYS[3 + bucket], unpack(some))
  local previousKey = KEYS[3 + buckets + bucket]
  for at, digest in ipairs(some) do
    values[digest] = present[at]
    local previous = not present[at] and previousKey and redis.call('HGET', previousKey, digest)
    if previous then write(bucket, digest, previous) end
  end
end
if mustKnowFirst == '1' and not values[ARGV[8]] then return false end
local seqBefore = tonumber(redis.call('HGET', statusKey, 'seq') or 0)
local seq, novelties, facts, order, seenAt, isRewritten = seqBefore, {}, {}, {}, {}, false
for i = 7, #ARGV, 5 do
  local bucket, digest, id, stamp, text = unpack(ARGV, i, i + 4)
  local value = values[digest]
  local first, seen = string.match(value or '', '^(%d+) (.*)')
  table.insert(novelties, not first and 'new' or (tonumber(first) > tonumber(sinceSeq) and 'again' or 'known'))
  if seen ~= stamp then
    -- Other facts of the same content are of another mapping: no news, so the item moves nowhere.
    -- Moved, a whole list would come in the order of reading, and its newest items be dropped.
    local isNews = not seen or string.match(seen, '^[^.]*') ~= string.match(stamp, '^[^.]*')
    local held = value and redis.call('HGET', itemsKey, id)
    if isNews then
      seq = seq + 1
      first = first or seq
      order[#order + 1], order[#order + 2] = seq, id
    end
    write(tonumber(bucket), digest, first .. ' ' .. stamp)
    if not value then seenAt[id] = now end
    seenAt[id] = seenAt[id] or string.match(held or '', '^%d+ [^ @]*@(%d+) ') or ''
    if isNews or held then
      facts[#facts + 1], facts[#facts + 2] = id, first .. ' ' .. stamp .. '@' .. seenAt[id] .. ' ' .. text
    end
    isRewritten = isRewritten or (held and not isNews)
  end
end
for bucket, pairs in ipairs(written) do
  if pairs[1] then redis.call('HSET', KEYS[3 + bucket], unpack(pairs)) end
end
if facts[1] then redis.call('HSET', itemsKey, unpack(facts)) end
-- Tells each mirror to read its items again.
if isRewritten then redis.call('HINCRBY', statusKey, 'rewrites', 1) end
if seq > seqBefore then
  redis.call('HSET', statusKey, 'seq', seq, 'grewAtMs', now)
  redis.call('ZADD', orderKey, unpack(order))
  dropOldest(orderKey, itemsKey, factsMax)
end
if knowledge ~= '' then redis.call('HSET', statusKey, 'knowledge', knowledge) end
-- While the status says that the list was read whole, no bucket of it may have expired.
for i = 1, #KEYS do redis.call('PEXPIRE', KEYS[i], i <= 3 and keptMs or 2 * keptMs) end
return table.concat(novelties, ' ')
