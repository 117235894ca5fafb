-- Forgets policies; their records expire.
-- KEYS: watermarks, schedules, kept-since, begun, then slots and slot-index of each policy
-- ARGV: retentionMs, then the policies
local retentionMs = ARGV[1]
for i = 5, #KEYS do
  if redis.call('PTTL', KEYS[i]) == -1 then redis.call('PEXPIRE', KEYS[i], retentionMs) end
end
for i = 2, #ARGV do
  for n = 1, 4 do redis.call('HDEL', KEYS[n], ARGV[i], ARGV[i] .. '/dropped') end
end
