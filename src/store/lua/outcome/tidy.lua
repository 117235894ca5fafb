-- Gives the outcomes of removed policies an end, and keeps those of known ones.
-- KEYS: outcomes-kept, changed policies, then outcomes, index and state of each policy
-- ARGV: retentionMs of removed ones, number of known policies, the known policies, the others
local retentionMs, known = unpack(ARGV, 1, 2)
for i = 3, #ARGV do
  local isGone = redis.call('EXISTS', KEYS[3 * i - 5]) == 0
  for n = 3 * i - 6, 3 * i - 4 do
    if i - 2 <= tonumber(known) then
      redis.call('PERSIST', KEYS[n])
    elseif redis.call('PTTL', KEYS[n]) == -1 then
      redis.call('PEXPIRE', KEYS[n], retentionMs)
    end
  end
  if isGone then
    redis.call('HDEL', KEYS[1], ARGV[i])
    redis.call('ZREM', KEYS[2], ARGV[i])
  end
end
