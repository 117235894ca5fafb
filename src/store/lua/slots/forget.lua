-- Forgets policies: their records expire, and their watermarks go when they are old. A watermark
-- stays as long as the records, so that a policy that comes back resumes.
-- KEYS: watermarks, schedules, kept-since, then slots and slot-index of each policy
-- ARGV: retentionMs, oldBefore ('+inf' for any), then the policies
local retentionMs, oldBefore = unpack(ARGV, 1, 2)
for i = 3, #ARGV do
  local policy, slotsKey, indexKey = ARGV[i], KEYS[2 * i - 2], KEYS[2 * i - 1]
  for _, key in ipairs({ slotsKey, indexKey }) do
    if redis.call('PTTL', key) == -1 then redis.call('PEXPIRE', key, retentionMs) end
  end
  local watermark = redis.call('HGET', KEYS[1], policy)
  local hasRecords = redis.call('EXISTS', slotsKey) == 1
  if oldBefore == '+inf' or (not hasRecords and watermark and tonumber(watermark) < tonumber(oldBefore)) then
    for n = 1, 3 do redis.call('HDEL', KEYS[n], policy) end
  end
end
